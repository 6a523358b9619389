"""vLLM's /metrics, 0.6 to 0.33: under which names the canonical readings are found, and what its config series says."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from advisor.domain.evidence import FlagValue
from advisor.engines.metrics import Answers, EngineMetrics, Series, SeriesCounts, counts, number, sums

RUNNING = "vllm:num_requests_running"
CONFIG = "vllm:cache_config_info"
GENERATION_HANDLERS = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/generate")

TTFT = "vllm:time_to_first_token_seconds"
ITL = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
QUEUE = ("vllm:request_queue_time_seconds", "vllm:time_in_queue_requests")

MARKERS = (
    "vllm:admission_rejections_total",
    "vllm:request_num_preemptions_sum",
    "vllm:num_requests_waiting_by_reason",
    "vllm:prompt_tokens_by_source_total",
    "vllm:request_prefill_kv_computed_tokens_sum",
    "vllm:request_time_per_output_token_seconds_sum",
    "vllm:kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
    "vllm:num_requests_swapped",
)
"""Series whose presence dates a release."""

_DATED_BY_SERIES = (
    ("vllm:num_requests_swapped", "<0.10"),
    ("vllm:num_requests_waiting_by_reason", ">=0.20,<0.24"),
    ("vllm:prompt_tokens_by_source_total", ">=0.16,<0.20"),
    ("vllm:request_prefill_kv_computed_tokens_sum", ">=0.13,<0.16"),
    ("vllm:request_time_per_output_token_seconds_sum", ">=0.11,<0.13"),
    ("vllm:kv_cache_usage_perc", ">=0.9.2,<0.11"),
    ("vllm:gpu_cache_usage_perc", "<0.9.2"),
)


def version_hint(present: Collection[str], config: Mapping[str, str]) -> str | None:
    """The range of vLLM releases that expose exactly these marker series and config labels, or None.

    >>> version_hint({"vllm:kv_cache_usage_perc"}, {"kv_cache_size_tokens": "4096"})
    '>=0.24'
    """
    if "vllm:admission_rejections_total" in present:
        return ">=0.32"
    if "vllm:request_num_preemptions_sum" in present:
        return ">=0.30"
    if "kv_cache_size_tokens" in config:
        return ">=0.24"
    return next((hint for name, hint in _DATED_BY_SERIES if name in present), None)


EPOCH_LABELS = (
    "num_gpu_blocks",
    "block_size",
    "kv_cache_size_tokens",
    "kv_cache_max_concurrency",
    "cache_dtype",
    "gpu_memory_utilization",
    "enable_prefix_caching",
)
"""Labels of the config series whose change begins an epoch; the others come and go with releases."""


def config_flags(labels: Mapping[str, str]) -> dict[str, FlagValue]:
    """The flags that the labels of `vllm:cache_config_info` tell; a label `None` or absent tells nothing.

    The length limit follows from two labels (0.24 and later), because the engine computes
    kv_cache_size_tokens = int(kv_cache_max_concurrency x max_model_len): 586,992 / 35.8271484375 = 16,384.
    """
    flags: dict[str, FlagValue] = {}
    pool, concurrency = number(labels, "kv_cache_size_tokens"), number(labels, "kv_cache_max_concurrency")
    if pool and concurrency:
        flags["max_model_len"] = max(1, math.ceil(pool / concurrency - 1e-6))
    if block_size := number(labels, "block_size"):
        flags["block_size"] = int(block_size)
    if utilization := number(labels, "gpu_memory_utilization"):
        flags["gpu_memory_utilization"] = utilization
    if (dtype := labels.get("cache_dtype", "None")) != "None":
        flags["kv_cache_dtype"] = dtype
    if (caching := labels.get("enable_prefix_caching")) in {"True", "False"}:
        flags["enable_prefix_caching"] = caching == "True"
    return flags


NOMINAL_POOL = "num_gpu_blocks x block_size"


def pool_tokens(labels: Mapping[str, str], engines: int) -> tuple[int, str] | None:
    """The KV pool of one engine in tokens and where it is read from, of an instance with so many engines.

    `kv_cache_size_tokens` (0.24 and later) counts one data-parallel rank. `num_gpu_blocks` is the sum over the ranks:
    16,384 blocks of 128 tokens on an instance of 2 engines are 1,048,576 tokens each. For models with several kinds of
    attention layers, blocks x block size overstates the pool, which the source text says.
    """
    if size := number(labels, "kv_cache_size_tokens"):
        return int(size), "kv_cache_size_tokens of vllm:cache_config_info"
    blocks, block_size = number(labels, "num_gpu_blocks"), number(labels, "block_size")
    if blocks and block_size:
        return int(blocks * block_size / max(engines, 1)), (
            f"{NOMINAL_POOL} of vllm:cache_config_info (too large for hybrid attention)"
        )
    return None


VLLM = EngineMetrics(
    engine="vllm",
    marker=RUNNING,
    gauges={
        "running": (RUNNING,),
        "waiting": ("vllm:num_requests_waiting",),
        "kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    },
    histograms={
        "ttft": (TTFT,),
        "itl": ITL,
        "tpot": ("vllm:request_time_per_output_token_seconds",),
        "queue": QUEUE,
        "prompt_tokens": ("vllm:request_prompt_tokens",),
        "output_tokens": ("vllm:request_generation_tokens",),
        "block_reuse_gap": ("vllm:kv_block_reuse_gap_seconds",),
        "block_idle_before_evict": ("vllm:kv_block_idle_before_evict_seconds",),
    },
    counters={
        "preemptions": (Series("vllm:num_preemptions_total"),),
        "finished": (Series("vllm:request_success_total", "finished_reason", never=frozenset({"abort", "error"})),),
        "finished_length": (Series("vllm:request_success_total", "finished_reason", only=frozenset({"length"})),),
        "prompt_tokens": (Series("vllm:prompt_tokens_total"),),
        "prompt_tokens_computed": (
            Series("vllm:prompt_tokens_by_source_total", "source", only=frozenset({"local_compute"})),
        ),
        "generation_tokens": (Series("vllm:generation_tokens_total"),),
        "itl_sum": sums(*ITL),
        "itl_count": counts(*ITL),
        "ttft_sum": sums(TTFT),
        "ttft_count": counts(TTFT),
        "queue_sum": sums(*QUEUE),
        "queue_count": counts(*QUEUE),
        "steps": counts("vllm:iteration_tokens_total"),
        "step_tokens_sum": sums("vllm:iteration_tokens_total"),
        "prefix_queries": (
            Series("vllm:prefix_cache_queries_total"),
            Series("vllm:gpu_prefix_cache_queries_total"),
        ),
        "prefix_hits": (Series("vllm:prefix_cache_hits_total"), Series("vllm:gpu_prefix_cache_hits_total")),
        "external_prefix_queries": (Series("vllm:external_prefix_cache_queries_total"),),
        "external_prefix_hits": (Series("vllm:external_prefix_cache_hits_total"),),
    },
    # With the bucket edges of 0.8.4 and later and a 131,072-token context, and without what is occasional.
    series=SeriesCounts(gauges=3, windows=68, whole=84, info=12),
    config=(CONFIG,),
    epoch_settings=EPOCH_LABELS,
    dating=MARKERS,
    parts=("le", "finished_reason", "source"),
    # The older name counted blocks up to 0.8.5; this one counts tokens in every release.
    exact_prefix_hits="vllm:prefix_cache_hits_total",
    hands_over=("vllm:nixl_xfer_time_seconds_count", "vllm:mooncake_xfer_time_seconds_count"),
    # With --kv-cache-metrics (0.12 and later), and with a KV connector.
    occasional=frozenset(
        {"block_reuse_gap", "block_idle_before_evict", "external_prefix_queries", "external_prefix_hits"}
    ),
    awake=Series("vllm:engine_sleep_state", "sleep_state", only=frozenset({"awake"})),
    answers=Answers(("http_requests_total",), "status", {"method": ("POST",), "handler": GENERATION_HANDLERS}),
    flags=config_flags,
    pool=pool_tokens,
    release=version_hint,
)
