"""All estimates together: the numbers of the example, and evidence of any shape."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from advisor.domain.catalogue import CATALOGUE
from advisor.domain.evidence import (
    COUNTERS,
    CounterWindows,
    EngineSeries,
    Evidence,
    FlagValue,
    GpuInfo,
    HttpOutcomes,
    LatencySample,
    ModelInfo,
    ReportedPool,
    RequestLog,
    Samples,
    Slo,
    StatedPercentiles,
    as_floats,
)
from advisor.domain.fact import Fact, FactSheet, computed, measured
from advisor.domain.histogram import Buckets, Floats, JointCounts, TokenCounts
from advisor.domain.policy import Policy
from advisor.domain.sweep import Sweep, SweepPoint
from advisor.estimates import estimate
from tests.unit.estimates.evidence import NOTHING, engine, flags, gauges, windows

PLANNED = replace(
    NOTHING,
    slo=Slo(tpot_seconds=0.040),
    flags=flags(gpu_memory_utilization=0.92, tensor_parallel_size=4, max_num_seqs=256, max_num_batched_tokens=2048),
    model=ModelInfo(weights_bytes=70e9, kv_bytes_per_token=320 * 1024, max_context_tokens=1_048_576),
    gpu=GpuInfo(memory_bytes=80e9, headroom_bytes=8e9),
    percentiles=StatedPercentiles({50.0: 1400, 90.0: 3800, 99.0: 6200, 99.9: 9500}),
    sweep=Sweep(tuple(SweepPoint(n, 1 / rate) for n, rate in ((8, 62), (24, 41), (40, 26), (48, 19))), "file"),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recommended_max_model_len", 12_288),
        ("max_model_len_cost_ratio", pytest.approx(85.33, abs=0.005)),
        ("kv_pool_tokens_predicted", 587_158),
        ("memory_ceiling_guaranteed", 47),
        ("latency_ceiling", 40),
        ("recommended_max_num_seqs", 40),
        ("next_max_num_seqs", 40),
        ("binding_ceiling", "latency"),
        ("prefill_tokens_per_step_left", 2_008),
    ],
)
def test_the_planned_chat_deployment(name: str, value: float | str) -> None:
    assert estimate(PLANNED, Policy())[name].value == value


def test_what_is_stated_is_used_where_nothing_tells_it_and_is_labelled() -> None:
    stated = {"running_p95": measured(8, source="dashboard"), "waiting_p95": measured(30, source="dashboard")}
    by_hand = estimate(replace(NOTHING, stated=stated), Policy())["running_p95"]
    assert (by_hand.value, by_hand.basis) == (8, "assumed")
    read = replace(NOTHING, stated=stated, engines=(engine(gauges([5.0] * 100)),))
    measured_here = estimate(read, Policy())["running_p95"]
    assert (measured_here.value, measured_here.basis) == (5, "measured")


def test_an_engine_that_left_says_nothing_of_the_present() -> None:
    facts = estimate(replace(NOTHING, engines=(engine(),), replicas=1), Policy())
    known = {name for name, fact in facts.items() if not fact.is_unknown}
    assert known == {"replicas", "server_failure", "serving_role"}


def test_one_scrape_since_the_start_is_no_load_over_time() -> None:
    counted = {"itl_count": [900.0], "itl_sum": [9.0], "steps": [300.0], "finished": [50.0], "preemptions": [0.0]}
    one = engine(gauges([5.0], 1.0, 0.9), windows(counted, seconds=86_400), lifetime=True)
    facts = estimate(replace(NOTHING, engines=(one,), replicas=1, flags=flags(max_num_seqs=64)), Policy())
    for name in ("running_p95", "waiting_share", "kv_usage_p95", "time_at_sequence_cap", "demand_over_capacity"):
        assert facts[name].is_unknown
    assert facts["preempted_share"].value == 0


FINITE = st.floats(0, 1e6, allow_nan=False)
TOKENS = st.integers(0, 300_000)
SEEDS = st.integers(0, 2**32 - 1)


def histogram(random: np.random.Generator, scale: float) -> Buckets:
    edges = as_floats(scale * np.unique(random.integers(1, 50, random.integers(0, 6))))
    counts = random.choice([0.0, 0.5, 3.0, 900.0, 1e6], edges.size + 1)
    return Buckets(edges, counts, None if random.random() < 0.3 else float(random.choice([0.0, 1.0, 1e6])))


def increases(random: np.random.Generator, size: int) -> Floats:
    return as_floats(
        random.choice([0.0, random.choice([1.0, 60.0, 1e5]), math.nan], size, p=[0.2, 0.6, 0.2]) * random.random()
    )


def scraped(random: np.random.Generator, n: int) -> Samples:
    running = np.floor(random.uniform(0, random.choice([0.5, 40.0, 2_000.0]), n))
    waiting = np.where(random.random(n) < random.random(), math.nan, np.floor(random.uniform(0, 9, n)))
    usage = None if random.random() < 0.3 else random.uniform(0, 1, n)
    return Samples(as_floats(15.0 * np.arange(n)), as_floats(running), as_floats(waiting), usage)


def counted(random: np.random.Generator, n: int, names: set[str]) -> CounterWindows:
    start = as_floats(random.choice([15.0, 60.0, 3_600.0]) * np.arange(n + 1))
    edges = np.array([0.02, 0.05, 0.1])
    tpot = np.floor(random.uniform(0, 50, (n, 4))) if random.random() < 0.5 else None
    deltas = {name: increases(random, n) for name in sorted(names)}
    return CounterWindows(start[:-1], start[1:], deltas, None if tpot is None else edges, tpot)


@st.composite
def engines(draw: st.DrawFn) -> EngineSeries:
    random = np.random.default_rng(draw(SEEDS))
    kinds = draw(st.sets(st.sampled_from(["ttft", "itl", "tpot", "queue", "prompt_tokens", "output_tokens"])))
    found = {kind: histogram(random, 100.0 if kind.endswith("tokens") else 0.01) for kind in sorted(kinds)}
    return EngineSeries(
        instance=draw(st.sampled_from("ab")),
        engine=draw(st.sampled_from("01")),
        epoch_start=0.0,
        samples=scraped(random, draw(st.sampled_from([0, 1, 40, 600]))),
        windows=counted(random, draw(st.sampled_from([0, 1, 5, 60])), draw(st.sets(st.sampled_from(COUNTERS)))),
        lengths={kind: one for kind, one in found.items() if kind.endswith("tokens")},
        latencies={kind: one for kind, one in found.items() if not kind.endswith("tokens")},
        lifetime=draw(st.booleans()),
    )


@st.composite
def pairs(draw: st.DrawFn) -> JointCounts:
    rows = draw(st.lists(st.tuples(TOKENS, st.integers(0, 30_000), st.integers(1, 20_000)), max_size=6))
    return JointCounts.of(*([row[i] for row in rows] for i in range(3)))


COUNTED = st.lists(TOKENS, max_size=5).map(TokenCounts.of)


@st.composite
def samples(draw: st.DrawFn) -> LatencySample:
    random, n = np.random.default_rng(draw(SEEDS)), draw(st.integers(0, 5))
    ttft, tpot = (as_floats(random.choice([1e-4, 0.03, 9.0, math.nan], n)) for _ in range(2))
    levels = random.integers(1, 500, n)
    return LatencySample(ttft, tpot, levels, levels + 1, random.integers(1, 500, n))


@st.composite
def logs(draw: st.DrawFn) -> RequestLog:
    few = st.integers(0, 1_000)
    return RequestLog(
        served=draw(pairs()),
        declared=draw(COUNTED),
        refused_needs=draw(COUNTED),
        cut=draw(COUNTED),
        refused=draw(few),
        failed=draw(few),
        without_usage=draw(few),
        first_seconds=0.0,
        last_seconds=draw(FINITE),
        arrivals=draw(st.dictionaries(st.integers(0, 100).map(lambda k: 300 * k), few, max_size=6)),
        latency=draw(st.none() | samples()),
        source="log",
    )


FLAG_VALUES: st.SearchStrategy[FlagValue] = st.sampled_from([0, 1, 16, 4_096, 10**9, -1, True, 0.9, "auto"])
FLAG_NAMES = ("max_num_seqs", "max_num_active_seqs", "max_model_len", "max_num_batched_tokens", "data_parallel_size")
SECONDS = st.none() | st.sampled_from([1e-6, 0.02, 0.04, 3.0])
POINTS = st.builds(
    SweepPoint, st.floats(0.01, 500), st.floats(0, 2, allow_nan=False) | st.just(math.nan), st.none(), st.none()
)


@st.composite
def evidence(draw: st.DrawFn) -> Evidence:
    configs: st.SearchStrategy[dict[str, Any] | None] = st.sampled_from(
        [None, {}, {"max_position_embeddings": 4096}, {"text_config": None, "rope_scaling": []}]
    )
    return replace(
        NOTHING,
        replicas=draw(st.none() | st.integers(0, 5)),
        workload=draw(st.sampled_from(["interactive", "batch"])),
        slo=Slo(draw(SECONDS), draw(SECONDS), draw(SECONDS), draw(st.sampled_from([50.0, 99.0, 100.0]))),
        flags=flags(**draw(st.dictionaries(st.sampled_from(FLAG_NAMES), FLAG_VALUES))),
        model=ModelInfo(draw(configs), max_context_tokens=draw(st.none() | TOKENS)),
        reported_pool=draw(st.none() | st.builds(ReportedPool, st.integers(0, 10**7), st.just("log"))),
        percentiles=draw(st.none() | st.builds(StatedPercentiles, st.dictionaries(st.just(99.9), TOKENS.map(float)))),
        totals=draw(st.none() | COUNTED),
        joint=draw(st.none() | pairs()),
        log=draw(st.none() | logs()),
        engines=tuple(draw(st.lists(engines(), max_size=3))),
        http=draw(st.none() | st.builds(HttpOutcomes, FINITE, FINITE, FINITE)),
        sweep=draw(st.none() | st.builds(Sweep, st.lists(POINTS, max_size=4).map(tuple), st.just("file"))),
        max_concurrency_seen=draw(st.none() | st.integers(0, 1_000)),
    )


POLICIES = st.builds(
    Policy, st.sampled_from([50.1, 99.9, 99.999]), st.sampled_from([0.0, 0.25]), st.sampled_from([1e-9, 0.01, 0.49])
)


def numbers(fact: Fact) -> list[float]:
    values = (fact.value if isinstance(fact.value, int | float) else None, fact.low, fact.high)
    return [v for v in values if v is not None]


# Without shrinking: evidence is large, and its seeds would not shrink to anything simpler.
@settings(max_examples=60, deadline=None, phases=[Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck))
@given(evidence(), POLICIES)
def test_any_evidence_yields_every_fact_without_a_number_that_is_none(seen: Evidence, policy: Policy) -> None:
    facts = estimate(seen, policy)
    assert list(facts) == list(CATALOGUE)
    for name, fact in facts.items():
        assert all(math.isfinite(v) for v in numbers(fact)), name
        # exactly one of: a value or bounds, or a reason
        assert (fact.unknown is None) == bool(numbers(fact) or isinstance(fact.value, str)), name
        assert fact.low is None or fact.high is None or fact.low <= fact.high, name
    check_advised(facts, seen)


def check_advised(facts: FactSheet, seen: Evidence) -> None:
    limit = facts["recommended_max_model_len"].number
    assert limit is None or limit >= 1
    for name in ("recommended_max_num_seqs", "next_max_num_seqs", "recommended_replicas", "budget_ceiling"):
        value = facts[name].number
        assert value is None or value == int(value) >= 1, name
    if seen.slo == replace(seen.slo, tpot_seconds=None):
        assert facts["latency_ceiling"].is_unknown


@given(st.sampled_from(sorted(set(CATALOGUE) - {"binding_ceiling"})), FINITE)
def test_any_stated_number_is_taken(name: str, value: float) -> None:
    facts = estimate(replace(PLANNED, stated={name: computed(value, source="by hand")}), Policy())
    assert all(math.isfinite(v) for fact in facts.values() for v in numbers(fact))
