from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import GpuInfo, ModelInfo
from advisor.domain.fact import Fact
from advisor.estimates.kv.memory import GIB, cache_memory, memory_left
from tests.unit.estimates.kv.models import serving


def left(
    total_gib: float, share: float, weights_gib: float, *, version: str = "0.11.0", ranks: int = 1, **flags: Any
) -> Fact:
    gpu, model = GpuInfo(memory_bytes=total_gib * GIB), ModelInfo(weights_bytes=weights_gib * GIB)
    return memory_left(serving(stated=model, gpu=gpu, version=version, gpu_memory_utilization=share, **flags), ranks)


@pytest.mark.parametrize(
    ("total", "share", "weights", "available", "more"),
    [
        # memory, utilization, weights and cache that public start-ups printed, in GiB
        (79.22, 0.9, 14.96, 53.29, {}),  # vllm-project/vllm#10511, H100
        (22.07, 0.9, 14.99, 4.60, {}),
        (39.39, 0.9, 3.97, 29.02, {}),  # TP 8
        (15.99, 0.9, 5.29, 8.00, {}),
        (44.42, 0.9, 27.72, 10.64, {}),
        (139.8, 0.9, 38.24, 81.79, {}),  # H200, TP 8
        (79.25, 0.5, 14.2488, 24.83, {"max_num_batched_tokens": 2048}),
        # vllm-project/vllm#10517: a step of 29,000 tokens, as long as the longest request
        (23.58, 0.9, 14.9888, 2.89, {"version": "0.6.6", "max_model_len": 29_000}),
    ],
)
def test_what_engines_printed_lies_within(
    total: float, share: float, weights: float, available: float, more: dict[str, Any]
) -> None:
    memory = left(total, share, weights, **more)
    assert memory.value is None
    assert memory.low is not None
    assert memory.high is not None
    assert memory.low <= available * GIB <= memory.high
    assert (memory.high - memory.low) / GIB <= max(2.3, 0.05 * total) * (29_000 / 8192 + 1e-9)


def test_the_interval_without_a_stated_headroom() -> None:
    memory = left(80, 0.9, 20)
    # 72 - 20 - 4 and 72 - 20 - 0.2 GiB
    assert memory.low == pytest.approx(48 * GIB)
    assert memory.high == pytest.approx(51.8 * GIB)
    assert "which nobody stated" in (memory.source or "")
    # twice the token budget, twice the most; four ranks share the weights
    assert left(80, 0.9, 20, max_num_batched_tokens=16_384).low == pytest.approx(44 * GIB)
    assert left(80, 0.9, 20, ranks=4).low == pytest.approx((4 * 68 - 20) * GIB)


def test_the_length_of_a_request_counts_only_where_prefills_are_not_chunked() -> None:
    assert left(80, 0.9, 20, version="0.6.6", max_model_len=16_384).low == pytest.approx(44 * GIB)
    assert left(80, 0.9, 20, version="0.6.6", max_model_len=131_072).low == pytest.approx(48 * GIB)
    assert left(80, 0.9, 20, version="0.8.0", max_model_len=16_384).low == pytest.approx(48 * GIB)


def test_no_room_is_unknown() -> None:
    assert "no memory is left for a cache" in (left(24, 0.9, 22).unknown or "")
    tight = left(24, 0.9, 20)
    assert tight.low == 0.0
    assert tight.high == pytest.approx(1.4 * GIB)


def test_printed_memory_is_taken_before_told_and_total() -> None:
    gpu = GpuInfo(memory_bytes=80e9, kv_available_bytes=10e9)
    assert cache_memory(serving(gpu=gpu, tensor_parallel_size=2, kv_cache_memory_bytes=5)).value == 20e9
    assert cache_memory(serving(tensor_parallel_size=2, kv_cache_memory_bytes=5)).value == 10


@given(
    memory=st.floats(8, 300),
    share=st.floats(0.05, 1.0),
    weights=st.floats(0.1, 200),
    ranks=st.sampled_from([1, 2, 8]),
    budget=st.integers(512, 65_536),
)
def test_bounds_are_ordered_and_never_negative(
    memory: float, share: float, weights: float, ranks: int, budget: int
) -> None:
    fact = left(memory, share, weights, ranks=ranks, max_num_batched_tokens=budget)
    if fact.unknown is None:
        assert fact.low is not None
        assert fact.high is not None
        assert 0 <= fact.low <= fact.high <= ranks * memory * share * GIB
        assert fact.high > 0
