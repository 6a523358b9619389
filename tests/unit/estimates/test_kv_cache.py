"""Pools that real engines printed at start-up are quoted with their public source; figures are facts, not text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, Flag, FlagValue, GpuInfo, ModelInfo, ReportedPool, Window
from advisor.estimates.kv_cache import (
    kv_bytes_per_token,
    kv_pool_relative_error,
    kv_pool_tokens,
    kv_pool_tokens_predicted,
)

LLAMA_8B: dict[str, Any] = {
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
}
LLAMA_70B = {
    "model_type": "llama",
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
}
QWEN3_8B = {
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_size": 4096,
}
QWEN3_235B = QWEN3_8B | {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 94,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
}
QWEN2_7B = {"num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "hidden_size": 3584}
PHI_4 = {"num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 10, "hidden_size": 5120}


def evidence(
    config: Mapping[str, Any] | None = None,
    *,
    available_gib: float | None = None,
    reported: int | None = None,
    gpu: GpuInfo | None = None,
    engine: str = "vllm",
    version: str | None = None,
    stated: ModelInfo | None = None,
    **flags: FlagValue,
) -> Evidence:
    return Evidence(
        "chat",
        Window(0, 1),
        engine=engine,
        engine_version=version,
        model=stated or ModelInfo(config=config),
        gpu=gpu or GpuInfo(kv_available_bytes=None if available_gib is None else available_gib * 2**30),
        reported_pool=None if reported is None else ReportedPool(reported, "start-up log"),
        flags={name: Flag(value, "startup_log") for name, value in flags.items()},
    )


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


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, "latent attention"),
        ({"sliding_window": 4096}, "a sliding window"),
        ({"layer_types": ["sliding_attention", "full_attention"]}, "layers of several kinds"),
        ({"layer_types": 7}, "layers of several kinds"),
        ({"full_attention_interval": 4}, "linear attention"),
        ({"hybrid_override_pattern": "MEM*"}, "state-space layers"),
        ({"num_kv_shared_layers": 10}, "layers that share their cache"),
        ({"is_encoder_decoder": True}, "an encoder"),
        ({"model_type": "brand_new"}, "model type 'brand_new' is not known here"),
        ({"v_head_dim": 64}, "keys and values differ"),
        ({"num_hidden_layers": None}, "lacks layers"),
        ({"num_attention_heads": "32"}, "lacks layers"),
        ({"quantization_config": {"kv_cache_scheme": {"num_bits": 8}}}, "declares a cache type"),
    ],
)
def test_other_architectures_are_unknown(change: dict[str, Any], reason: str) -> None:
    fact = kv_bytes_per_token(evidence(LLAMA_8B | change))
    assert fact.value is None
    assert reason in (fact.unknown or "")
    assert "state kv_per_token" in (fact.unknown or "")


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"kv_cache_dtype": "nvfp4"}, "element size of kv_cache_dtype 'nvfp4'"),
        ({"speculative_config": '{"method": "eagle"}'}, "speculative decoding (eagle)"),
        ({"speculative_config": "['mtp']"}, "speculative decoding (unreadable settings)"),
        ({"tensor_parallel_size": 3}, "cannot be split over 3 ranks"),
        ({"tensor_parallel_size": 64}, "cannot be split over 64 ranks"),
        ({"kv_cache_dtype_skip_layers": "0,1"}, "some layers keep another cache type"),
    ],
)
def test_flags_that_change_the_layout_make_it_unknown(flags: Mapping[str, Any], reason: str) -> None:
    assert reason in (kv_bytes_per_token(evidence(LLAMA_8B, **flags)).unknown or "")


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
        (evidence(LLAMA_8B, gpu=GpuInfo(memory_bytes=80e9), gpu_memory_utilization=0.9), "gpu.headroom"),
        (evidence(LLAMA_8B, available_gib=1, decode_context_parallel_size=2), "decode context parallelism"),
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
            "shares out GPU memory by another rule",
        ),
    ],
)
def test_no_pool_is_predicted_where_a_part_is_missing(case: Evidence, reason: str) -> None:
    assert reason in (kv_pool_tokens_predicted(case).unknown or "")


@pytest.mark.parametrize(
    ("config", "engine", "available_gib", "flags", "reported"),
    [
        # vllm-project/vllm#10517, RTX 3090
        (LLAMA_8B, "vllm", 3.81, {"block_size": 16}, 31_232),
        # Qwen3-8B on A100 40 GB, vLLM 0.9.2
        (QWEN3_8B, "vllm", 18.69, {"tensor_parallel_size": 1, "block_size": 16}, 136_080),
        # Phi-4, bitsandbytes weights, 80 GB
        (PHI_4, "vllm", 45.21, {"block_size": 16}, 237_040),
        # Qwen2-7B on A100 80 GB, vLLM 0.10.1.1, one and two GPUs
        (QWEN2_7B, "vllm", 24.83, {"tensor_parallel_size": 1, "block_size": 16}, 464_848),
        (QWEN2_7B, "vllm", 31.83, {"tensor_parallel_size": 2, "block_size": 16}, 1_192_160),
        # vllm-project/vllm#21348, SGLang on 4 x H100
        (QWEN3_235B, "sglang", 16.46, {"tensor_parallel_size": 4}, 367_404),
    ],
)
def test_pools_that_engines_printed_are_met_within_a_quarter_percent(
    config: Mapping[str, Any], engine: str, available_gib: float, flags: Mapping[str, Any], reported: int
) -> None:
    case = evidence(config, engine=engine, available_gib=available_gib, reported=reported, **flags)
    error = kv_pool_relative_error(case)
    assert error.number is not None
    assert abs(error.number) < 0.0025


def test_a_draft_layer_shows_as_an_error_when_no_flag_tells_of_it() -> None:
    # Llama 3.1 8B with an EAGLE draft on H100: 33 layers share the pool, 33 / 32 - 1 = 3.1 %
    error = kv_pool_relative_error(evidence(LLAMA_8B, available_gib=51.63, reported=410_128))
    assert error.number == pytest.approx(1 / 32, abs=0.001)


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
