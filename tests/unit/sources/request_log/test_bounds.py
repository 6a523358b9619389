"""What keeps memory bounded: origins, retries, and the sample of latencies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pydantic import ValidationError

from advisor.domain.evidence import Window
from advisor.sources.request_log import LogOptions
from advisor.sources.request_log.batch import SERVED, Batch
from advisor.sources.request_log.latency import Latencies
from advisor.sources.request_log.origins import MAX_ORIGINS, Origins
from advisor.sources.request_log.retries import Retries

WINDOW = Window(0.0, 10_000.0)


def test_origins_beyond_the_bound_are_strangers() -> None:
    origins = Origins({}, lambda model, _: model, lambda _: 0.0, 0.0)
    codes = [origins[f"m{i}", "r"] for i in range(MAX_ORIGINS + 5)]
    assert codes[:3] == [1, 2, 3]
    assert codes[-5:] == [0] * 5
    assert origins.deployment_of(np.array([0, 1, 2])).tolist() == [-1, 0, 1]


def test_latencies_of_nobody_and_of_no_replica_never_count() -> None:
    origins = Origins({}, lambda model, _: model or None, lambda _: 5.0, 7.0)
    codes = np.array([origins["m", "r"], origins["m", ""], origins["", "r"]])
    assert origins.upstream_of(codes).tolist() == [0, -1, -1]
    assert origins.latency_since(codes).tolist() == [7.0, math.inf, math.inf]


def test_retries_are_forgotten_in_the_end() -> None:
    retries = Retries()
    first = ["id"], [0], [1]
    assert retries.repeated(*first, failed=-3) == []
    assert retries.repeated(*first, failed=-3) == [0]
    many = 1 << 16
    retries.repeated([f"other{i}" for i in range(many)], [0] * many, [1] * many, failed=-3)
    assert retries.repeated(*first, failed=-3) == []


def test_a_thinned_sample_is_repeatable_and_keeps_every_replica() -> None:
    origins = Origins({}, lambda model, _: model, lambda _: 0.0, 0.0)
    replicas = [origins["m", "r1"], origins["m", "r2"]]
    # A balancer in turn: time to first token tells the replicas apart.
    none, two = np.full(8000, -1, np.int64), np.full(8000, 2.0)
    batch = Batch(
        completed=np.arange(100.0, 8100.0),
        ttft=np.tile([0.5, 1.0], 4000),
        duration=two,
        prompt=np.full(8000, 5, np.int64),
        output=np.full(8000, 11, np.int64),
        declared=none,
        cut=np.zeros(8000, bool),
        origin=np.tile(np.array(replicas, np.int64), 4000),
        outcome=np.full(8000, SERVED, np.int64),
        needed=none,
        client=np.zeros(8000, np.int64),
    )
    thousands = [batch.where(np.arange(8000) // 1000 == part) for part in range(8)]

    def sampled() -> dict[float, int]:
        latencies = Latencies(WINDOW, max_sampled=1000)
        for part in thousands:
            latencies.add(part, origins)
        sample = latencies.sample(0)
        assert sample is not None
        seen = np.unique(np.round(sample.ttft_seconds, 2))
        return {t: int(sample.counts[np.abs(sample.ttft_seconds - t) < 0.01].sum()) for t in seen.tolist()}

    counts = sampled()
    assert counts == sampled()
    # 8,000 halved three times are 1,001, and so are halved once more.
    assert list(counts.values()) == pytest.approx([250, 250], abs=5)


def test_options_are_checked() -> None:
    with pytest.raises(ValidationError, match="no log format; choose one of auto, litellm, envoy"):
        LogOptions(paths=("x",), format="nginx")
    with pytest.raises(ValidationError, match="needs `fields`"):
        LogOptions(paths=("x",), format="mapped")
