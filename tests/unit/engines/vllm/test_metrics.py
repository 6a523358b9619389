"""Names, config labels and dates of vLLM's metrics, against what real engines showed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import COUNTERS
from advisor.engines.vllm import metrics


def test_every_canonical_counter_has_series() -> None:
    assert set(metrics.VLLM.counters) == set(COUNTERS)


@pytest.mark.parametrize(
    ("labels", "limit"),
    [
        ({"kv_cache_size_tokens": "8192", "kv_cache_max_concurrency": "4.0"}, 2048),  # a real 0.32 with this limit
        ({"kv_cache_size_tokens": "586992", "kv_cache_max_concurrency": "35.8271484375"}, 16384),
        # int(3.1 x 131,072) = 406,323 loses a fraction of a token, which rounding up gives back
        ({"kv_cache_size_tokens": "406323", "kv_cache_max_concurrency": "3.1"}, 131072),
        ({"kv_cache_size_tokens": "None", "kv_cache_max_concurrency": "None"}, None),
        ({"kv_cache_size_tokens": "8192"}, None),
        ({"kv_cache_size_tokens": "8192", "kv_cache_max_concurrency": "0"}, None),
        ({"kv_cache_size_tokens": "inf", "kv_cache_max_concurrency": "nan"}, None),
    ],
)
def test_the_length_limit_follows_from_two_labels(labels: Mapping[str, str], limit: int | None) -> None:
    assert metrics.config_flags(labels).get("max_model_len") == limit


@given(st.integers(1, 2_000_000), st.floats(1.01, 5000))
def test_the_length_limit_is_right_for_every_pool(limit: int, concurrency: float) -> None:
    labels = {"kv_cache_size_tokens": str(int(concurrency * limit)), "kv_cache_max_concurrency": repr(concurrency)}
    assert metrics.config_flags(labels)["max_model_len"] == limit


def test_config_labels_become_flags_and_none_tells_nothing() -> None:
    labels = {
        "block_size": "32",
        "gpu_memory_utilization": "0.92",
        "cache_dtype": "fp8",
        "enable_prefix_caching": "True",
        "sliding_window": "None",
    }
    assert metrics.config_flags(labels) == {
        "block_size": 32,
        "gpu_memory_utilization": 0.92,
        "kv_cache_dtype": "fp8",
        "enable_prefix_caching": True,
    }
    assert metrics.config_flags({"block_size": "None", "cache_dtype": "None", "enable_prefix_caching": "None"}) == {}


def test_the_pool_of_one_rank() -> None:
    # a real 0.32 with two data-parallel ranks showed 512 blocks under both, and 8,192 tokens a rank
    rank = {"num_gpu_blocks": "512", "block_size": "32", "kv_cache_size_tokens": "8192"}
    assert metrics.pool_tokens(rank, 2) == (8192, "kv_cache_size_tokens of vllm:cache_config_info")
    older = metrics.pool_tokens({"num_gpu_blocks": "512", "block_size": "32"}, 2)
    assert older is not None
    assert older[0] == 8192  # 512 x 32 / 2
    assert metrics.pool_tokens({"num_gpu_blocks": "None", "block_size": "16"}, 1) is None


@pytest.mark.parametrize(
    ("present", "config", "hint"),
    [
        ({"vllm:admission_rejections_total", "vllm:request_num_preemptions_sum"}, {}, ">=0.32"),
        ({"vllm:request_num_preemptions_sum"}, {"kv_cache_size_tokens": "1"}, ">=0.30"),
        ({"vllm:prompt_tokens_by_source_total"}, {"kv_cache_size_tokens": "1"}, ">=0.24"),
        ({"vllm:prompt_tokens_by_source_total", "vllm:num_requests_waiting_by_reason"}, {}, ">=0.20,<0.24"),
        ({"vllm:prompt_tokens_by_source_total", "vllm:kv_cache_usage_perc"}, {}, ">=0.16,<0.20"),
        ({"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}, {}, ">=0.9.2,<0.11"),
        ({"vllm:gpu_cache_usage_perc"}, {}, "<0.9.2"),
        ({"vllm:gpu_cache_usage_perc", "vllm:num_requests_swapped"}, {}, "<0.10"),
        (set(), {}, None),
    ],
)
def test_releases_are_dated_by_what_they_expose(present: set[str], config: Mapping[str, str], hint: str | None) -> None:
    assert metrics.version_hint(present, config) == hint


def test_finished_leaves_out_what_was_aborted() -> None:
    (finished,), (cut,) = metrics.VLLM.counters["finished"], metrics.VLLM.counters["finished_length"]
    reasons = ("stop", "length", "abort", "error", "repetition")
    assert [finished.accepts(r) for r in reasons] == [True, True, False, False, True]
    assert [cut.accepts(r) for r in reasons] == [False, True, False, False, False]
