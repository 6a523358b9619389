"""The dictionary of facts: what estimates may yield and rules may ask for, with unit and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .failure import FAILURES

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
    ("length_coverage", "ratio", "requests seen with token counts, of those the engine finished"),
    ("logged_beyond_limit_share", "ratio", "answered requests in the log that are longer than any limit that runs"),
    ("logged_over_finished", "ratio", "answered requests in the log / requests that the engines finished meanwhile"),
    ("foreign_log", "-", "what shows that the request log is of other engines, too"),
    ("length_shift", "-", "how far total tokens moved within the window: PSI, 0 for not at all, over 0.1 tells"),
    ("length_shift_noise", "-", "the PSI that chance alone makes of so many requests"),
    (
        "length_tail_excess",
        "-",
        "at least so many times the promised share of later requests exceeds what was enough for earlier ones",
    ),
    ("length_decision_drift", "ratio", "later bound on what requests need / earlier one - 1; 0 within its interval"),
    ("length_shift_client", "-", "the client (a salted hash) who explains the change; many, or not logged"),
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
        "most sequences that fit while at most the accepted share of requests is preempted",
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
    ("serving_role", "-", "what engines serve of requests: all, only prompts, only answers, or one of both"),
    ("gpu_memory_utilization", "ratio", "share of each GPU's memory that the engine takes"),
    ("tensor_parallel_size", "-", "GPUs that share every layer of one replica"),
    ("api_server_count", "-", "front-end processes of one server"),
    ("block_size", "tokens", "tokens that one block of the cache holds"),
    ("flags_in_dispute", "-", "flags that two kinds of sources tell differently"),
    ("disputed_flags", "-", "these flags with the value of each source, the believed one first"),
    ("speculative_tokens", "-", "tokens that a draft proposes each step"),
    ("server_failure", "-", "why the server did not start, or died of memory, by its own last words"),
    (
        "servable_max_model_len",
        "tokens",
        "longest limit that the cache can serve, or what requests need where that is less",
    ),
    ("startable_max_num_seqs", "sequences", "most sequences that the engine would start with"),
    ("startable_gpu_memory_utilization", "ratio", "share of memory to try after this failure"),
    ("sufficient_tensor_parallel_size", "-", "least GPUs a replica whose memory holds the weights and enough cache"),
    ("weight_floor_tensor_parallel_size", "-", "least GPUs a replica, a power of two, that hold the weights at all"),
    ("kv_pool_tokens_at_double_tp", "tokens", "KV pool of one engine on twice the GPUs (tensor_parallel_size x 2)"),
    ("kv_pool_growth_at_double_tp", "ratio", "that pool / the present one: 2 is what two replicas hold together"),
    ("memory_ceiling_at_double_tp", "sequences", "sequences that fit that pool, each holding what it holds now"),
    (
        "kv_copies",
        "-",
        "ranks that hold the same piece of the cache, for lack of KV heads",
    ),
    ("prompts_at_cap_share_of_budget", "ratio", "median prompts on every seat / max_num_batched_tokens"),
    ("prompt_tokens_per_pass", "tokens", "prompt tokens that one pass takes at most, by the engine's own flag for it"),
    (
        "budget_within_tpot",
        "tokens",
        "token budget whose full step would take the TPOT objective, in proportion to the longest gaps",
    ),
    (
        "budget_within_itl",
        "tokens",
        "token budget whose full step fits the ITL objective, in proportion to a full step",
    ),
    ("throughput_knee", "sequences", "swept concurrency beyond which tokens per second no longer rise"),
    ("throughput_beyond_knee", "ratio", "tokens per second at the highest concurrency swept / at the knee"),
    ("prefill_tokens_per_step_left", "tokens", "max_num_batched_tokens minus recommended_max_num_seqs"),
    (
        "prefill_share_of_budget",
        "ratio",
        "prefill tokens computed / what the budget admits, while requests wait",
    ),
    (
        "recommended_max_num_batched_tokens",
        "tokens",
        "the token budget whose full step fits the objectives and whose prompts fit demand",
    ),
    ("next_max_num_batched_tokens", "tokens", "the budget advised now: down in one step, up at most fourfold"),
    ("full_step_seconds", "seconds", "a step whose budget is full, at the concurrency observed"),
    ("full_step_at_next_budget", "seconds", "the same at next_max_num_batched_tokens"),
    ("prefill_efficiency", "ratio", "share of a full step that computes prompts"),
    ("prefill_efficiency_at_next_budget", "ratio", "the same at next_max_num_batched_tokens"),
    (
        "prefill_tokens_per_step_at_next_budget",
        "tokens",
        "prompt tokens that a step of next_max_num_batched_tokens takes beside running_p95 sequences",
    ),
    ("budget_ceiling_at_next_budget", "sequences", "budget_ceiling at next_max_num_batched_tokens"),
    (
        "demand_over_capacity_at_next_budget",
        "ratio",
        "demand p99 / what the replicas carry at next_max_num_batched_tokens with headroom",
    ),
    ("ttft_at_next_budget", "seconds", "time to first token of a p99 prompt at next_max_num_batched_tokens"),
    ("kv_pool_tokens_at_next_budget", "tokens", "KV pool after that change of the budget, between two bounds"),
    ("time_at_sequence_cap", "ratio", "(engine, scrape) pairs at the sequence cap while requests wait"),
    ("time_at_next_cap", "ratio", "(engine, scrape) pairs whose running and waiting requests would fill the next cap"),
    ("time_at_full_seats", "ratio", "(engine, scrape) pairs with every seat of the sequence cap taken"),
    ("waiting_share", "ratio", "(engine, scrape) pairs in which requests wait"),
    ("running_p95", "requests", "95th percentile of running requests, per engine"),
    ("running_max", "requests", "most running requests seen on one engine"),
    ("waiting_p95", "requests", "95th percentile of waiting requests, per engine"),
    ("kv_usage_p95", "ratio", "95th percentile of KV cache usage, per engine"),
    ("preempted_share", "ratio", "preemptions / finished requests; may exceed 1"),
    ("queue_share_of_ttft", "ratio", "time to first token spent waiting for a seat"),
    (
        "slo_attainment_ttft_unqueued",
        "ratio",
        "requests whose first token could be in time if nobody waited, at most",
    ),
    ("ttft_p50", "seconds", "median time to first token"),
    ("ttft_p99", "seconds", "99th percentile of time to first token"),
    ("tpot_p99", "seconds", "99th percentile over requests of each one's mean time per output token"),
    ("itl_mean", "seconds", "mean gap between output tokens"),
    ("itl_p99", "seconds", "99th percentile of the gaps between output tokens"),
    ("itl_base", "seconds", "mean gap between tokens that an empty batch would have, from the mix line"),
    ("itl_per_sequence", "seconds", "what each decoding sequence adds to it with the same traffic"),
    ("itl_per_kv_token_seconds", "seconds", "what each cached token of a decoding sequence adds, where lengths differ"),
    (
        "itl_at_next_cap",
        "seconds",
        "mean gap between tokens predicted with every seat of next_max_num_seqs taken",
    ),
    ("slo_attainment", "ratio", "requests that met every target given"),
    ("slo_attainment_last_hour", "ratio", "requests that met every target in the last hour"),
    ("slo_target", "ratio", "share of requests that must meet the targets"),
    ("slo_attainment_tpot", "ratio", "requests that met the TPOT target"),
    ("slo_attainment_ttft", "ratio", "requests that met the TTFT target"),
    ("slo_attainment_itl", "ratio", "gaps between tokens within the ITL target"),
    (
        "slo_attainment_without_worst",
        "ratio",
        "requests that met every target on all engines but the one that misses far more often than they",
    ),
    ("worst_replica", "-", "the engine that misses the objectives far more often than all others"),
    ("worst_replica_load", "ratio", "requests that this engine answered / mean of all engines"),
    ("prefix_cache_hit_rate", "ratio", "prompt tokens found in the prefix cache / looked up"),
    (
        "external_prefix_cache_hit_rate",
        "ratio",
        "tokens found in a cache beyond the engine's own (host, other servers) / looked up there",
    ),
    ("prefix_cache_room_tokens", "tokens", "what running requests leave of an engine's pool to cached prefixes, mean"),
    ("prefix_turnover_seconds", "seconds", "how long a cached block survives that nobody uses, usually"),
    ("prefix_turnover_busy_seconds", "seconds", "the same in busy times: a tenth of all tokens is written at less"),
    ("prefix_reuse_gap_p90_seconds", "seconds", "90th percentile of the time between two uses of a cached block"),
    ("prefix_late_reuse_share", "ratio", "reuses that come later than blocks survive in busy times, at least"),
    ("prefix_hit_rate_lost", "ratio", "lookups in busy times that hit if blocks survive as in quiet ones, at least"),
    ("replica_imbalance", "ratio", "mean running requests of the busiest engine / of all engines"),
    ("split_cut_tokens", "tokens", "the gap in total tokens that parts two populations, rounded up to 1,024"),
    ("split_long_share", "ratio", "requests beyond that gap, of all requests"),
    ("split_long_kv_share", "ratio", "cache held x time by requests beyond that gap, of all requests"),
    ("split_short_ceiling", "sequences", "sequences that a replica of the short requests' pool holds"),
    ("split_long_ceiling", "sequences", "sequences that a replica of the long requests' pool holds"),
    ("split_short_replicas", "replicas", "replicas that a pool for the short requests needs"),
    ("split_long_replicas", "replicas", "replicas that a pool for the long requests needs"),
    ("split_gain", "ratio", "replicas that two pools save, of those that one pool needs for the same demand"),
    ("late_short_share", "ratio", "short requests that miss their targets at least: more miss them than are long"),
    ("long_prefill_seconds", "seconds", "time for which the prompt of a long request fills the steps of its replica"),
    ("stalled_short_share", "ratio", "short requests beside which a long prompt is computed, at least"),
    ("apart_short_replicas", "replicas", "replicas that short requests need alone"),
    ("apart_long_replicas", "replicas", "replicas that remain for long requests, or that these need where it is more"),
    ("apart_replicas", "replicas", "replicas of both pools together"),
    ("apart_short_ceiling", "sequences", "sequences that a replica of short requests alone runs within its objective"),
    ("apart_short_tpot", "seconds", "time per token of short requests alone on apart_short_replicas"),
    ("slo_attainment_apart", "ratio", "requests within their targets with both apart, were every long one late"),
    ("demand_requests_per_second_p99", "1/s", "99th percentile of 5-minute arrival rates of the deployment"),
    (
        "demand_growth_per_week",
        "ratio",
        "arrivals of the last seven days / those of the seven before, hour by hour of the week",
    ),
    (
        "demand_to_carry",
        "1/s",
        "demand p99 (of batch work the mean) with a week of sure growth, and the imbalance of the replicas",
    ),
    ("demand_over_capacity_one_down", "ratio", "demand_over_capacity with one replica fewer"),
    ("weeks_to_capacity", "-", "weeks until demand p99 exceeds what the replicas carry, at the growth that was seen"),
    ("demand_over_observed_rate", "ratio", "demand p99 / largest 5-minute rate that arrived in the present epoch"),
    ("demand_requests_per_second_mean", "1/s", "mean arrival rate of the deployment"),
    (
        "capacity_requests_per_second_per_replica",
        "1/s",
        "largest 5-minute rate one replica served within its objectives",
    ),
    ("capacity_at_cap", "1/s", "requests per second of one replica with every seat of the present cap taken"),
    ("capacity_at_next_cap", "1/s", "the same at next_max_num_seqs"),
    ("demand_over_cap_capacity", "ratio", "demand p99 / what the replicas carry at the present cap"),
    ("demand_over_capacity", "ratio", "demand p99 / what the replicas carry at the proposed cap with headroom"),
    (
        "busiest_half_hour_over_capacity",
        "ratio",
        "busiest half hour of the present epoch / what the replicas carry at the proposed cap, without headroom",
    ),
    ("saturated_requests_per_second", "1/s", "what the deployment served while requests waited all the time"),
    (
        "next_cap_over_thrashing_rate",
        "ratio",
        "what a replica serves at next_max_num_seqs / what it finishes while a fifth is preempted and requests wait",
    ),
    ("demand_over_saturated_rate", "ratio", "demand p99 / what was served while saturated, with headroom"),
    ("sequences_demanded", "sequences", "sequences in service that demand p99 asks of one replica (Little's law)"),
    (
        "late_share_at_next_cap",
        "ratio",
        "requests that wait longer than the TTFT objective for a seat of next_max_num_seqs, at demand p99",
    ),
    ("replicas_to_keep", "replicas", "fewest replicas whose load at demand p99 was seen within the objectives"),
    ("replicas_left_ratio", "ratio", "engines that left within the window / engines that serve now"),
    ("recommended_replicas", "replicas", "replicas that carry demand p99 with headroom"),
)

WORDS: Mapping[str, tuple[str, ...]] = {
    "binding_ceiling": ("memory", "latency", "budget", "demand"),
    "serving_role": ("whole", "prefill", "decode", "part"),
    "server_failure": ("none", *FAILURES),
}
"""Facts whose value is a word, and the words they take."""
STRUCTURE = frozenset(
    {
        "api_server_count",
        "block_size",
        "gpu_memory_utilization",
        "kv_copies",
        "replicas",
        "replicas_left_ratio",
        "server_failure",
        "serving_role",
        "speculative_tokens",
        "sufficient_tensor_parallel_size",
        "throughput_beyond_knee",
    }
)
"""How a deployment is built, not how it fares: that a rule is not for such a one teaches its reader nothing."""
CATALOGUE: dict[str, FactSpec] = {name: FactSpec(name, unit, meaning) for name, unit, meaning in _ROWS}
