"""Pools that real engines printed at start-up are quoted with their public source; figures are facts, not text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from advisor.domain.evidence import GpuInfo, ModelInfo, ReportedPool
from advisor.domain.fact import computed, unknown
from advisor.estimates.kv_cache import (
    kv_pool_disagreement,
    kv_pool_relative_error,
    kv_pool_tokens_predicted,
    sequences_of_length,
)
from tests.unit.estimates.kv.models import (
    DEEPSEEK_V3,
    GEMMA3_27B,
    GEMMA4_E2B,
    LLAMA_8B,
    PHI_4,
    QWEN2_7B,
    QWEN3_5_SMALL,
    QWEN3_6_27B,
    QWEN3_6_35B,
    QWEN3_8B,
    QWEN3_235B,
)
from tests.unit.estimates.kv.models import serving as evidence


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


HYBRIDS = [
    # 52 windows and 10 full layers: 6 tables of windows; 7 tables of 16 tokens share 89,994 blocks (vLLM 0.11)
    (GEMMA3_27B, 109.86, {"version": "0.11.0", "max_num_batched_tokens": 8192, "max_model_len": 4096}, 205_696),
    # vLLM 0.21 on L4
    (GEMMA4_E2B, 9.92, {"version": "0.21.0", "max_num_batched_tokens": 2048, "max_model_len": 8192}, 1_062_157),
    # 30 linear and 10 full layers, fp8, prefixes cached (vLLM 0.24): noonghunna/club-3090#652 and #612
    (QWEN3_6_35B, 6.01, {"version": "0.24.0", "kv_cache_dtype": "fp8", "max_model_len": 131_072}, 569_878),
    (QWEN3_6_35B, 5.98, {"version": "0.24.0", "kv_cache_dtype": "fp8", "max_model_len": 131_072}, 567_978),
    # the same family at TP 2 with one layer for multi-token prediction, three tokens drafted: club-3090#594
    (
        QWEN3_6_27B,
        5.33,
        {
            "version": "0.24.0",
            "kv_cache_dtype": "fp8",
            "max_model_len": 262_144,
            "tensor_parallel_size": 2,
            "speculative_config": '{"method": "mtp", "num_speculative_tokens": 3}',
        },
        300_220,
    ),
]


@pytest.mark.parametrize(("config", "available_gib", "known", "reported"), HYBRIDS)
def test_pools_of_hybrids_are_met_within_a_tenth_of_a_percent(
    config: Mapping[str, Any], available_gib: float, known: Mapping[str, Any], reported: int
) -> None:
    case = evidence(config, available_gib=available_gib, reported=reported, enable_prefix_caching=True, **known)
    error = kv_pool_relative_error(case)
    assert error.number is not None
    assert abs(error.number) < 0.001


def test_a_hybrid_without_cached_prefixes_and_before_the_length_counted() -> None:
    # Qwen3.5 0.8B on vLLM 0.23: 491 blocks of 544 tokens; a request of 4,096 holds 8 + 3; 183,202 were printed
    later = evidence(QWEN3_5_SMALL, available_gib=3.06, version="0.23.0", max_model_len=4096)
    assert kv_pool_tokens_predicted(later).value == int(491 / 11 * 4096)
    # Qwen3.5 2B: 955 blocks in 4 tables of 544 tokens; 129,472 were printed
    before = evidence(QWEN3_5_SMALL, available_gib=5.95, version="0.19.0")
    assert kv_pool_tokens_predicted(before).value == 129_472


def test_what_nobody_told_makes_the_pool_an_interval() -> None:
    # Qwen3.6 27B at TP 1 with one drafted token: 332 blocks of 800; a request holds 164 + 3 x 2, or 164 + 3 x 3 blocks
    case = evidence(
        QWEN3_6_27B,
        available_gib=17.25,
        reported=255_975,
        concurrency=1.95,
        max_model_len=131_072,
        speculative_config='{"method": "mtp", "num_speculative_tokens": 1}',
    )
    pool = kv_pool_tokens_predicted(case)
    assert (pool.value, pool.low, pool.high) == (None, int(332 / 173 * 131_072), int(332 / 170 * 131_072))
    error = kv_pool_relative_error(case)
    assert error.value is None
    assert kv_pool_disagreement(error).value == 0


def test_a_draft_layer_shows_as_an_error_when_no_flag_tells_of_it() -> None:
    # Llama 3.1 8B with an EAGLE draft on H100: 33 layers share the pool, 33 / 32 - 1 = 3.1 %
    error = kv_pool_relative_error(evidence(LLAMA_8B, available_gib=51.63, reported=410_128))
    assert error.number == pytest.approx(1 / 32, abs=0.001)
    drafted = evidence(LLAMA_8B, available_gib=51.63, reported=410_128, speculative_config='{"method": "eagle"}')
    error = kv_pool_relative_error(drafted)
    assert error.number == pytest.approx(0, abs=0.0001)
    assert error.low == pytest.approx(33 / 34 - 1, abs=1e-4)
    assert error.high == pytest.approx(33 / 32 - 1, abs=1e-4)


def test_latents_are_kept_on_every_rank() -> None:
    # DeepSeek R1 at TP 8 with 41.6 GiB on each: 635,648 were printed
    case = evidence(DEEPSEEK_V3, available_gib=41.6, reported=635_648, tensor_parallel_size=8)
    assert kv_pool_relative_error(case).number == pytest.approx(0, abs=1e-4)


def test_without_a_stated_headroom_the_pool_is_an_interval() -> None:
    model = ModelInfo(weights_bytes=16e9, kv_bytes_per_token=131_072)
    case = evidence(stated=model, gpu=GpuInfo(memory_bytes=80 * 2**30), version="0.11.0", gpu_memory_utilization=0.9)
    pool = kv_pool_tokens_predicted(case)
    # (72 GiB - 16 GB - 4 GiB) / 131,072 and (72 GiB - 16 GB - 0.2 GiB) / 131,072
    assert (pool.value, pool.low, pool.high) == (None, 434_985, 466_115)
    assert (
        kv_pool_disagreement(kv_pool_relative_error(replace(case, reported_pool=ReportedPool(450_000, "log")))).value
        == 0
    )
    far = kv_pool_disagreement(kv_pool_relative_error(replace(case, reported_pool=ReportedPool(233_000, "log"))))
    assert far.number == pytest.approx(434_985 / 233_000 - 1)


def test_a_disagreement_that_cannot_be_told_is_unknown() -> None:
    assert kv_pool_disagreement(unknown("no pool")).unknown == "no pool"
    assert kv_pool_disagreement(computed(None, low=0.1, source="half an interval")).is_unknown
    assert kv_pool_disagreement(computed(-0.03, source="printed")).value == 0.03


def test_sequences_are_counted_in_blocks_where_layers_share_them() -> None:
    known: dict[str, Any] = {
        "version": "0.24.0",
        "kv_cache_dtype": "fp8",
        "max_model_len": 131_072,
        "enable_prefix_caching": True,
    }
    reported = evidence(QWEN3_6_35B, reported=569_878, **known)
    # 300 blocks of 2,096 tokens, one never handed out: 63 + 3 x 2 a sequence, and 2 + 3 x 2 at 4,096 tokens
    assert sequences_of_length(reported, 131_072).value == 299 // 69
    assert sequences_of_length(reported, 4096).value == 299 // 8  # 569,878 / 4,096 would be 139
    assert sequences_of_length(evidence(QWEN3_6_35B, available_gib=6.01, **known), 4096).value == 299 // 8
    before = evidence(QWEN3_6_35B, reported=157_200, **(known | {"version": "0.20.0"}))
    assert sequences_of_length(before, 4096).value == 299 // 8  # 157,200 / 2,096 x 4 tables = 300 blocks


def test_a_pool_in_nominal_tokens_is_taken_for_its_blocks() -> None:
    known: dict[str, Any] = {
        "version": "0.22.0",
        "kv_cache_dtype": "fp8",
        "max_model_len": 131_072,
        "enable_prefix_caching": True,
    }
    case = evidence(QWEN3_6_35B, available_gib=6.01, **known)
    nominal = replace(case, reported_pool=ReportedPool(300 * 2096, "metrics", nominal=True))
    assert kv_pool_relative_error(nominal).number == 0
    assert sequences_of_length(nominal, 4096).value == 299 // 8
    unsure = replace(nominal, flags={n: f for n, f in nominal.flags.items() if n != "enable_prefix_caching"})
    unsure = replace(unsure, engine_version=None)
    assert "in nominal tokens" in (kv_pool_relative_error(unsure).unknown or "")
    dense = evidence(LLAMA_8B, available_gib=1, block_size=16)
    assert kv_pool_relative_error(replace(dense, reported_pool=ReportedPool(8192, "metrics", nominal=True))).number == 0


def test_sequences_without_a_pool_or_a_layout_are_unknown() -> None:
    assert "give gpu.kv_available" in (
        sequences_of_length(evidence(QWEN3_6_35B, version="0.24.0", max_model_len=4096), 4096).unknown or ""
    )
    unsure = evidence({"model_type": "brand_new", "state_size": 16}, reported=1000)
    assert "its layers keep windows or states, and" in (sequences_of_length(unsure, 4096).unknown or "")
    either = evidence(QWEN3_6_35B, available_gib=6.01, version=None, kv_cache_dtype="fp8", max_model_len=131_072)
    fact = sequences_of_length(either, 4096)
    assert (fact.value, fact.low, fact.high) == (None, 299 // 8, 299 // 5)
