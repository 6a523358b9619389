"""The dictionary of facts: what estimates may yield and rules may ask for, with unit and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["tokens", "ratio", "bytes", "sequences", "requests", "seconds", "1/s", "replicas", "-"]


@dataclass(frozen=True, slots=True)
class FactSpec:
    """What a fact's name stands for."""

    name: str
    unit: Unit
    meaning: str


def _lengths(kind: str, meaning: str) -> tuple[tuple[str, Unit, str], ...]:
    shares = {"p50": "half", "p90": "90 %", "p99": "99 %", "p999": "99.9 %"}
    return tuple(
        (f"{kind}_tokens_{p}", "tokens", f"{share} of served requests had at most this many {meaning}")
        for p, share in shares.items()
    )


_ROWS: tuple[tuple[str, Unit, str], ...] = (
    *_lengths("prompt", "prompt tokens"),
    *_lengths("output", "output tokens"),
    *_lengths("total", "prompt and output tokens together"),
    (
        "declared_tokens_p999",
        "tokens",
        "99.9 % of requests asked for at most this: prompt plus declared output",
    ),
    (
        "needed_tokens_p999_upper",
        "tokens",
        "95 % upper bound of the p99.9 of what requests need, refused ones included",
    ),
    ("refused_share_now", "ratio", "requests refused for their length, of all requests"),
    ("finish_length_share", "ratio", "requests cut off at max_model_len, of those that finished"),
    ("length_coverage", "ratio", "requests with token counts in the log, of those the engine finished"),
    ("observed_days", "-", "days that the length sample spans"),
    ("observed_seconds", "seconds", "how long the present epoch was observed"),
    ("recommended_max_model_len", "tokens", "p99.9 of what requests need plus the margin, rounded up to 1,024"),
    ("refused_share_at_recommended", "ratio", "observed requests longer than recommended_max_model_len"),
    (
        "max_model_len_cost_ratio",
        "ratio",
        "present limit (else the model's maximum) / recommended",
    ),
    ("kv_bytes_per_token", "bytes", "KV cache of one token, over all ranks of one engine"),
    ("kv_pool_tokens", "tokens", "KV pool of one engine, as it reports it"),
    ("kv_pool_tokens_predicted", "tokens", "KV pool of one engine by arithmetic"),
    ("kv_pool_relative_error", "ratio", "(predicted - reported) / reported, signed"),
    ("kv_pool_disagreement", "ratio", "how far the reported pool lies outside what arithmetic allows"),
    ("memory_ceiling_guaranteed", "sequences", "KV pool / length limit: below it no request can be preempted"),
    (
        "memory_ceiling_expected",
        "sequences",
        "most sequences whose cache overflows the pool with at most the accepted risk",
    ),
    ("kv_tokens_per_sequence", "tokens", "mean KV cache that one running sequence holds"),
    ("latency_ceiling", "sequences", "largest concurrency within the TPOT objective"),
    (
        "budget_ceiling",
        "sequences",
        "decoding sequences that the token budget admits, C x O / (I + O)",
    ),
    ("recommended_max_num_seqs", "sequences", "the target: least of the known memory and latency ceilings"),
    (
        "next_max_num_seqs",
        "sequences",
        "the step advised now, at most 1.5x what was observed or swept",
    ),
    ("binding_ceiling", "-", "which ceiling binds: memory, latency, budget or demand"),
    ("max_num_seqs", "sequences", "the sequence cap that runs now"),
    ("max_model_len", "tokens", "the length limit that runs now"),
    ("max_num_batched_tokens", "tokens", "the token budget of a step that runs now"),
    ("replicas", "replicas", "replicas that serve now"),
    ("prefill_tokens_per_step_left", "tokens", "max_num_batched_tokens minus recommended_max_num_seqs"),
    (
        "prefill_share_of_budget",
        "ratio",
        "prefill tokens computed / what the budget admits, while requests wait",
    ),
    ("time_at_sequence_cap", "ratio", "(engine, scrape) pairs at the sequence cap while requests wait"),
    ("time_at_next_cap", "ratio", "(engine, scrape) pairs whose running and waiting requests would fill the next cap"),
    ("waiting_share", "ratio", "(engine, scrape) pairs in which requests wait"),
    ("running_p95", "requests", "95th percentile of running requests, per engine"),
    ("running_max", "requests", "most running requests seen on one engine"),
    ("waiting_p95", "requests", "95th percentile of waiting requests, per engine"),
    ("kv_usage_p95", "ratio", "95th percentile of KV cache usage, per engine"),
    ("preempted_share", "ratio", "preemptions / finished requests; may exceed 1"),
    ("queue_share_of_ttft", "ratio", "time to first token spent waiting for a seat"),
    ("ttft_p50", "seconds", "median time to first token"),
    ("ttft_p99", "seconds", "99th percentile of time to first token"),
    ("tpot_p99", "seconds", "99th percentile over requests of each one's mean time per output token"),
    ("itl_mean", "seconds", "mean gap between output tokens"),
    ("itl_p99", "seconds", "99th percentile of the gaps between output tokens"),
    (
        "itl_at_next_cap",
        "seconds",
        "mean gap between tokens predicted with every seat of next_max_num_seqs taken",
    ),
    ("slo_attainment", "ratio", "requests that met every target given"),
    ("slo_target", "ratio", "share of requests that must meet the targets"),
    ("slo_attainment_tpot", "ratio", "requests that met the TPOT target"),
    ("slo_attainment_ttft", "ratio", "requests that met the TTFT target"),
    ("slo_attainment_itl", "ratio", "gaps between tokens within the ITL target"),
    ("prefix_cache_hit_rate", "ratio", "prompt tokens found in the prefix cache / looked up"),
    ("replica_imbalance", "ratio", "mean running requests of the busiest engine / of all engines"),
    ("demand_requests_per_second_p99", "1/s", "99th percentile of 5-minute arrival rates of the deployment"),
    ("demand_requests_per_second_mean", "1/s", "mean arrival rate of the deployment"),
    (
        "capacity_requests_per_second_per_replica",
        "1/s",
        "largest 5-minute rate one replica served within its objectives",
    ),
    ("demand_over_capacity", "ratio", "demand p99 / what the replicas carry at the proposed cap with headroom"),
    ("saturated_requests_per_second", "1/s", "what the deployment served while requests waited all the time"),
    ("demand_over_saturated_rate", "ratio", "demand p99 / what was served while saturated, with headroom"),
    ("sequences_demanded", "sequences", "sequences in service that demand p99 asks of one replica (Little's law)"),
    ("recommended_replicas", "replicas", "replicas that carry demand p99 with headroom"),
)

CATALOGUE: dict[str, FactSpec] = {name: FactSpec(name, unit, meaning) for name, unit, meaning in _ROWS}
