"""TGI's /metrics, 1.0 to 3.3: no label names the model, counters lack `_total`, a series is absent until it is touched.

Its cache figure is what requests reserve for their worst case, not what they use; nothing admitted is ever preempted.
"""

from __future__ import annotations

from collections.abc import Collection

from advisor.engines.metrics import Answers, EngineMetrics, Series, SeriesCounts, Settings, counts, number, sums

POOL = "tgi_batch_max_total_tokens"
QUEUE = "tgi_request_queue_duration"
INPUT, OUTPUT = "tgi_request_input_length", "tgi_request_generated_tokens"
_TIMES = "TGI measures only the mean time per token of whole requests"
_NO_BUDGET = "TGI has no token budget that prompts and decoding share: max_batch_prefill_tokens bounds prompts alone"


def pool(settings: Settings, _engines: int) -> tuple[int, str] | None:
    """The tokens that all requests of a batch may reserve together, found at warm-up (2.3.1 and later)."""
    tokens = number(settings, POOL)
    return (int(tokens), POOL) if tokens else None


def release(_present: Collection[str], settings: Settings) -> str | None:
    """`>=2.3.1` where the pool is told."""
    return ">=2.3.1" if POOL in settings else None


TGI = EngineMetrics(
    engine="tgi",
    marker="tgi_batch_current_size",
    gauges={
        "running": ("tgi_batch_current_size",),
        "waiting": ("tgi_queue_size",),
        "kv_tokens": ("tgi_batch_current_max_tokens",),
    },
    histograms={
        "tpot": ("tgi_request_mean_time_per_token_duration",),
        "queue": (QUEUE,),
        "prompt_tokens": (INPUT,),
        "output_tokens": (OUTPUT,),
    },
    counters={
        "finished": (Series("tgi_request_success"),),
        "prompt_tokens": sums(INPUT),
        "generation_tokens": sums(OUTPUT),
        "queue_sum": sums(QUEUE),
        "queue_count": counts(QUEUE),
        "steps": (Series("tgi_batch_inference_count", "method", only=frozenset({"decode"})),),
    },
    # 35 edges of each duration, 100 of each length.
    series=SeriesCounts(gauges=3, windows=46, whole=240, info=8),
    config=(POOL,),
    epoch_settings=(POOL,),
    parts=("le", "method"),
    # Refused by the router's own limit is the server's doing, not the request's: it counts with the 5xx.
    answers=Answers(
        ("tgi_request_success", "tgi_request_failure"),
        "err",
        classes={"": "2", "validation": "4", "template": "4"}
        | dict.fromkeys(("overloaded", "generation", "dropped", "incomplete"), "5"),
    ),
    never_tells={
        **dict.fromkeys(
            ("ttft_p50", "ttft_p99", "slo_attainment_ttft", "queue_share_of_ttft"),
            "TGI measures no time to first token: give a request log that has it (--logs)",
        ),
        **dict.fromkeys(("itl_mean", "itl_p99", "slo_attainment_itl", "itl_at_next_cap"), _TIMES),
        "finish_length_share": "TGI counts no finish reasons: give a request log (--logs)",
        "prefix_cache_hit_rate": "TGI counts no prefix hits",
        "budget_ceiling": _NO_BUDGET,
        "max_num_batched_tokens": _NO_BUDGET,
        "prefill_share_of_budget": _NO_BUDGET,
        "prefill_tokens_per_step_left": _NO_BUDGET,
    },
    pool=pool,
    release=release,
)
