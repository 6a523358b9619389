"""The cache on another number of GPUs: against what public start-ups printed, and by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, Flag, GpuInfo, ModelInfo
from advisor.domain.fact import Fact
from advisor.estimates.kv.memory import GIB
from advisor.estimates.kv_cache import kv_pool_tokens_predicted
from advisor.estimates.resharding import cache_left, pool_at
from tests.unit.estimates.kv.models import (
    DEEPSEEK_V3,
    LLAMA_8B,
    LLAMA_70B,
    QWEN2_7B,
    QWEN3_5_SMALL,
    QWEN3_8B,
)
from tests.unit.estimates.kv.models import serving as evidence

QWEN3_4B = QWEN3_8B | {"hidden_size": 2560}
CHAT_70B = evidence(
    stated=ModelInfo(weights_bytes=70e9, kv_bytes_per_token=327_680),
    gpu=GpuInfo(memory_bytes=80e9, headroom_bytes=8e9),
    gpu_memory_utilization=0.92,
    tensor_parallel_size=4,
)


def reporting(tokens: int, config: Mapping[str, Any], weights: float | None, **more: Any) -> Evidence:
    """An engine that reports its pool; nobody knows its GPU."""
    return evidence(stated=ModelInfo(config, weights_bytes=weights), reported=tokens, **more)


@pytest.mark.parametrize(
    ("config", "weights_gib", "tensor", "printed", "doubled"),
    [
        # dennislee22/vLLM-benchmarking: A100 80 GB at 0.25 and at 0.5, on one and on two
        (QWEN2_7B, 14.2488, 1, 93_872, 450_192),
        (QWEN2_7B, 14.2488, 1, 464_848, 1_192_160),
        # danielkorat/guidellm-bench: Qwen3 4B in fp8, on two and on four
        (QWEN3_4B, 4.28, 2, 265_920, 561_728),
    ],
)
def test_what_public_start_ups_printed_on_twice_the_gpus(
    config: Mapping[str, Any], weights_gib: float, tensor: int, printed: int, doubled: int
) -> None:
    pool = pool_at(reporting(printed, config, weights_gib * GIB, tensor_parallel_size=tensor), 2 * tensor)
    assert pool.number == pytest.approx(doubled, rel=0.011)
    assert pool.low is not None
    assert pool.high is not None
    assert pool.low < doubled < pool.high


def test_half_of_the_weights_leave_each_gpu() -> None:
    # 600,000 x 131,072 bytes = 78.6 GB on 2 GPUs: 39.3 and 8 of weights each; 43.3 on each of four, and 2.3 GiB unsure
    pool = pool_at(reporting(600_000, LLAMA_8B, 16e9, tensor_parallel_size=2), 4)
    assert pool.number == math.floor((2 * 600_000 * 131_072 + 16e9) / 131_072)
    assert pool.low == math.floor((2 * 600_000 * 131_072 + 16e9 - 4 * 2.3 * GIB) / 131_072)
    assert pool.high == math.floor((2 * 600_000 * 131_072 + 16e9 + 4 * 2.3 * GIB) / 131_072)


@pytest.mark.parametrize(
    ("config", "tensor", "size"),
    [
        (LLAMA_70B, 8, 327_680),
        (LLAMA_70B, 16, 655_360),  # 8 heads, twice each
        (DEEPSEEK_V3, 8, 562_176),  # a latent on each of 8
    ],
)
def test_what_cannot_be_split_is_kept_on_every_rank(config: Mapping[str, Any], tensor: int, size: int) -> None:
    case = replace(CHAT_70B, model=ModelInfo(config=config, weights_bytes=70e9))
    memory = tensor * (80e9 * 0.92 - 8e9) - 70e9
    assert pool_at(case, tensor).value == math.floor(memory / size)


def test_beyond_the_heads_only_the_weights_make_room() -> None:
    # 8 ranks, 8 heads, 100,000 tokens: on 16 the cache is kept twice, 100,000 + 140e9 / 655,360
    pool = pool_at(reporting(100_000, LLAMA_70B, 140e9, tensor_parallel_size=8), 16)
    assert pool.number == math.floor((2 * 100_000 * 327_680 + 140e9) / 655_360)
    assert "16 copies of 8 KV heads" in (pool.source or "")


def test_from_a_stated_size_alone_the_heads_may_not_divide() -> None:
    pool = pool_at(CHAT_70B, 8)
    # 8 x (73.6 - 8.75 - 8) = 454.8 GB; twice the headroom, and every head kept twice: 390.8 GB / 655,360
    assert (pool.value, pool.low, pool.high) == (1_387_939, 596_313, 1_583_251)
    assert "kv_per_token" in (pool_at(evidence(), 8).unknown or "")


def test_a_split_that_the_engine_refuses_has_no_pool() -> None:
    assert "cannot be split over 64 ranks" in (pool_at(evidence(LLAMA_8B), 64).unknown or "")
    assert "cannot be split over 8 ranks" in (
        pool_at(reporting(1_000, QWEN2_7B, 15e9, tensor_parallel_size=4), 8).unknown or ""
    )


def test_without_the_weights_there_is_a_least_pool_of_more_gpus_and_none_of_fewer() -> None:
    case = reporting(600_000, LLAMA_8B, None, tensor_parallel_size=2)
    assert (pool_at(case, 4).value, pool_at(case, 4).high) == (None, None)
    assert pool_at(case, 4).low == math.floor((2 * 600_000 * 131_072 - 4 * 2.3 * GIB) / 131_072)
    assert "bytes of the weights" in (pool_at(case, 1).unknown or "")


def test_printed_memory_stands_in_for_a_reported_pool() -> None:
    case = evidence(stated=ModelInfo(LLAMA_8B, weights_bytes=16 * GIB), gpu=GpuInfo(kv_available_bytes=20 * GIB))
    case = replace(case, flags={"tensor_parallel_size": Flag(2, "startup_log")})
    left = cache_left(case, 4)
    # 20 GiB and half of 8 GiB of weights, four times, each 2.3 GiB more or less
    assert left.number == 96 * GIB
    assert left.low == pytest.approx(4 * 21.7 * GIB)
    assert left.high == pytest.approx(4 * 26.3 * GIB)


def test_stages_share_weights_and_cache() -> None:
    # two stages of two ranks: 4 GB of weights a GPU, half of it leaves
    case = reporting(600_000, LLAMA_8B, 16e9, tensor_parallel_size=2, pipeline_parallel_size=2)
    assert pool_at(case, 4).number == math.floor((2 * 600_000 * 131_072 + 16e9) / 131_072)


@pytest.mark.parametrize(
    ("flags", "engine", "why"),
    [
        ({"num_gpu_blocks_override": 512}, "vllm", "num_gpu_blocks_override fixes the pool"),
        ({"max_total_tokens": 9_000}, "sglang", "max_total_tokens fixes the pool"),
        ({"enable_dp_attention": True}, "sglang", "data-parallel attention"),
        ({}, "tgi", "is not known"),
    ],
)
def test_where_memory_does_not_decide(flags: dict[str, Any], engine: str, why: str) -> None:
    case = reporting(100_000, LLAMA_8B, 16e9, engine=engine, tensor_parallel_size=1, **flags)
    assert why in (pool_at(case, 2).unknown or "")


def test_another_engine_that_fixes_weights_and_cache_together() -> None:
    case = reporting(100_000, LLAMA_8B, 16e9, engine="sglang", tensor_parallel_size=1)
    assert pool_at(case, 2).number == math.floor(200_000 + 16e9 / 131_072)


def test_memory_that_the_engine_is_told_stays_as_it_is() -> None:
    case = evidence(stated=ModelInfo(LLAMA_8B, weights_bytes=16e9), kv_cache_memory_bytes=2**34, tensor_parallel_size=1)
    left = cache_left(case, 2)
    assert (left.number, left.low, left.high) == (2**35, None, None)
    assert "can be added" in (left.source or "")


def test_a_cache_fixed_in_bytes_must_fit_beside_the_weights_of_fewer_ranks() -> None:
    # 140 GB of weights on four GPUs beside 50 GB of cache each: on two they take 70 GB
    def on(tensor: int, memory: float | None) -> Fact:
        fixed = evidence(
            stated=ModelInfo(LLAMA_8B, weights_bytes=140e9), kv_cache_memory_bytes=int(50e9), tensor_parallel_size=4
        )
        return cache_left(replace(fixed, gpu=GpuInfo(memory_bytes=memory)), tensor)

    assert on(2, 80e9).unknown == "70.00 GB of weights and 50.00 GB of cache do not fit a GPU of 80.00 GB"
    assert on(2, 140e9).number == 100e9
    assert on(8, 80e9).number == 400e9
    assert "needs the memory of a GPU" in (on(2, None).unknown or "")


def test_layers_of_several_kinds_double_with_their_blocks() -> None:
    case = reporting(100_000, QWEN3_5_SMALL, 4e9, version="0.24.0", max_model_len=32_768, tensor_parallel_size=1)
    # 100,000 / 32,768 x (61 + 3 blocks) = 195 of 6.68 MB; with 2 GB of weights less 989 of 3.34 MB on each of two
    assert pool_at(case, 2).number == math.floor(989 / 64 * 32_768)


def the_number(fact: Fact) -> float:
    assert fact.number is not None
    return fact.number


@given(
    tokens=st.integers(10_000, 5_000_000),
    weights=st.floats(1e9, 1e12),
    today=st.sampled_from([1, 2, 4]),
    config=st.sampled_from([LLAMA_8B, LLAMA_70B, QWEN3_8B, DEEPSEEK_V3]),
)
def test_the_pool_rises_with_the_gpus_and_heads_that_divide_more_than_double_it(
    tokens: int, weights: float, today: int, config: Mapping[str, Any]
) -> None:
    case = reporting(tokens, config, weights, tensor_parallel_size=today)
    pools = [the_number(pool_at(case, today * times)) for times in (1, 2, 4)]
    assert pools[0] == pytest.approx(tokens, abs=1)
    assert pools == sorted(pools)
    if config is not DEEPSEEK_V3:
        assert pools[1] >= 2 * tokens
    bounds = pool_at(case, 2 * today)
    assert (bounds.low or 0.0) <= pools[1] <= (bounds.high or 0.0)


@given(tensor=st.sampled_from([1, 2, 4]), memory=st.floats(100e9, 300e9), headroom=st.floats(0.5e9, 8e9))
def test_from_the_reported_pool_and_from_total_memory_it_is_the_same(
    tensor: int, memory: float, headroom: float
) -> None:
    case = replace(
        CHAT_70B,
        model=ModelInfo(LLAMA_70B, weights_bytes=70e9),
        gpu=GpuInfo(memory, headroom),
        flags={**CHAT_70B.flags, "tensor_parallel_size": Flag(tensor, "config")},
    )
    reported = the_number(kv_pool_tokens_predicted(case))
    told = evidence(stated=case.model, reported=int(reported), tensor_parallel_size=tensor)
    assert the_number(pool_at(told, 2 * tensor)) == pytest.approx(the_number(pool_at(case, 2 * tensor)), abs=4)
