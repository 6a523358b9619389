from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import CounterWindows, Evidence, Slo
from advisor.domain.fact import Fact
from advisor.domain.sweep import Sweep, SweepPoint
from advisor.estimates import latency_ceiling
from advisor.estimates.full_step import FullStep
from advisor.estimates.latency_ceiling import from_levels, reached
from advisor.estimates.shared_steps import SharedSteps
from advisor.estimates.step_time import StepTime
from tests.unit.estimates.evidence import NOTHING, engine, flags, latencies, log, windows

TARGET = 0.040
PROMISED = replace(NOTHING, slo=Slo(tpot_seconds=TARGET))
LINE = StepTime(0.010, 1e-3, None, None, 0.9, 0.001, 100, 40.0)


def ceiling(evidence: Evidence, step: StepTime | str, shared: SharedSteps | None = None) -> Fact:
    return latency_ceiling.latency_ceiling(evidence, step, shared)


def swept(*points: tuple[float, float]) -> Sweep:
    return Sweep(tuple(SweepPoint(concurrency, tpot) for concurrency, tpot in points), "file")


def shape(fact: Fact) -> tuple[float | str | None, float | None, float | None]:
    return fact.value, fact.low, fact.high


def test_without_an_objective_there_is_no_ceiling() -> None:
    assert "--slo-tpot" in (ceiling(replace(NOTHING, sweep=swept((8, 0.02))), LINE).unknown or "")


def test_batch_work_has_no_latency_ceiling() -> None:
    batch = replace(PROMISED, workload="batch", sweep=swept((8, 0.02)))
    assert "no latency ceiling" in (ceiling(batch, LINE).unknown or "")


@pytest.mark.parametrize(
    "parts",
    [{}, {"sweep": Sweep((), "empty")}, {"log": log()}, {"engines": (engine(),)}],
)
def test_nothing_measured_is_unknown(parts: dict[str, Any]) -> None:
    assert "was not measured" in (ceiling(replace(PROMISED, **parts), LINE).unknown or "")


def levels(*rows: tuple[int, float, float], share: float = 0.99) -> tuple[int | None, int | None]:
    level, within, requests = (np.array([row[i] for row in rows]) for i in range(3))
    return from_levels(level, within.astype(float), requests.astype(float), share)


def test_a_failing_level_ends_the_range() -> None:
    assert levels((8, 1_000, 1_000), (16, 995, 1_000), (24, 800, 1_000), (32, 700, 1_000)) == (16, 24)


def test_an_unlucky_level_between_lucky_ones_is_averaged() -> None:
    # 97 of 100 alone would be a 2 % accident; with the 1,000 above it, 1,097 of 1,100 hold
    assert levels((8, 100, 100), (16, 97, 100), (24, 1_000, 1_000)) == (24, None)


def test_a_few_misses_are_an_accident() -> None:
    # 2 of 100 where 1 is allowed
    assert levels((8, 98, 100)) == (8, None)
    # 5 of 100: 0.3 %
    assert levels((8, 95, 100)) == (None, 8)


def test_all_means_all() -> None:
    assert levels((8, 100, 100), (16, 99, 100), share=1.0) == (8, 16)


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=12),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_the_first_failure_follows_the_last_success(rows: list[tuple[int, int]], share: float) -> None:
    table = [(4 * k, float(ok), float(ok + missed + 1)) for k, (ok, missed) in enumerate(rows, 1)]
    best, worst = levels(*table, share=share)
    every = [row[0] for row in table]
    assert (worst is None) == (best == every[-1])
    assert best is None or worst is None or every.index(worst) == every.index(best) + 1


def in_service(*rows: tuple[float, int, int], dp: int = 1) -> Evidence:
    """Rows of TPOT, concurrency and number of requests."""
    sample = latencies(*((0.1, tpot, level, n) for tpot, level, n in rows))
    return replace(PROMISED, log=log(latency=sample), flags=flags(data_parallel_size=dp))


def test_a_log_tells_the_ceiling() -> None:
    seen = in_service((0.02, 8, 500), (0.03, 16, 500), (0.05, 24, 500))
    assert shape(ceiling(seen, "not fitted")) == (16, 16, 24)


def test_behind_one_address_engines_share_the_load() -> None:
    seen = in_service((0.02, 8, 500), (0.03, 16, 500), (0.05, 24, 500), dp=4)
    assert shape(ceiling(seen, "not fitted")) == (4, 4, 6)


def test_one_request_far_above_the_others_speaks_for_nobody() -> None:
    assert shape(ceiling(in_service((0.02, 10, 5_000), (0.02, 200, 1)), "")) == (None, 10, None)
    assert shape(ceiling(in_service((0.02, 10, 49), (0.02, 40, 1)), "")) == (None, 10, None)


def test_a_few_failures_far_above_are_a_failure_there_and_not_below() -> None:
    assert shape(ceiling(in_service((0.02, 10, 500), (0.09, 200, 10)), "")) == (10, 10, 200)


def test_failing_everywhere_is_not_a_matter_of_concurrency() -> None:
    failing = ceiling(in_service((0.09, 8, 500), (0.09, 16, 500)), "")
    assert "not a matter of concurrency" in (failing.unknown or "")


def test_requests_that_never_decoded_tell_nothing() -> None:
    assert ceiling(in_service((float("nan"), 8, 500)), "").is_unknown


def test_seats_are_counted_up_to_the_cap() -> None:
    # 16 decode while 40 are in flight: under a cap of 24 the other 8 seats are taken by prompts
    sample = replace(latencies((0.1, 0.02, 16, 500)), in_flight=np.array([40]))
    seen = replace(PROMISED, log=log(latency=sample), flags=flags(max_num_seqs=24))
    assert ceiling(seen, "").low == 24
    assert ceiling(replace(seen, flags={}), "").low == 16


def bucketed(*rows: tuple[float, float, float], edge: float = TARGET) -> Evidence:
    """Rows of decode batch, requests within the edge, and beyond it; a window each."""
    counted = windows({"itl_count": [1_000 * row[0] for row in rows], "steps": [1_000.0] * len(rows)})
    tpot = np.array([[row[1], row[2], 0.0] for row in rows])
    read = CounterWindows(counted.start, counted.end, counted.deltas, np.array([edge, 1.0]), tpot)
    return replace(PROMISED, engines=(engine(counters=read),))


def test_windows_give_bounds_only() -> None:
    seen = bucketed((8, 100, 0), (16, 100, 0), (24, 50, 50))
    # holds up to 16; the mean gap of 10 + 1 x D ms reaches 40 ms at 30
    assert shape(ceiling(seen, LINE)) == (None, 16, 30)
    assert shape(ceiling(seen, "not fitted")) == (None, 16, None)


def test_windows_that_never_failed_bound_it_from_below() -> None:
    assert shape(ceiling(bucketed((8, 100, 0), (16, 100, 0)), LINE)) == (None, 16, None)


def test_no_bucket_at_the_target_counts_only_what_is_surely_within() -> None:
    # the edge of 50 ms is above the target: nobody is known to be within it
    assert shape(ceiling(bucketed((8, 100, 0), edge=0.050), LINE)) == (None, 0, 30)


def test_a_step_slower_than_the_target_is_no_matter_of_concurrency() -> None:
    # 100 ms + 1 x 1 ms; with two tokens a gap that is 50.5 ms a token
    told = ceiling(bucketed((8, 0, 100)), replace(LINE, base=0.100)).unknown or ""
    assert told.endswith("one sequence alone takes 101 ms a token: not a matter of concurrency")
    drafted = ceiling(bucketed((8, 0, 100)), replace(LINE, base=0.100, tokens_per_gap=2.0)).unknown or ""
    assert "takes 50.5 ms a token" in drafted


def test_few_requests_in_windows_tell_nothing() -> None:
    assert ceiling(bucketed((8, 20, 0), (16, 20, 0)), LINE).is_unknown


# steps of 10 + 1 x D ms and hardly a prompt: 40 ms at 30 sequences
BY_STEP = SharedSteps(np.ones(1), np.array([1000.0]), np.ones(1), FullStep(0.010, 1e-3, 1e-9, 100), 2048)


@pytest.mark.parametrize(
    ("held", "told"),
    [
        (26, (26, 26, 48)),  # alike to a quarter, and the lower one counts
        (36, (30, 30, 48)),
        (38, (None, 30, 38)),  # 38 / 30 = 1.27: one of them is wrong
        (20, (None, 20, 30)),
    ],
)
def test_a_log_and_the_time_of_a_step(held: int, told: tuple[float | None, float, float]) -> None:
    seen = in_service((0.02, held, 500), (0.05, 48, 500))
    found = ceiling(seen, LINE, BY_STEP)
    assert (found.number, found.low, found.high) == told
    assert "30 by the time of a step" in (found.source or "")


def test_between_bounds_the_time_of_a_step_tells() -> None:
    seen = bucketed((8, 100, 0), (16, 100, 0), (24, 50, 50))
    assert shape(ceiling(seen, LINE, BY_STEP)) == (30, 16, 30)


def test_what_never_failed_is_not_ended_by_the_time_of_a_step() -> None:
    assert shape(ceiling(in_service((0.02, 8, 500)), LINE, BY_STEP)) == (None, 8, None)


def test_the_time_of_a_step_reaches_twice_as_far_as_was_seen() -> None:
    """A batch of 12 was the widest: up to 24 the step allows all, and what lies beyond is not known."""
    near = replace(LINE, widest=12.0)
    assert shape(ceiling(in_service((0.02, 26, 500), (0.05, 48, 500)), near, BY_STEP)) == (26, 26, 48)
    assert shape(ceiling(in_service((0.02, 40, 500), (0.05, 48, 500)), near, BY_STEP)) == (40, 40, 48)
    # only up to 12 by the log, at least 24 by the step
    assert shape(ceiling(in_service((0.02, 12, 500), (0.05, 16, 500)), near, BY_STEP)) == (None, 12, 24)
    # between 16 and where the mean gap reaches the objective, 30, at least 24 hold
    assert shape(ceiling(bucketed((8, 100, 0), (16, 100, 0), (24, 50, 50)), near, BY_STEP)) == (None, 24, 30)
    assert shape(ceiling(in_service((0.02, 20, 500), (0.05, 48, 500)), "not fitted", BY_STEP)) == (20, 20, 48)


def test_levels_that_the_load_only_passed_through_tell_bounds() -> None:
    # 200 of 10,200 requests; half of all are within the target up to 40, which is as far as a mean could hold
    seen = in_service((0.02, 8, 100), (0.05, 16, 100), (0.02, 40, 6_000), (0.05, 40, 4_000))
    assert shape(ceiling(seen, "")) == (None, 8, 40)


def test_a_level_that_may_hold_by_luck_is_not_the_low_end() -> None:
    # 493 of 500 are 98.6 %, which is no proof of a failure and not 99 % either
    seen = in_service((0.02, 8, 500), (0.02, 16, 493), (0.05, 16, 7), (0.05, 24, 500))
    assert shape(ceiling(seen, "")) == (16, 8, 24)


def test_how_far_the_share_itself_reaches() -> None:
    level, within, requests = np.array([8, 16, 24]), np.array([100.0, 97.0, 50.0]), np.full(3, 100.0)
    assert [reached(level, within, requests, share) for share in (0.99, 0.97, 0.5, 0.4)] == [8, 16, 24, 24]
    assert reached(level, within - 50, requests, 0.99) == 0


def changed(read: Evidence, *lengths: float) -> Evidence:
    """The same engine, and mean prompt tokens of its requests window by window, 100 of them in each."""
    (one,) = read.engines
    counted = {"finished": np.full(len(lengths), 100.0), "generation_tokens": np.full(len(lengths), 10_000.0)}
    deltas = {**one.windows.deltas, **counted, "prompt_tokens": 100.0 * np.array(lengths)}
    return replace(read, engines=(replace(one, windows=replace(one.windows, deltas=deltas)),))


HELD = (24.0, 10_000.0, 0.0), (24.0, 10_000.0, 0.0), (24.0, 10_000.0, 0.0)
SINCE = (8.0, 100.0, 0.0), (16.0, 50.0, 50.0)
LONGER = 1000.0, 1000.0, 1000.0, 2000.0, 2000.0


def test_windows_before_requests_became_longer_do_not_count() -> None:
    """24 held with prompts of 1,000 tokens; with 2,000 they hold at 8 and fail at 16."""
    told = ceiling(changed(bucketed(*HELD, *SINCE), *LONGER), LINE)
    assert shape(told) == (None, 8, 30)
    assert str(told.source).endswith("since requests changed 2 min ago (2,000 + 100 tokens now, 1,400 + 100 over all)")
    # without a change the 50 are an accident among 30,000 that held
    assert shape(ceiling(changed(bucketed(*HELD, *SINCE), *[1000.0] * 5), LINE)) == (None, 24, None)


def test_a_log_of_shorter_requests_does_not_set_the_ceiling_of_longer_ones() -> None:
    served = log(latency=latencies((0.1, 0.02, 24, 500), (0.1, 0.09, 32, 500)))
    seen = replace(changed(bucketed(*HELD, *SINCE), *LONGER), log=served)
    assert shape(ceiling(seen, LINE)) == (None, 8, 30)
    # where a fifth of them was before, and three quarters as long, the mean of all is within a tenth of now
    early = replace(changed(bucketed(*HELD, *SINCE), 1500.0, *[2000.0] * 4), log=served)
    assert shape(ceiling(early, LINE)) == (24, 24, 32)


def test_longer_requests_that_were_not_measured_yet_have_no_ceiling() -> None:
    unmeasured = bucketed(*HELD, (8.0, 0.0, 0.0), (16.0, 0.0, 0.0))
    served = log(latency=latencies((0.1, 0.02, 24, 500), (0.1, 0.09, 32, 500)))
    told = ceiling(replace(changed(unmeasured, *LONGER), log=served), LINE)
    why = told.unknown or ""
    assert why.startswith("requests changed 2 min ago (2,000 + 100 tokens now, 1,400 + 100 over all): their time")
    assert why.endswith("or the time since alone (--since)")
