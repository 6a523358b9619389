"""vLLM's /metrics: under which names the canonical readings are found, and what the labels of its config series say.

Names change between releases and some releases expose two names for one thing, so every reading lists its names, newest
first; whoever reads takes one of them and never their sum.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from advisor.domain.evidence import FlagValue

RUNNING = "vllm:num_requests_running"
CONFIG = "vllm:cache_config_info"
PROCESS_START = "process_start_time_seconds"
HTTP_REQUESTS = "http_requests_total"
GENERATION_HANDLERS = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/generate")

TOKEN_PREFIX_HITS = "vllm:prefix_cache_hits_total"  # noqa: S105
"""Prefix hits under this name are tokens in every release; the older name counted blocks up to 0.8.5."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Where one reading is found: series names newest first, and which values of `label` belong to it."""

    names: tuple[str, ...]
    label: str | None = None
    only: frozenset[str] = field(default=frozenset())
    never: frozenset[str] = field(default=frozenset())

    def accepts(self, labels: Mapping[str, str]) -> bool:
        """Whether the series with these labels is part of the reading."""
        if self.label is None:
            return True
        value = labels.get(self.label, "")
        return value not in self.never and (not self.only or value in self.only)


GAUGES: Mapping[str, Metric] = {
    "running": Metric((RUNNING,)),
    "waiting": Metric(("vllm:num_requests_waiting",)),
    "kv_usage": Metric(("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")),
}

HISTOGRAMS: Mapping[str, tuple[str, ...]] = {
    "ttft": ("vllm:time_to_first_token_seconds",),
    "itl": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "tpot": ("vllm:request_time_per_output_token_seconds",),
    "queue": ("vllm:request_queue_time_seconds", "vllm:time_in_queue_requests"),
    "prompt_tokens": ("vllm:request_prompt_tokens",),
    "output_tokens": ("vllm:request_generation_tokens",),
}


def _suffixed(histogram: str, suffix: str) -> Metric:
    return Metric(tuple(name + suffix for name in HISTOGRAMS[histogram]))


COUNTERS: Mapping[str, Metric] = {
    "preemptions": Metric(("vllm:num_preemptions_total",)),
    "finished": Metric(("vllm:request_success_total",), "finished_reason", never=frozenset({"abort", "error"})),
    "finished_length": Metric(("vllm:request_success_total",), "finished_reason", only=frozenset({"length"})),
    "prompt_tokens": Metric(("vllm:prompt_tokens_total",)),
    "prompt_tokens_computed": Metric(
        ("vllm:prompt_tokens_by_source_total",), "source", only=frozenset({"local_compute"})
    ),
    "generation_tokens": Metric(("vllm:generation_tokens_total",)),
    "itl_sum": _suffixed("itl", "_sum"),
    "itl_count": _suffixed("itl", "_count"),
    "ttft_sum": _suffixed("ttft", "_sum"),
    "ttft_count": _suffixed("ttft", "_count"),
    "queue_sum": _suffixed("queue", "_sum"),
    "queue_count": _suffixed("queue", "_count"),
    "steps": Metric(("vllm:iteration_tokens_total_count",)),
    "step_tokens_sum": Metric(("vllm:iteration_tokens_total_sum",)),
    "prefix_queries": Metric(("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")),
    "prefix_hits": Metric((TOKEN_PREFIX_HITS, "vllm:gpu_prefix_cache_hits_total")),
}

WINDOWED_HISTOGRAMS = ("ttft", "tpot")
WHOLE_HISTOGRAMS = ("itl", "queue", "prompt_tokens", "output_tokens")
PART_LABELS = ("le", "finished_reason", "source")
"""Labels whose values are parts of one reading; series that differ in others (`pid`) show the same thing twice."""


def _histogram_names(kinds: Collection[str]) -> set[str]:
    return {name + suffix for kind in kinds for name in HISTOGRAMS[kind] for suffix in ("_bucket", "_sum")}


GAUGE_NAMES = tuple(sorted({name for metric in GAUGES.values() for name in metric.names}))
WINDOW_NAMES = tuple(
    sorted({name for metric in COUNTERS.values() for name in metric.names} | _histogram_names(WINDOWED_HISTOGRAMS))
)
WHOLE_NAMES = tuple(sorted(_histogram_names(WHOLE_HISTOGRAMS)))

GAUGE_SERIES, WINDOW_SERIES, WHOLE_SERIES, INFO_SERIES = 3, 68, 84, 12
"""Series of one engine by kind of reading, with the bucket edges of 0.8.4 and later and a 131,072-token context."""

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


def _number(labels: Mapping[str, str], name: str) -> float | None:
    try:
        value = float(labels.get(name, ""))
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value < 1e15 else None


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
    pool, concurrency = _number(labels, "kv_cache_size_tokens"), _number(labels, "kv_cache_max_concurrency")
    if pool and concurrency:
        flags["max_model_len"] = max(1, math.ceil(pool / concurrency - 1e-6))
    if block_size := _number(labels, "block_size"):
        flags["block_size"] = int(block_size)
    if utilization := _number(labels, "gpu_memory_utilization"):
        flags["gpu_memory_utilization"] = utilization
    if (dtype := labels.get("cache_dtype", "None")) != "None":
        flags["kv_cache_dtype"] = dtype
    if (caching := labels.get("enable_prefix_caching")) in {"True", "False"}:
        flags["enable_prefix_caching"] = caching == "True"
    return flags


def pool_tokens(labels: Mapping[str, str], engines: int) -> tuple[int, str] | None:
    """The KV pool of one engine in tokens and where it is read from, of an instance with so many engines.

    `kv_cache_size_tokens` (0.24 and later) counts one data-parallel rank. `num_gpu_blocks` is the sum over the ranks:
    16,384 blocks of 128 tokens on an instance of 2 engines are 1,048,576 tokens each. For models with several kinds of
    attention layers, blocks x block size overstates the pool, which the source text says.
    """
    if size := _number(labels, "kv_cache_size_tokens"):
        return int(size), "kv_cache_size_tokens of vllm:cache_config_info"
    blocks, block_size = _number(labels, "num_gpu_blocks"), _number(labels, "block_size")
    if blocks and block_size:
        return int(blocks * block_size / max(engines, 1)), (
            "num_gpu_blocks x block_size of vllm:cache_config_info (too large for hybrid attention)"
        )
    return None
