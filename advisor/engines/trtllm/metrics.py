"""The Prometheus page of trtllm-serve (`/prometheus/metrics`), as of 1.2; earlier ones have latencies only.

It needs `return_perf_metrics: true`. What 1.1 exposes (requests and latencies) has no gauge to find a process by.
"""

from __future__ import annotations

from collections.abc import Collection

from advisor.domain.evidence import FlagValue
from advisor.engines.metrics import EngineMetrics, Series, SeriesCounts, Settings, count_flags, counts, number, sums

BLOCKS, BLOCK_SIZE = "trtllm_kv_cache_max_blocks", "trtllm_kv_cache_tokens_per_block"
SEATS, BUDGET = "trtllm_max_batch_size_static", "trtllm_max_num_tokens_runtime"
TTFT, QUEUE = "trtllm_time_to_first_token_seconds", "trtllm_request_queue_time_seconds"


def flags(settings: Settings) -> dict[str, FlagValue]:
    """Seats, token budget and block size."""
    return count_flags(settings, {SEATS: "max_num_seqs", BUDGET: "max_num_batched_tokens", BLOCK_SIZE: "block_size"})


def pool(settings: Settings, _engines: int) -> tuple[int, str] | None:
    """Blocks x tokens of a block."""
    blocks, size = number(settings, BLOCKS), number(settings, BLOCK_SIZE)
    return (int(blocks * size), f"{BLOCKS} x tokens_per_block") if blocks and size else None


def release(_present: Collection[str], _settings: Settings) -> str | None:
    """The gauges came with 1.2."""
    return ">=1.2"


TRTLLM = EngineMetrics(
    engine="trtllm",
    marker="trtllm_num_requests_running",
    gauges={
        "running": ("trtllm_num_requests_running",),
        "waiting": ("trtllm_num_requests_waiting",),
        "kv_usage": ("trtllm_kv_cache_utilization",),
    },
    histograms={
        "ttft": (TTFT,),
        "tpot": ("trtllm_time_per_output_token_seconds",),
        "queue": (QUEUE,),
    },
    counters={
        "finished": (Series("trtllm_request_success_total", "finished_reason", never=frozenset({"abort", "error"})),),
        "finished_length": (Series("trtllm_request_success_total", "finished_reason", only=frozenset({"length"})),),
        "prompt_tokens": (Series("trtllm_prompt_tokens_total"),),
        "generation_tokens": (Series("trtllm_generation_tokens_total"),),
        "ttft_sum": sums(TTFT),
        "ttft_count": counts(TTFT),
        "queue_sum": sums(QUEUE),
        "queue_count": counts(QUEUE),
    },
    series=SeriesCounts(gauges=3, windows=52, whole=24, info=8),
    config=(BLOCKS, BLOCK_SIZE, SEATS, BUDGET),
    epoch_settings=(BLOCKS, SEATS),
    parts=("le", "finished_reason"),
    never_tells={
        "preempted_share": "trtllm-serve tells how many requests are paused now, not how many ever were",
        "prefix_cache_hit_rate": "trtllm-serve tells a hit rate without counts",
        **dict.fromkeys(
            ("prompt_tokens_p999", "output_tokens_p999", "total_tokens_p999", "recommended_max_model_len"),
            "trtllm-serve exposes no lengths of requests: give a request log (--logs)",
        ),
        **dict.fromkeys(("itl_mean", "itl_p99", "slo_attainment_itl"), "trtllm-serve measures no gaps between tokens"),
    },
    flags=flags,
    pool=pool,
    release=release,
)
