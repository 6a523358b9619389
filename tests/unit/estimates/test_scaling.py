from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.evidence import Evidence, GpuInfo, ModelInfo, ReportedPool
from advisor.domain.fact import Fact
from advisor.estimates import scaling, sharding
from tests.unit.estimates.evidence import NOTHING, bounded, flags, sheet

LARGE = replace(
    NOTHING,
    flags=flags(tensor_parallel_size=4, gpu_memory_utilization=0.92),
    model=ModelInfo(weights_bytes=70e9, kv_bytes_per_token=327_680),
    gpu=GpuInfo(memory_bytes=80e9, headroom_bytes=8e9),
)


def options(evidence: Evidence, **known: float | Fact) -> tuple[scaling.Option, ...]:
    return scaling.options(evidence, {**sheet(**known), **sharding.facts(evidence, sheet())})


def test_each_option_has_the_pool_that_it_would_have() -> None:
    more, shard = options(LARGE, replicas=2, recommended_replicas=5, kv_pool_tokens=587_158)
    assert (more["replicas"], more["tensor_parallel_size"]) == (5, 4)
    assert (more["kv_pool_tokens"], more["kv_pool_tokens_all_replicas"]) == (587_158, 5 * 587_158)
    # 8 x (73.6 - 8.75 - 8) = 454.8 GB / 327,680
    assert (shard["replicas"], shard["tensor_parallel_size"]) == (2, 8)
    assert shard["kv_pool_tokens"] == 1_387_939
    assert shard["kv_pool_tokens_all_replicas"] == 2 * 1_387_939
    # from no headroom to twice of it, and the heads perhaps kept twice
    assert (shard["kv_pool_tokens_low"], shard["kv_pool_tokens_high"]) == (596_313, 1_583_251)


def test_at_least_one_replica_more_than_today() -> None:
    alone = replace(NOTHING, flags=flags(tensor_parallel_size=1))
    more, shard = options(alone)
    assert (more["replicas"], more["kv_pool_tokens"], more["kv_pool_tokens_all_replicas"]) == (2, None, None)
    assert "neither the model's config.json nor kv_per_token is given" in str(shard["unknown"])
    assert scaling.options(NOTHING, sheet(replicas=3, recommended_replicas=bounded(1, 9)))[0]["replicas"] == 4
    assert scaling.options(NOTHING, sheet(replicas=3, recommended_replicas=bounded(5, 9)))[0]["replicas"] == 5


@pytest.mark.parametrize(
    "evidence",
    [
        replace(LARGE, model=ModelInfo(weights_bytes=70e9)),
        replace(LARGE, model=ModelInfo(kv_bytes_per_token=327_680)),
        replace(LARGE, gpu=GpuInfo()),
        replace(LARGE, flags=flags(tensor_parallel_size=4)),
        replace(LARGE, model=ModelInfo(weights_bytes=700e9, kv_bytes_per_token=327_680)),
    ],
)
def test_a_pool_that_cannot_be_told_is_none_with_the_reason(evidence: Evidence) -> None:
    shard = options(evidence)[1]
    assert (shard["kv_pool_tokens"], shard["kv_pool_tokens_all_replicas"]) == (None, None)
    assert shard["unknown"]


def test_without_a_stated_headroom_the_option_has_bounds_only() -> None:
    shard = options(replace(LARGE, gpu=GpuInfo(memory_bytes=80e9)))[1]
    assert shard["kv_pool_tokens"] is None
    # 8 x (73.6 - 8.75) GB less 8 x 0.2 GiB, / 327,680
    assert shard["kv_pool_tokens_high"] == 1_578_009
    assert "unknown" not in shard


def test_options_tell_how_many_sequences_fit() -> None:
    known = sheet(
        replicas=2,
        memory_ceiling_expected=18,
        memory_ceiling_at_double_tp=74,
        weight_floor_tensor_parallel_size=4,
    )
    assert scaling.options(LARGE, known)[1]["weights_need_tensor_parallel_size"] == 4
    assert [option.get("sequences_per_replica") for option in scaling.options(LARGE, known)] == [18, 74]
    # bounds are no number of sequences
    unsure = sheet(memory_ceiling_expected=18, memory_ceiling_at_double_tp=bounded(29, None))
    assert "sequences_per_replica" not in scaling.options(LARGE, unsure)[1]


def test_a_reported_pool_tells_more_than_the_memory() -> None:
    reporting = replace(LARGE, reported_pool=ReportedPool(500_000, "metrics"), gpu=GpuInfo())
    shard = options(reporting, kv_pool_tokens=500_000)[1]
    # 2 x 500,000 + 70e9 / 327,680
    assert shard["kv_pool_tokens"] == 1_213_623
    alone = replace(reporting, model=ModelInfo(kv_bytes_per_token=327_680))
    shard = options(alone, kv_pool_tokens=500_000)[1]
    assert shard["kv_pool_tokens"] is None
    assert "kv_pool_tokens_low" in shard
    assert "kv_pool_tokens_high" not in shard
