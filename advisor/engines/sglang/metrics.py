"""SGLang's /metrics, 0.4.2 to 0.5.23; they need `--enable-metrics`.

The scheduler's series carry `dp_rank`. Those of the tokenizer process (lengths, latencies, finished requests) do not:
one such process serves all ranks. With `--enable-metrics-for-all-schedulers` every TP rank shows the same thing
once more.
"""

from __future__ import annotations

from collections.abc import Collection

from advisor.domain.evidence import FlagValue
from advisor.engines.metrics import Answers, EngineMetrics, Series, SeriesCounts, Settings, count_flags, counts, number
from advisor.engines.metrics import sums as sums_of

TTFT = "sglang:time_to_first_token_seconds"
ITL = ("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds")
QUEUE = ("sglang:queue_time_seconds", "sglang:queue_time_s")
POOL, CONTEXT = "sglang:max_total_num_tokens", "sglang:context_len"
PAGES, PAGE_SIZE = "sglang:num_pages", "sglang:page_size"
ENDPOINTS = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/generate")

_DATED_BY_SERIES = (
    ("sglang:request_time_per_output_token_seconds_sum", ">=0.5.23"),
    ("sglang:kv_cache_memory_usage_gb", ">=0.5.20"),
    (CONTEXT, ">=0.5.12"),
    ("sglang:num_retracted_requests_total", ">=0.5.8"),
    (POOL, ">=0.5.6"),
    ("sglang:utilization", ">=0.5.2"),
    ("sglang:total_retracted_reqs", ">=0.4.10"),
)
_NO_BUDGET = (
    "SGLang has no token budget that prompts and decoding share: chunked_prefill_size bounds prompts alone, in passes "
    "of their own"
)


def flags(settings: Settings) -> dict[str, FlagValue]:
    """The length limit (0.5.12 and later) and the page size, under canonical names; the seats are in no metric."""
    return count_flags(settings, {CONTEXT: "max_model_len", PAGE_SIZE: "block_size"})


def pool(settings: Settings, _engines: int) -> tuple[int, str] | None:
    """Tokens in the pool of one worker: as told (0.5.6 and later), else pages x page size."""
    if tokens := number(settings, POOL):
        return int(tokens), POOL
    pages, size = number(settings, PAGES), number(settings, PAGE_SIZE)
    return (int(pages * size), f"{PAGES} x page_size") if pages and size else None


def release(present: Collection[str], _settings: Settings) -> str | None:
    """The oldest release that exposes the newest of these series; None before 0.4.10."""
    return next((hint for name, hint in _DATED_BY_SERIES if name in present), None)


SGLANG = EngineMetrics(
    engine="sglang",
    marker="sglang:num_running_reqs",
    gauges={
        "running": ("sglang:num_running_reqs",),
        "waiting": ("sglang:num_queue_reqs",),
        "kv_usage": ("sglang:token_usage",),
    },
    histograms={
        "ttft": (TTFT,),
        "itl": ITL,
        "tpot": ("sglang:request_time_per_output_token_seconds",),
        "queue": QUEUE,
        "prompt_tokens": ("sglang:prompt_tokens_histogram",),
        "output_tokens": ("sglang:generation_tokens_histogram",),
    },
    counters={
        # The gauge num_retracted_reqs of 0.5.2 to 0.5.7 forgets at every report, so those releases tell nothing.
        "preemptions": (
            Series("sglang:num_retracted_requests_total"),
            *sums_of("sglang:num_retractions"),
            Series("sglang:total_retracted_reqs"),
        ),
        "finished": (Series("sglang:num_requests_total"),),
        "prompt_tokens": (Series("sglang:prompt_tokens_total"),),
        "prompt_tokens_computed": (
            Series("sglang:realtime_tokens_total", "mode", only=frozenset({"prefill_compute"})),
        ),
        "generation_tokens": (
            Series("sglang:realtime_tokens_total", "mode", only=frozenset({"decode"})),
            Series("sglang:generation_tokens_total"),
        ),
        "itl_sum": sums_of(*ITL),
        "itl_count": counts(*ITL),
        "ttft_sum": sums_of(TTFT),
        "ttft_count": counts(TTFT),
        "queue_sum": sums_of(*QUEUE),
        "queue_count": counts(*QUEUE),
        # Prefill runs in passes of its own, in which no sequence gets a token.
        "steps": (
            Series("sglang:cuda_graph_passes_total", "mode", only=frozenset({"decode_cuda_graph", "decode_none"})),
        ),
        "prefix_queries": (Series("sglang:prompt_tokens_total"),),
        "prefix_hits": (Series("sglang:cached_tokens_total"),),
    },
    # With the fixed edges of 0.5.12: 20 of TTFT, 40 of the gap between tokens, 34 of each length.
    series=SeriesCounts(gauges=3, windows=60, whole=120, info=6),
    config=(POOL, CONTEXT, PAGES, PAGE_SIZE),
    epoch_settings=(POOL, CONTEXT),
    dating=tuple(name for name, _ in _DATED_BY_SERIES),
    labels={"dp_rank": "engine"},
    parts=("le", "mode"),
    summed=("is_streaming", "cache_source", "priority"),
    exact_prefix_hits="sglang:cached_tokens_total",
    role_label="engine_type",
    answers=Answers(("sglang:http_responses_total",), "status_code", {"method": ("POST",), "endpoint": ENDPOINTS}),
    never_tells={
        "finish_length_share": "SGLang counts no finish reasons: give a request log (--logs)",
        "budget_ceiling": _NO_BUDGET,
        "max_num_batched_tokens": _NO_BUDGET,
        "prefill_share_of_budget": _NO_BUDGET,
        "prefill_tokens_per_step_left": _NO_BUDGET,
    },
    flags=flags,
    pool=pool,
    release=release,
)
