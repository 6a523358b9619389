"""What Dynamo's front end exposes (0.5.1 to 1.6.1): lengths and latencies of all workers together, and their settings.

Its workers pass their engines' own metrics through on another port; scrape those to have one engine's load judged.
"""

from __future__ import annotations

from advisor.domain.evidence import FlagValue
from advisor.engines.metrics import EngineMetrics, Series, SeriesCounts, Settings, count_flags, counts, number, sums

_MODEL = "dynamo_frontend_model"
BLOCKS, BLOCK_SIZE = f"{_MODEL}_total_kv_blocks", f"{_MODEL}_kv_cache_block_size"
CONTEXT, SEATS, BUDGET = f"{_MODEL}_context_length", f"{_MODEL}_max_num_seqs", f"{_MODEL}_max_num_batched_tokens"
TTFT, ITL = "dynamo_frontend_time_to_first_token_seconds", "dynamo_frontend_inter_token_latency_seconds"
_OF_WORKERS = "Dynamo's front end does not show single engines: scrape its workers too (DYN_SYSTEM_PORT)"


def flags(settings: Settings) -> dict[str, FlagValue]:
    """Limit, seats, token budget and block size of the model's workers."""
    names = {CONTEXT: "max_model_len", SEATS: "max_num_seqs", BUDGET: "max_num_batched_tokens"}
    return count_flags(settings, names | {BLOCK_SIZE: "block_size"})


def pool(settings: Settings, _engines: int) -> tuple[int, str] | None:
    """Blocks x block size of one worker."""
    blocks, size = number(settings, BLOCKS), number(settings, BLOCK_SIZE)
    return (int(blocks * size), f"{BLOCKS} x block size") if blocks and size else None


DYNAMO = EngineMetrics(
    engine="dynamo",
    marker="dynamo_frontend_inflight_requests",
    gauges={},
    histograms={
        "ttft": (TTFT,),
        "itl": (ITL,),
        "prompt_tokens": ("dynamo_frontend_input_sequence_tokens",),
        "output_tokens": ("dynamo_frontend_output_sequence_tokens",),
    },
    counters={
        "finished": (Series("dynamo_frontend_requests_total", "status", only=frozenset({"success"})),),
        "prompt_tokens": sums("dynamo_frontend_input_sequence_tokens"),
        "generation_tokens": sums("dynamo_frontend_output_sequence_tokens"),
        "itl_sum": sums(ITL),
        "itl_count": counts(ITL),
        "ttft_sum": sums(TTFT),
        "ttft_count": counts(TTFT),
    },
    series=SeriesCounts(gauges=1, windows=40, whole=60, info=8),
    config=(BLOCKS, BLOCK_SIZE, CONTEXT, SEATS, BUDGET),
    epoch_settings=(BLOCKS, SEATS, CONTEXT, BUDGET),
    labels={"model": "model_name"},
    parts=("le", "status"),
    summed=("request_type", "endpoint"),
    front_end=True,
    never_tells=dict.fromkeys(
        (
            "running_p95",
            "running_max",
            "waiting_p95",
            "waiting_share",
            "kv_usage_p95",
            "time_at_sequence_cap",
            "time_at_next_cap",
            "preempted_share",
            "replicas",
            "replica_imbalance",
            "kv_tokens_per_sequence",
        ),
        _OF_WORKERS,
    ),
    flags=flags,
    pool=pool,
)
