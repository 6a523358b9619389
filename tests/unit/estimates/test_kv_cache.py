"""Bytes of a token and the pool that follows from memory, against sums done by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, GpuInfo, ModelInfo, ReportedPool
from advisor.estimates.kv_cache import (
    kv_bytes_per_token,
    kv_pool_relative_error,
    kv_pool_tokens,
    kv_pool_tokens_predicted,
)
from tests.unit.estimates.kv.models import (
    DEEPSEEK_V3,
    LLAMA_8B,
    LLAMA_70B,
    QWEN3_6_27B,
    QWEN3_6_35B,
    QWEN3_8B,
    QWEN3_235B,
)
from tests.unit.estimates.kv.models import serving as evidence

CHAT_70B = evidence(
    stated=ModelInfo(weights_bytes=70e9, kv_bytes_per_token=327_680),
    gpu=GpuInfo(memory_bytes=80e9, headroom_bytes=8e9),
    gpu_memory_utilization=0.92,
    tensor_parallel_size=4,
)


@pytest.mark.parametrize(
    ("config", "flags", "size"),
    [
        (LLAMA_8B, {}, 131_072),  # 32 x 8 x 128 x 2 x 2
        (LLAMA_70B, {}, 327_680),  # 80 x 8 x 128 x 2 x 2
        (LLAMA_70B, {"tensor_parallel_size": 8}, 327_680),
        (LLAMA_70B, {"tensor_parallel_size": 16}, 655_360),  # each of 16 ranks keeps one of the 8 heads
        (LLAMA_70B, {"kv_cache_dtype": "fp8"}, 163_840),
        (LLAMA_70B, {"kv_cache_dtype": "auto", "dtype": "float32"}, 655_360),
        (QWEN3_8B, {}, 147_456),  # head_dim 128 is stated: 4096 / 32 would give the same
        (QWEN3_235B, {"tensor_parallel_size": 4}, 192_512),  # 94 x 4 x 128 x 2 x 2
        ({"n_layer": 12, "n_head": 12, "n_embd": 768}, {}, 36_864),  # GPT-2: every head is a KV head
        ({"n_layer": 32, "n_head": 71, "hidden_size": 4544, "multi_query": True}, {}, 8_192),  # Falcon 7B: 32 x 64 x 4
        ({"text_config": LLAMA_70B, "vision_config": {"num_hidden_layers": 5}}, {}, 327_680),
        (LLAMA_8B | {"sliding_window": 4096, "use_sliding_window": False}, {}, 131_072),
        (LLAMA_8B | {"layer_types": ["full_attention"] * 32}, {}, 131_072),
        (LLAMA_8B, {"speculative_config": '{"method": "ngram"}'}, 131_072),
        (
            {"n_layers": 40, "n_heads": 48, "d_model": 6144, "attn_config": {"kv_n_heads": 8}, "model_type": "dbrx"},
            {},
            163_840,  # 40 x 8 x 128 x 2 x 2
        ),
    ],
)
def test_bytes_of_a_token(config: Mapping[str, Any], flags: Mapping[str, Any], size: int) -> None:
    assert kv_bytes_per_token(evidence(config, **flags)).value == size


def test_it_shows_its_derivation() -> None:
    assert kv_bytes_per_token(evidence(LLAMA_70B)).source == "80 layers x 8 KV heads x 128 x 2 (K and V) x 2 bytes"
    source = kv_bytes_per_token(evidence(LLAMA_70B, tensor_parallel_size=16)).source
    assert source == "80 layers x 16 copies of 8 KV heads x 128 x 2 (K and V) x 2 bytes"
    assert kv_pool_tokens_predicted(CHAT_70B).source == (
        "4 x (80 GB x 0.92 - 17.5 - 8) = 192.4 GB / 327,680 bytes a token"
    )


def test_what_is_not_known_says_what_to_do() -> None:
    fact = kv_bytes_per_token(evidence(LLAMA_8B | {"model_type": "brand_new"}))
    assert fact.value is None
    assert "model type 'brand_new' is not known here: state kv_per_token" in (fact.unknown or "")
    hybrid = evidence(QWEN3_6_35B, version="0.24.0", max_model_len=4096)
    assert "a sequence takes no fixed number of bytes a token" in (kv_bytes_per_token(hybrid).unknown or "")


def test_a_draft_of_unknown_depth_gives_an_interval() -> None:
    fact = kv_bytes_per_token(evidence(LLAMA_8B, speculative_config='{"method": "eagle"}'))
    assert (fact.value, fact.low, fact.high) == (33 * 4096, 32 * 4096, 34 * 4096)


def test_a_stated_figure_comes_first_and_nothing_gives_unknown() -> None:
    assert kv_bytes_per_token(evidence(stated=ModelInfo(config=LLAMA_8B, kv_bytes_per_token=70_272))).value == 70_272
    assert "neither" in (kv_bytes_per_token(evidence()).unknown or "")


def test_the_worked_example_from_total_memory() -> None:
    predicted = kv_pool_tokens_predicted(CHAT_70B)
    assert predicted.value == 587_158  # 192.4e9 / 327,680 = 587,158.2
    assert predicted.low == 489_501  # 4 x (73.6 - 17.5 - 16) = 160.4 GB
    assert predicted.high == 684_814  # 4 x (73.6 - 17.5) = 224.4 GB


def test_the_default_utilization_follows_the_version() -> None:
    gpu, model = GpuInfo(memory_bytes=80e9, headroom_bytes=8e9), ModelInfo(weights_bytes=16e9, kv_bytes_per_token=1e5)
    pools = [kv_pool_tokens_predicted(evidence(stated=model, gpu=gpu, version=v)) for v in ("0.19.1", "0.20.0", None)]
    # 80 x 0.9 - 16 - 8 = 48 GB; 80 x 0.92 - 24 = 49.6 GB
    assert [pool.value for pool in pools] == [480_000, 496_000, None]
    assert "state either" in (pools[2].unknown or "")


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (evidence(LLAMA_8B), "gpu.kv_available"),
        (evidence(LLAMA_8B, gpu=GpuInfo(memory_bytes=80e9), gpu_memory_utilization=0.9), "model.weights"),
        (evidence(LLAMA_8B, gpu=GpuInfo(kv_available_bytes=1e3), block_size=16), "not one block fits"),
        (evidence(LLAMA_8B | {"model_type": "brand_new"}, available_gib=1), "'brand_new' is not known here"),
        (
            evidence(
                stated=ModelInfo(weights_bytes=140e9, kv_bytes_per_token=1e5),
                gpu=GpuInfo(memory_bytes=80e9, headroom_bytes=8e9),
                gpu_memory_utilization=0.9,
            ),
            "no memory is left for a cache",
        ),
        (
            evidence(
                stated=ModelInfo(weights_bytes=1e9, kv_bytes_per_token=1e5),
                gpu=GpuInfo(memory_bytes=80e9, headroom_bytes=8e9),
                engine="sglang",
                gpu_memory_utilization=0.9,
            ),
            "is not shared out by vLLM's rule",
        ),
    ],
)
def test_no_pool_is_predicted_where_a_part_is_missing(case: Evidence, reason: str) -> None:
    assert reason in (kv_pool_tokens_predicted(case).unknown or "")


def test_decode_context_parallelism_spreads_the_tokens_of_a_sequence() -> None:
    alone = evidence(DEEPSEEK_V3, available_gib=10, tensor_parallel_size=8, block_size=64)
    spread = evidence(
        DEEPSEEK_V3, available_gib=10, tensor_parallel_size=8, block_size=64, decode_context_parallel_size=8
    )
    one = kv_pool_tokens_predicted(alone).number or 0
    assert one == math.floor(10 * 2**30 / (70_272 * 64)) * 64
    assert kv_pool_tokens_predicted(spread).number == 8 * one


def test_the_error_from_total_memory_has_the_interval_of_the_headroom() -> None:
    case = Evidence(
        **{name: getattr(CHAT_70B, name) for name in ("name", "window", "flags", "model", "gpu")},
        reported_pool=ReportedPool(587_000, "log"),
    )
    error = kv_pool_relative_error(case)
    assert error.number == pytest.approx(158 / 587_000)
    assert error.low == pytest.approx(489_501 / 587_000 - 1)
    assert error.high == pytest.approx(684_814 / 587_000 - 1)


def test_without_a_report_there_is_no_error() -> None:
    assert kv_pool_tokens(CHAT_70B).is_unknown
    assert kv_pool_relative_error(CHAT_70B).is_unknown
    assert kv_pool_tokens(evidence(reported=8192)).value == 8192
    assert kv_pool_tokens(evidence(reported=8192)).source == "start-up log"


def test_memory_that_the_engine_was_told_is_taken_exactly() -> None:
    # the start-up log of a tiny model: 1 GiB at 512 bytes a token
    case = evidence(stated=ModelInfo(kv_bytes_per_token=512), kv_cache_memory_bytes=2**30)
    assert kv_pool_tokens_predicted(case).value == 2_097_152


def test_blocks_that_somebody_counted_are_taken_whatever_the_memory() -> None:
    known = evidence(LLAMA_8B, available_gib=10, num_gpu_blocks_override=512, block_size=16)
    assert kv_pool_tokens_predicted(known).value == 8192
    open_size = evidence(LLAMA_8B, available_gib=10, num_gpu_blocks_override=512)
    assert "state block_size" in (kv_pool_tokens_predicted(open_size).unknown or "")


def test_dp_attention_splits_heads_over_a_part_of_the_ranks() -> None:
    # 8 ranks, 4 workers of attention: two ranks share 4 KV heads; 94 layers x 2 heads x 512 bytes on each
    case = evidence(
        QWEN3_235B,
        engine="sglang",
        available_gib=10,
        tensor_parallel_size=8,
        data_parallel_size=4,
        enable_dp_attention=True,
    )
    assert kv_bytes_per_token(case).value == 94 * 4 * 128 * 2 * 2
    assert kv_pool_tokens_predicted(case).value == 10 * 2**30 // (94 * 2 * 512)


def test_blocks_are_whole_only_where_their_size_is_known() -> None:
    model = ModelInfo(kv_bytes_per_token=1e6)
    gpu = GpuInfo(kv_available_bytes=100e6)
    assert kv_pool_tokens_predicted(evidence(stated=model, gpu=gpu)).value == 100
    assert kv_pool_tokens_predicted(evidence(stated=model, gpu=gpu, block_size=16)).value == 96


def test_the_fullest_pipeline_stage_decides() -> None:
    even = evidence(LLAMA_70B, available_gib=10, pipeline_parallel_size=4)
    uneven = evidence(LLAMA_70B | {"num_hidden_layers": 81}, available_gib=10, pipeline_parallel_size=4)
    # 10 GiB a stage; 20 layers, or 21 on the fullest, of 4,096 bytes
    assert kv_pool_tokens_predicted(even).value == math.floor(10 * 2**30 / (20 * 4096))
    assert kv_pool_tokens_predicted(uneven).value == math.floor(10 * 2**30 / (21 * 4096))


@given(
    layers=st.integers(1, 120),
    kv_heads=st.sampled_from([1, 2, 4, 8, 16]),
    tensor=st.sampled_from([1, 2, 4, 8, 16]),
    head_dim=st.sampled_from([64, 96, 128, 256]),
)
def test_more_ranks_never_store_less(layers: int, kv_heads: int, tensor: int, head_dim: int) -> None:
    config = {
        "num_hidden_layers": layers,
        "num_attention_heads": 64,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
    }
    alone = kv_bytes_per_token(evidence(config)).number
    split = kv_bytes_per_token(evidence(config, tensor_parallel_size=tensor)).number
    assert alone is not None
    assert split == alone * max(1, tensor // kv_heads)


@given(
    available=st.floats(0.5, 100),
    more=st.floats(1, 4),
    limit=st.integers(1_000, 262_144),
    version=st.sampled_from(["0.19.0", "0.24.0", "0.32.0", None]),
    tensor=st.sampled_from([1, 2, 4]),
)
def test_the_pool_of_a_hybrid_grows_with_its_memory_and_never_with_its_bytes(
    available: float, more: float, limit: int, version: str | None, tensor: int
) -> None:
    def bounds(gib: float, cache: str) -> list[float]:
        known: dict[str, Any] = {"max_model_len": limit, "tensor_parallel_size": tensor, "kv_cache_dtype": cache}
        pool = kv_pool_tokens_predicted(evidence(QWEN3_6_27B, available_gib=gib, version=version, **known))
        return [b for b in (pool.number, pool.low, pool.high) if b is not None]

    few, many = bounds(available, "auto"), bounds(available * more, "auto")
    assert all(math.isfinite(bound) and bound >= 0 for bound in few)
    assert not few or (many and min(many) >= min(few) and max(many) >= max(few))


@given(gib=st.floats(0.5, 100), config=st.sampled_from([LLAMA_8B, QWEN3_8B, DEEPSEEK_V3]))
def test_fewer_bytes_an_element_never_shrink_the_pool(gib: float, config: Mapping[str, Any]) -> None:
    pools = [
        kv_pool_tokens_predicted(evidence(config, available_gib=gib, kv_cache_dtype=cache)).number or 0
        for cache in ("bfloat16", "fp8")
    ]
    assert 2 * pools[0] <= pools[1] <= 2 * pools[0] + 1


@given(
    memory=st.integers(10**9, 10**12),
    per_token=st.integers(1_000, 10**6),
    block=st.sampled_from([1, 16, 64]),
    unit=st.sampled_from([2**10, 2**20, 2**30]),
)
def test_the_unit_of_measurement_changes_nothing(memory: int, per_token: int, block: int, unit: int) -> None:
    def pool(scale: float) -> float | None:
        sizes = ModelInfo(kv_bytes_per_token=per_token / scale)
        gpu = GpuInfo(kv_available_bytes=memory / scale)
        return kv_pool_tokens_predicted(evidence(stated=sizes, gpu=gpu, block_size=block)).number

    assert pool(1) == pool(unit) == memory // (per_token * block) * block
