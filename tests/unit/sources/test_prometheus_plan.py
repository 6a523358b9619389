"""Steps under a budget, and queries that foreign text cannot break out of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.errors import SourceError
from advisor.engines import METRICS
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
    return Fleet(engines, {"vllm": engines * WEEK}, 0, WEEK, scrape, frozenset({"vllm"}))


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
    planned = sum(found.series_seconds(kind) / step_seconds(kind, found, budget) for kind in KINDS)
    assert planned <= budget


@pytest.mark.parametrize(
    ("step", "most", "interval"),
    [(864, 58, 15.0), (12096, 806, 15.0), (300, 5, 60.0), (300, 10, 30.0), (3600, 80, 45.0), (300, 1, 300.0)],
)
def test_the_scrape_interval_is_read_off_how_many_samples_there_are(step: float, most: float, interval: float) -> None:
    assert scrape_interval(step, most) == interval


def test_the_quoting_of_promql() -> None:
    assert quoted('a"b\\c\nd{}é') == r'"a\"b\\c\nd{}é"'


ONLY_VLLM = (METRICS["vllm"],)


def test_user_values_stay_inside_their_quotes() -> None:
    selectors = Selectors({"model_name": 'x"} or vector(1) #', "cluster": "east"}, ONLY_VLLM)
    pairs = r'cluster="east",model_name="x\"} or vector(1) #"'
    assert selectors.running == f'{{__name__=~"vllm:num_requests_running",{pairs}}}'
    assert selectors.marked("timestamp({})") == f"timestamp(vllm:num_requests_running{{{pairs}}})"
    assert selectors.named(("a", "b")) == f'{{__name__=~"a|b",{pairs}}}'


def test_labels_with_dots_are_quoted() -> None:
    selectors = Selectors({"k8s.cluster.name": "eu"}, ONLY_VLLM)
    assert selectors.running == '{__name__=~"vllm:num_requests_running","k8s.cluster.name"="eu"}'


def test_series_of_everybody_are_restricted_to_the_engines_of_a_few_jobs() -> None:
    engines = 'and on (job, instance, exported_job, exported_instance) {__name__=~"vllm:num_requests_running"}'
    selectors = Selectors({}, ONLY_VLLM)
    query = selectors.of_engines(["up"], {"vllm", "a.b|c"})
    assert query == rf'{{__name__=~"up",job=~"a\\.b\\|c|vllm"}} {engines}'
    many = selectors.of_engines(["up"], {f"job{i}" for i in range(51)}, 'method="POST"')
    assert many == f'{{__name__=~"up",method="POST"}} {engines}'
    assert selectors.of_engines(["up"], {""}) == f'{{__name__=~"up"}} {engines}'


def test_a_mixed_fleet_is_found_by_one_query_that_tells_the_kinds_apart() -> None:
    query = Selectors({}, (METRICS["vllm"], METRICS["tgi"])).marked("count_over_time({}[300s])", "kind")
    assert query == (
        'label_replace(count_over_time(vllm:num_requests_running{}[300s]), "kind", "vllm", "", "") or '
        'label_replace(count_over_time(tgi_batch_current_size{}[300s]), "kind", "tgi", "", "")'
    )


def test_a_mixed_fleet_shares_the_budget_by_the_series_of_each_kind() -> None:
    mixed = Fleet(3, {"vllm": 2 * WEEK, "llamacpp": WEEK}, 0, WEEK, 15.0, frozenset())
    # 2 engines of 68 series and one of 4, a week long each
    assert mixed.series_seconds(WINDOWS) == (2 * 68 + 5) * WEEK
    assert mixed.most_series(WINDOWS) == 3 * 68
    assert [metrics.engine for metrics in mixed.kinds] == ["llamacpp", "vllm"]


def test_what_no_kind_exposes_is_not_asked_for() -> None:
    llama = Selectors({}, (METRICS["llamacpp"],))
    assert llama.configs({"a"}) is None
    assert llama.answers({"a"}) is None
    assert "sglang:max_total_num_tokens|" in (Selectors({}, (METRICS["sglang"],)).configs({"a"}) or "")
