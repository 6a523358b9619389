from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact
from advisor.estimates import load
from tests.unit.estimates.evidence import GONE, NOTHING, engine, flags, gauges, latencies, log, sheet, windows

NAN = float("nan")


def facts(evidence: Evidence, **known: float) -> dict[str, Fact]:
    return load.facts(evidence, sheet(**known))


def busy(running: list[float], waiting: list[float] | float = 0.0, **values: int) -> Evidence:
    return replace(NOTHING, engines=(engine(gauges(running, waiting)),), flags=flags(**values))


def test_percentiles_are_over_engine_and_scrape_pairs() -> None:
    two = replace(NOTHING, engines=(engine(gauges([10.0] * 95)), engine(gauges([30.0] * 5), instance="other:8000")))
    out = facts(two)
    # 95 of 100 readings are 10: the 95th percentile lies 5 % of the way to the next one
    assert out["running_p95"].value == pytest.approx(np.quantile([10.0] * 95 + [30.0] * 5, 0.95))
    assert out["running_p95"].n == 100
    assert out["running_max"].value == 30


def test_few_scrapes_tell_no_percentile() -> None:
    out = facts(busy([8.0] * 29))
    assert "29 scrapes; 30 are needed" in (out["running_p95"].unknown or "")
    assert out["waiting_share"].is_unknown
    assert out["running_max"].value == 8


def test_a_scrape_that_lacks_a_gauge_is_no_zero() -> None:
    out = facts(busy([NAN] * 50 + [9.0] * 50))
    assert (out["running_p95"].value, out["running_p95"].n) == (9.0, 50)
    assert facts(busy([NAN] * 50))["running_p95"].is_unknown


def test_time_at_the_cap_needs_somebody_waiting() -> None:
    # 40 of 100 scrapes at 16; in 30 of them requests wait
    pinned = busy([16.0] * 40 + [9.0] * 60, [2.0] * 30 + [0.0] * 70, max_num_seqs=16)
    out = facts(pinned)
    assert out["time_at_sequence_cap"].value == pytest.approx(0.3)
    assert out["waiting_share"].value == pytest.approx(0.3)


def test_the_smaller_of_two_caps_counts() -> None:
    assert load.sequence_cap(busy([], max_num_seqs=64, max_num_active_seqs=16)) == 16
    assert load.sequence_cap(busy([], max_num_seqs=64)) == 64
    assert load.sequence_cap(busy([], max_num_seqs=0)) is None
    assert facts(busy([16.0] * 40, 1.0))["time_at_sequence_cap"].unknown is not None


BATCHES = {"itl_count": [58_176.0], "steps": [7_416.0], "queue_sum": [500.0], "queue_count": [200.0]}


def test_one_scrape_bounds_the_time_at_the_cap() -> None:
    # 58,176 / 7,416 = 7.845 sequences a step; below a cap of 8 a step holds at most 7: 84.5 % of them are at it
    one = engine(counters=windows(BATCHES), lifetime=True)
    out = facts(replace(NOTHING, engines=(one,), flags=flags(max_num_seqs=8)))
    share = out["time_at_sequence_cap"]
    assert (share.value, share.high) == (None, 1.0)
    assert share.low == pytest.approx(0.845, abs=1e-3)
    assert out["running_max"].value == 8


def test_the_bound_of_two_engines_is_their_mean() -> None:
    idle = windows(BATCHES | {"itl_count": [7_416.0]})
    engines = tuple(engine(counters=w, lifetime=True, name=str(i)) for i, w in enumerate((windows(BATCHES), idle)))
    share = facts(replace(NOTHING, engines=engines, flags=flags(max_num_seqs=8)))["time_at_sequence_cap"]
    assert share.low == pytest.approx(0.845 / 2, abs=1e-3)


@pytest.mark.parametrize(
    "change",
    [
        # nobody queued for long; nothing counted; more sequences a step than the cap admits; far below it
        {"queue_sum": [5.0]},
        {"queue_count": [0.0]},
        {"itl_count": [0.0]},
        {"itl_count": [100_000.0]},
        {"itl_count": [20_000.0]},
    ],
)
def test_a_batch_that_bounds_nothing(change: dict[str, list[float]]) -> None:
    one = engine(counters=windows(BATCHES | change), lifetime=True)
    assert facts(replace(NOTHING, engines=(one,), flags=flags(max_num_seqs=8)))["time_at_sequence_cap"].is_unknown


def test_usage_cannot_exceed_what_the_cap_admits() -> None:
    one = replace(NOTHING, engines=(engine(lifetime=True),), flags=flags(max_num_seqs=8, max_model_len=4_096))
    usage = facts(one, kv_pool_tokens=65_536)["kv_usage_p95"]
    assert (usage.value, usage.low, usage.high) == (None, 0.0, 0.5)
    assert facts(one, kv_pool_tokens=32_768)["kv_usage_p95"].is_unknown


def test_preemptions_may_exceed_what_finished() -> None:
    counted = engine(counters=windows({"preemptions": [30.0, 10.0], "finished": [10.0, 10.0]}))
    assert facts(replace(NOTHING, engines=(counted,)))["preempted_share"].value == 2.0


def test_ratios_take_both_counters_of_the_same_engines() -> None:
    whole = engine(counters=windows({"preemptions": [1.0], "finished": [100.0]}))
    half = engine(counters=windows({"finished": [9_900.0]}), name="1")
    assert facts(replace(NOTHING, engines=(whole, half)))["preempted_share"].value == 0.01


@pytest.mark.parametrize(
    "counters", [windows({"preemptions": [0.0], "finished": [0.0]}), windows({"finished": [9.0]}), GONE]
)
def test_absent_preemptions_are_not_none(counters: object) -> None:
    assert isinstance(counters, type(GONE))
    assert facts(replace(NOTHING, engines=(engine(counters=counters),)))["preempted_share"].is_unknown


def test_the_prefix_cache_that_is_off_hits_nothing() -> None:
    off = replace(NOTHING, flags=flags(enable_prefix_caching=False))
    assert (facts(off)["prefix_cache_hit_rate"].value, facts(off)["prefix_cache_hit_rate"].source) == (0.0, "disabled")
    assert facts(NOTHING)["prefix_cache_hit_rate"].is_unknown


def test_imbalance_is_the_busiest_over_the_mean() -> None:
    engines = tuple(engine(gauges([n] * 40), name=str(i)) for i, n in enumerate((30.0, 10.0)))
    assert facts(replace(NOTHING, engines=engines))["replica_imbalance"].value == 1.5


def test_imbalance_needs_two_that_were_read() -> None:
    read, blind = engine(gauges([30.0] * 40)), engine(gauges([NAN] * 40), name="1")
    assert facts(replace(NOTHING, engines=(read, blind)))["replica_imbalance"].is_unknown
    assert facts(replace(NOTHING, engines=(read, engine(name="1"))))["replica_imbalance"].is_unknown


def test_data_parallel_engines_share_an_address() -> None:
    engines = tuple(engine(instance=host, name=rank) for host in "ab" for rank in "0123")
    assert load.engines_per_instance(replace(NOTHING, engines=engines)) == 4
    assert load.engines_per_instance(replace(NOTHING, flags=flags(data_parallel_size=8))) == 8
    assert load.engines_per_instance(NOTHING) == 1


def test_a_log_tells_the_most_running_per_engine() -> None:
    seen = replace(NOTHING, log=log(latency=latencies((0.1, 0.01, 24, 500))), flags=flags(data_parallel_size=2))
    assert facts(seen)["running_max"].value == 12


def test_how_long_was_observed() -> None:
    counted = engine(counters=windows({"finished": [1.0] * 60}))
    assert facts(replace(NOTHING, engines=(counted,)))["observed_seconds"].value == 3_600
    assert facts(replace(NOTHING, engines=(engine(),)))["observed_seconds"].is_unknown
    printed = engine(gauges([8.0] * 61, every=10.0))
    assert facts(replace(NOTHING, engines=(printed,)))["observed_seconds"].value == 600, "its own log has no counters"
    assert facts(busy([], max_num_seqs=8))["observed_seconds"].value == 0


def test_time_at_the_next_cap_counts_scrapes_that_would_fill_it() -> None:
    # 16 running with 0, 3, 9 and 19 waiting are 16, 19, 25 and 35: two of four reach 24. Ten rounds: 40 scrapes.
    one = engine(gauges([16.0] * 40, [0.0, 3.0, 9.0, 19.0] * 10))
    evidence = replace(NOTHING, engines=(one,))
    assert load.time_at_next_cap(evidence, sheet(next_max_num_seqs=24)).number == 0.5
    assert load.time_at_next_cap(evidence, sheet()).is_unknown


def test_a_cache_that_is_kept_full_on_purpose_is_no_usage_by_requests() -> None:
    running = np.resize([4.0, 12.0], 400)
    full = engine(gauges(running, usage=0.999))
    fact = load.facts(replace(NOTHING, engines=(full,)), sheet())["kv_usage_p95"]
    assert "as offload keeps it" in (fact.unknown or "")
    # requests wait for it at one of the two: there it is full of them
    waits = engine(gauges(running, waiting=3.0, usage=0.999), instance="other:8000")
    both = load.facts(replace(NOTHING, engines=(full, waits)), sheet())["kv_usage_p95"]
    assert both.number == 0.999
