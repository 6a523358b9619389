"""Steps under a budget, and queries that foreign text cannot break out of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.errors import SourceError
from advisor.sources.prometheus_plan import (
    GAUGES,
    INFO,
    WHOLE,
    WINDOWS,
    Fleet,
    Selectors,
    quoted,
    scrape_interval,
    step_seconds,
)

WEEK = 7 * 86400.0
KINDS = (GAUGES, WINDOWS, WHOLE, INFO)


def fleet(engines: int, scrape: float = 15.0) -> Fleet:
    return Fleet(engines, engines * WEEK, 0, WEEK, scrape, frozenset({"vllm"}))


def test_a_small_fleet_is_read_as_finely_as_is_useful() -> None:
    assert [step_seconds(kind, fleet(2), 5_000_000) for kind in KINDS] == [15, 60, 300, 300]  # 68 series


def test_a_large_fleet_is_read_at_wider_steps() -> None:
    # 1,000 engines: 604,800 s x 3 gauges x 1,000 / 1,500,000 = 1,210 s at least
    assert step_seconds(GAUGES, fleet(1000), 5_000_000) == 1800


def test_steps_are_multiples_of_the_scrape_interval() -> None:
    assert step_seconds(GAUGES, fleet(1, 20.0), 5_000_000) == 20
    assert step_seconds(WINDOWS, fleet(1, 25.0), 5_000_000) == 25


def test_a_budget_that_cannot_be_kept_is_said() -> None:
    with pytest.raises(SourceError, match="sample_budget 10000; raise it or narrow matchers"):
        step_seconds(WINDOWS, fleet(5000), 10_000)


@given(st.integers(1, 2000), st.integers(6_000_000, 50_000_000), st.sampled_from((5.0, 15.0, 25.0, 60.0, 300.0)))
def test_the_whole_plan_keeps_the_budget(engines: int, budget: int, scrape: float) -> None:
    found = fleet(engines, scrape)
    planned = sum(found.engine_seconds / step_seconds(kind, found, budget) * kind.series for kind in KINDS)
    assert planned <= budget


@pytest.mark.parametrize(
    ("step", "most", "interval"),
    [(864, 58, 15.0), (12096, 806, 15.0), (300, 5, 60.0), (300, 10, 30.0), (3600, 80, 45.0), (300, 1, 300.0)],
)
def test_the_scrape_interval_is_read_off_how_many_samples_there_are(step: float, most: float, interval: float) -> None:
    assert scrape_interval(step, most) == interval


def test_the_quoting_of_promql() -> None:
    assert quoted('a"b\\c\nd{}é') == r'"a\"b\\c\nd{}é"'


def test_user_values_stay_inside_their_quotes() -> None:
    selectors = Selectors({"model_name": 'x"} or vector(1) #', "cluster": "east"})
    assert selectors.running == r'vllm:num_requests_running{cluster="east",model_name="x\"} or vector(1) #"}'
    assert selectors.named(("a", "b")).startswith('{__name__=~"a|b",cluster="east",model_name="x\\"}')


def test_series_of_everybody_are_restricted_to_the_engines_of_a_few_jobs() -> None:
    query = Selectors({}).of_engines("up", {"vllm", "a.b|c"})
    assert query == r'up{job=~"a\\.b\\|c|vllm"} and on (job, instance) vllm:num_requests_running{}'
    many = Selectors({}).of_engines("up", {f"job{i}" for i in range(51)}, 'method="POST"')
    assert many == 'up{method="POST"} and on (job, instance) vllm:num_requests_running{}'
    assert Selectors({}).of_engines("up", {""}).startswith("up{} and on")
