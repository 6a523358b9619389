"""The /metrics of llama.cpp's server (`--metrics`): no labels, no histograms, counters that move as requests end."""

from __future__ import annotations

from advisor.engines.metrics import EngineMetrics, Series, SeriesCounts

_NO_LENGTHS = "llama.cpp's server exposes no lengths of requests: give a request log (--logs)"
_NO_LATENCIES = "llama.cpp's server exposes no latencies of requests: give a request log (--logs)"

LLAMACPP = EngineMetrics(
    engine="llamacpp",
    marker="llamacpp:requests_processing",
    gauges={
        "running": ("llamacpp:requests_processing",),
        "waiting": ("llamacpp:requests_deferred",),
        "kv_usage": ("llamacpp:kv_cache_usage_ratio",),
    },
    histograms={},
    counters={
        "prompt_tokens_computed": (Series("llamacpp:prompt_tokens_total"),),
        "prefix_hits": (Series("llamacpp:prompt_tokens_cached_total"),),
        "generation_tokens": (Series("llamacpp:tokens_predicted_total"),),
        "itl_sum": (Series("llamacpp:tokens_predicted_seconds_total"),),
        "itl_count": (Series("llamacpp:tokens_predicted_total"),),
        "steps": (Series("llamacpp:n_decode_total"),),
    },
    series=SeriesCounts(gauges=3, windows=5, whole=1, info=2),
    never_tells={
        **dict.fromkeys(
            ("prompt_tokens_p999", "output_tokens_p999", "total_tokens_p999", "recommended_max_model_len"), _NO_LENGTHS
        ),
        **dict.fromkeys(("ttft_p50", "ttft_p99", "tpot_p99", "itl_p99"), _NO_LATENCIES),
        "kv_pool_tokens": (
            "llama.cpp's server does not tell over HTTP whether its slots share one cache: give the log of its start "
            "(--startup-log)"
        ),
        "kv_usage_p95": "llama.cpp's server no longer tells how full its cache is (since 2025)",
        "preempted_share": "llama.cpp's server counts no finished requests",
        "prefix_cache_hit_rate": "this release of llama.cpp's server counts no prefix hits",
        "finish_length_share": "llama.cpp's server counts no finish reasons: give a request log (--logs)",
    },
)
