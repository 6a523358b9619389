"""A log that these engines cannot have served: nothing is taken from it, and it is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import EngineSeries, Evidence, Flag, RequestLog, as_floats
from advisor.domain.histogram import BucketHours
from advisor.domain.length_history import LengthHistory, bin_of
from advisor.domain.policy import Policy
from advisor.estimates import estimate, log_origin
from advisor.estimates.pictures import pictures
from tests.unit.estimates.evidence import NOTHING, buckets, engine, flags, gauges, joint, log

DAY, HOUR = 86400, 3600
LIMIT = flags(max_model_len=8192)
OWN = joint((900, 100, 1600))
STRANGE = joint((900, 100, 1600), (11_500, 500, 400))


def history(*rows: tuple[int, int, int]) -> LengthHistory:
    """Rows of start (UNIX seconds), tokens, requests, by the hour."""
    start, tokens, counts = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    return LengthHistory(HOUR, start, np.zeros_like(start), bin_of(tokens), counts)


def finished(*a_hour: float, start: int = 0) -> EngineSeries:
    """An engine that finished so many requests in each hour."""
    hours = BucketHours(
        as_floats([start + HOUR * k for k in range(len(a_hour))]),
        as_floats([1024.0]),
        np.array([[n, 0.0] for n in a_hour]),
    )
    whole = buckets([1024.0], [sum(a_hour), 0.0])
    return replace(engine(gauges([1.0] * 40), lengths={"prompt_tokens": whole}), length_hours={"prompt_tokens": hours})


def of(evidence: Evidence) -> tuple[float | None, float | None]:
    """Share beyond the limit, and requests over finished ones."""
    told = log_origin.facts(evidence)
    return told["logged_beyond_limit_share"].number, told["logged_over_finished"].number


def with_log(told: RequestLog, *engines: EngineSeries) -> Evidence:
    """A deployment with a limit of 8,192."""
    return replace(NOTHING, flags=LIMIT, log=told, engines=engines)


def test_answers_longer_than_the_limit_came_from_elsewhere() -> None:
    """400 of 2,000 took 12,000 tokens."""
    evidence = with_log(log(STRANGE), engine(gauges([1.0] * 40)))
    told = log_origin.facts(evidence)
    assert told["logged_beyond_limit_share"].value == pytest.approx(0.2)
    assert told["foreign_log"].value == "400 of 2,000 answered requests are longer than max_model_len, 8,192 (metrics)"
    facts = estimate(evidence, Policy())
    assert "the request log is not used: 400 of 2,000" in str(facts["recommended_max_model_len"].unknown)
    assert facts["demand_requests_per_second_p99"].is_unknown
    assert pictures(evidence, facts).lengths is None


def test_requests_within_the_limit_are_believed() -> None:
    facts = estimate(with_log(log(OWN), engine(gauges([1.0] * 40))), Policy())
    assert facts["logged_beyond_limit_share"].value == 0.0
    assert facts["total_tokens_p50"].value == 1000


def test_a_gateway_that_counts_a_little_more_is_believed() -> None:
    """8,500 tokens are 3.8 % above the limit of 8,192."""
    assert of(with_log(log(joint((8000, 500, 2000))), engine(gauges([1.0] * 40))))[0] == 0.0


def test_a_limit_that_was_longer_earlier_explains_longer_requests() -> None:
    """12,000 tokens on the first day; since the restart on the second no request is longer than 1,000."""
    told = replace(log(STRANGE), history=history((0, 12_000, 400), (0, 1_000, 800), (2 * DAY, 1_000, 800)))
    restarted = replace(engine(gauges([1.0] * 40)), epoch_start=1.5 * DAY)
    assert of(with_log(told, restarted))[0] == 0.0
    late = replace(told, history=history((0, 1_000, 800), (2 * DAY, 12_000, 400), (2 * DAY, 1_000, 800)))
    assert of(with_log(late, restarted))[0] == pytest.approx(1 / 3)
    assert of(with_log(replace(late, history=None), restarted))[0] is None


def test_the_longest_limit_of_any_replica_counts() -> None:
    """A replica that runs apart with 16,384 serves them; one that does not tell its limit may."""
    other = engine(gauges([1.0] * 40), instance="other:8000")
    long = replace(other, flags={"max_model_len": Flag(16_384, "metrics")})
    evidence = with_log(log(STRANGE), engine(gauges([1.0] * 40)))
    assert of(replace(evidence, apart=(long,)))[0] == 0.0
    assert of(replace(evidence, apart=(other,)))[0] is None


def test_without_engines_the_last_day_is_what_the_present_limit_served() -> None:
    told = replace(log(STRANGE), history=history((0, 12_000, 400), (int(6.5 * DAY), 1_000, 1600)))
    assert of(with_log(told))[0] == 0.0
    late = replace(told, history=history((0, 1_000, 1600), (int(6.5 * DAY), 12_000, 400)))
    assert of(with_log(late))[0] == 1.0


@pytest.mark.parametrize(
    ("logged", "per_hour", "ratio"),
    [
        ([71_000] * 6, [1000.0] * 6, 71.0),
        ([1000] * 6, [1000.0] * 6, 1.0),
        ([71_000, 1000, 1000, 1000, 1000, 71_000], [1000.0] * 6, 1.0),
        ([5000] * 6, [0.0] * 6, 20_000.0),
        ([10] * 6, [1.0] * 6, None),
        ([5000] * 4, [1000.0] * 4, None),
    ],
    ids=["71 times", "as many", "hours read in part", "nothing finished", "too few", "too short"],
)
def test_requests_against_those_that_the_engines_finished(
    logged: Sequence[int], per_hour: Sequence[float], ratio: float | None
) -> None:
    told = replace(log(OWN), history=history(*((HOUR * k, 1000, n) for k, n in enumerate(logged))))
    assert of(with_log(told, finished(*per_hour)))[1] == ratio


def test_many_times_what_the_engines_finished_is_the_demand_of_others() -> None:
    told = replace(log(OWN), history=history(*((HOUR * k, 1000, 71_000) for k in range(6))), arrivals={0: 99, 300: 99})
    facts = estimate(with_log(told, finished(*[1000.0] * 6)), Policy())
    assert facts["logged_over_finished"].value == 71.0
    assert "284,000 answered requests of a time in which the engines finished 4,000" in str(
        facts["length_coverage"].unknown
    )
    assert facts["prompt_tokens_p50"].source == "bucket edges"


def test_one_scrape_counts_since_the_engine_started() -> None:
    """2,000 finished since 6 d; of the log 8,000 since then and 50,000 before."""
    told = replace(log(OWN), history=history((0, 1000, 50_000), (6 * DAY, 1000, 8000)))
    once = replace(
        engine(lengths={"prompt_tokens": buckets([1024.0], [2000.0, 0.0])}, lifetime=True), epoch_start=6.0 * DAY
    )
    assert of(with_log(told, once))[1] == 4.0
    fronts = replace(with_log(told, once), flags=LIMIT | flags(api_server_count=4))
    assert of(fronts)[1] == 1.0


def test_metrics_read_in_part_say_nothing_of_a_log() -> None:
    told = replace(log(OWN), history=history(*((HOUR * k, 1000, 71_000) for k in range(6))))
    assert of(replace(with_log(told, finished(*[1000.0] * 6)), read_in_part=True))[1] is None


@given(st.lists(st.tuples(st.integers(1, 20_000), st.integers(1, 500)), min_size=1, max_size=20))
def test_no_request_within_the_limit_speaks_against_a_log(rows: list[tuple[int, int]]) -> None:
    """By the bins of its history, too: a bin counts when its shortest length is too long."""
    slots = [(int(6.9 * DAY), length, count) for length, count in rows]
    totals = log(joint(*((length, 0, count) for length, count in rows)))
    epoch = replace(engine(gauges([1.0] * 40)), epoch_start=6.5 * DAY)
    by_history = of(with_log(replace(totals, history=history(*slots)), epoch))[0]
    exact = of(with_log(totals, engine(gauges([1.0] * 40))))[0]
    assert (exact is None) is (sum(count for _, count in rows) < log_origin.LEAST_LOGGED)
    if exact is not None and by_history is not None:
        assert by_history <= exact
        assert exact == sum(n for length, n in rows if length > 1.05 * 8192) / sum(n for _, n in rows)
