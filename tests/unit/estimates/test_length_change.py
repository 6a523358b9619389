"""Since when requests are as long as now, on steps, slopes and noise of known size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import EngineSeries, as_floats
from advisor.domain.histogram import Floats
from advisor.domain.length_history import LengthHistory, bin_of
from advisor.estimates.length_change import first_alike, length_change, mean_lengths_now
from tests.unit.estimates.evidence import NOTHING, engine, log, windows

REQUESTS = 25.0
MINUTE, HOUR = 60.0, 3600.0


def served(prompt: npt.ArrayLike, output: npt.ArrayLike = 200.0, *, seconds: float = MINUTE) -> EngineSeries:
    """Windows of 25 finished requests each, of these mean lengths."""
    prompts = as_floats(prompt)
    outputs = np.broadcast_to(as_floats(output), prompts.shape)
    counted = {
        "finished": np.full(prompts.size, REQUESTS),
        "prompt_tokens": REQUESTS * prompts,
        "generation_tokens": REQUESTS * outputs,
    }
    return engine(counters=windows({name: values.tolist() for name, values in counted.items()}, seconds=seconds))


def then(before: float, windows_before: int, since: float, windows_since: int) -> Floats:
    return np.repeat([before, since], [windows_before, windows_since])


@given(st.integers(5, 200), st.integers(5, 200), st.floats(1.5, 20.0))
def test_longer_requests_count_from_their_first_window_on(before: int, since: int, longer: float) -> None:
    assert first_alike(served(then(1000, before, 1000 * longer, since))) == before


def test_longer_answers_hold_longer_contexts() -> None:
    # 400 + 500 against 400 + 1,000 tokens held
    assert first_alike(served(np.full(50, 400.0), then(1000, 30, 2000, 20))) == 30


def test_shorter_answers_leave_more_prompt_work_beside_each_token() -> None:
    # contexts of 1,000 + 100 hardly shrink to 1,000 + 50, but a token has 10 prompt tokens beside it and not 5
    assert first_alike(served(np.full(50, 1000.0), then(200, 30, 100, 20))) == 30


@pytest.mark.parametrize(("hours", "first"), [(23, 0), (25, 30)])
def test_shorter_requests_count_once_they_came_for_a_day(hours: int, first: int) -> None:
    assert first_alike(served(then(2000, 30, 1000, hours), seconds=HOUR)) == first


def test_a_quarter_longer_is_needed() -> None:
    outputs = then(200, 30, 248, 30)
    assert first_alike(served(then(1000, 30, 1240, 30), outputs)) == 0
    assert first_alike(served(then(1000, 30, 1260, 30), outputs * 1.26 / 1.24)) == 30


def test_few_requests_are_no_change() -> None:
    # 75 requests; at least 100 are needed on both sides, and these would be the last 100: 1,750 tokens against 1,000
    assert first_alike(served(then(1000, 30, 2000, 3))) == 29
    assert first_alike(served(then(1000, 3, 2000, 3))) == 0


@pytest.mark.parametrize("seed", range(20))
def test_chance_is_no_change(seed: int) -> None:
    """Lengths of single requests scatter by 100 %, as those of chats do; so means of 25 do by 20 %."""
    random = np.random.default_rng(seed)
    means = random.lognormal(0, 0.83, (600, 25)).mean(axis=1)
    assert first_alike(served(1000 * means)) == 0


def test_a_change_stands_out_of_chance() -> None:
    random = np.random.default_rng(1)
    means = random.lognormal(0, 0.83, (600, 25)).mean(axis=1)
    assert first_alike(served(then(1000, 590, 2000, 10) * means)) == pytest.approx(590, abs=2)


def test_of_a_slope_the_later_part_is_left() -> None:
    """From 1,000 to 2,000: halves of 1,250 and 1,750 are 1.4 apart, those of the later half 1,625 and 1,875 are not."""
    first = first_alike(served(np.linspace(1000, 2000, 200), output=0.0))
    assert first == pytest.approx(100, abs=20)


def test_longer_ones_that_came_and_went_stay_with_the_others() -> None:
    came_and_went = np.concatenate([np.full(100, 1000.0), np.full(50, 3000.0), np.full(50, 1000.0)])
    assert first_alike(served(came_and_went)) == 100


def test_what_requests_hold_now_and_held_over_all() -> None:
    change = length_change(replace(NOTHING, engines=(served(then(1000, 30, 2000, 10)),)))
    assert change is not None
    # 30 x 1,000 and 10 x 2,000 are 1,250 on average: contexts of 2,100 against 1,350, but 10 prompt tokens beside each
    # token of an answer against 6.25 are 1.6
    assert change.heavier == pytest.approx(1.6)
    assert change.told == "requests changed 10 min ago (2,000 + 200 tokens now, 1,250 + 200 over all)"


def test_means_are_of_all_engines() -> None:
    both = replace(NOTHING, engines=(served(then(1000, 30, 2000, 10)), served(np.full(40, 1000.0))))
    # since then 10 windows of 2,000 and as many of 1,000
    assert mean_lengths_now(both) == pytest.approx((1500, 200))
    assert mean_lengths_now(replace(NOTHING, engines=(served(np.full(40, 1000.0)),))) is None


def test_an_engine_that_was_not_read_yet_changes_nothing() -> None:
    changed = replace(NOTHING, engines=(served(then(1000, 30, 2000, 10)), served([])))
    told = length_change(changed)
    assert told is not None
    assert told == length_change(replace(changed, engines=changed.engines[:1]))


def test_an_engine_that_counts_no_requests_tells_nothing() -> None:
    silent = engine(counters=windows({"steps": [100.0] * 40}))
    assert first_alike(silent) == 0
    assert length_change(replace(NOTHING, engines=(silent,))) is None
    assert length_change(NOTHING) is None


def test_windows_without_a_reading_are_left_out() -> None:
    read = served(then(1000, 30, 2000, 10))
    gap = as_floats(np.where(np.arange(40) == 35, np.nan, read.windows.deltas["finished"]))
    deltas = {**read.windows.deltas, "finished": gap}
    assert first_alike(replace(read, windows=replace(read.windows, deltas=deltas))) == 30


def test_a_log_alone_tells_it_by_total_tokens() -> None:
    slots = np.arange(48)
    lengths = np.where(slots < 36, 1024, 4096)
    nobody = np.zeros(48, np.int64)
    history = LengthHistory(300, slots * 300, nobody, bin_of(lengths), np.full(48, 50))
    change = length_change(replace(NOTHING, log=replace(log(), history=history)))
    assert change is not None
    # three quarters of 1,024 and a quarter of 4,096 are 1,792
    assert change.heavier == pytest.approx(4096 / 1792)
    assert change.told == "requests changed 1 h ago (4,096 tokens now, 1,792 over all)"
