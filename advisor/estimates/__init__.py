"""Evidence -> facts: pure mathematics, one module a question; `estimate` is the order in which they build up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from advisor.domain.catalogue import CATALOGUE
from advisor.domain.evidence import Evidence, Flag
from advisor.domain.fact import Fact, FactSheet, computed, measured, unknown
from advisor.domain.policy import Policy
from advisor.engines import never_tells

from . import (
    budget_target,
    capacity,
    context_cost,
    context_limit,
    drift,
    enough_replicas,
    flag_sources,
    fleet_size,
    full_step,
    growth,
    kv_cache,
    late_in_queue,
    latency,
    latency_ceiling,
    latency_now,
    lengths,
    load,
    log_origin,
    long_gaps,
    memory_ceiling,
    populations,
    prefix_cache,
    roles,
    saturation,
    seat_wait,
    sequence_cap,
    sharding,
    shared_steps,
    stalls,
    start,
    step_time,
    throughput_knee,
    token_budget,
    worst_replica,
)
from .kv.drafts import drafted_tokens

FLAG_FACTS = (
    "max_num_seqs",
    "max_model_len",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "tensor_parallel_size",
    "api_server_count",
    "block_size",
)
SIZED = (
    "memory_ceiling_guaranteed",
    "memory_ceiling_expected",
    "memory_ceiling_at_double_tp",
    "latency_ceiling",
    "budget_ceiling",
    "recommended_max_num_seqs",
    "next_max_num_seqs",
    "capacity_requests_per_second_per_replica",
    "demand_over_capacity",
    "busiest_half_hour_over_capacity",
    "saturated_requests_per_second",
    "demand_over_saturated_rate",
    "recommended_replicas",
    "recommended_max_num_batched_tokens",
    "next_max_num_batched_tokens",
    *stalls.APART,
)
"""What the settings of the replicas decide, and what therefore nobody can tell while these are being changed."""
LIMITS = ("recommended_max_model_len", "refused_share_at_recommended", "max_model_len_cost_ratio")
FEWER = ("replicas_to_keep", *populations.FACTS)
IN_PART = "metrics were read only in part, and a part of the traffic is no ground to give it less: see the sources"
WHOLE_WINDOW = (
    "refused_share_now",
    "finish_length_share",
    "refused_share_at_recommended",
    "recommended_max_model_len",
    "length_coverage",
    *drift.FACTS,
    *populations.FACTS,
)
WHOLE_WINDOW_ENDS = (
    "_tokens_p50",
    "_tokens_p90",
    "_tokens_p99",
    "_tokens_p999",
    "_p999_upper",
    "second_p99",
    "second_mean",
)


def estimate(evidence: Evidence, policy: Policy) -> FactSheet:
    """Every fact of the catalogue about one deployment, Unknown with its reason where it cannot be told.

    A stated fact is used where nothing that was read yields it, by later estimates too; else it is kept as a rival, as
    is what an earlier estimate made of a fact that a later one knows better.
    """
    known = {name: _stated(evidence, name) for name in CATALOGUE}
    passing = evidence.rollout.reason if evidence.rollout and evidence.rollout.refuses_ceilings else None

    role = roles.serving_role(evidence)
    known["serving_role"], apart = role, roles.withheld(role)
    origin = log_origin.facts(evidence)
    evidence = log_origin.believed(evidence, origin)

    def withheld(name: str) -> str | None:
        if passing is not None and name in SIZED:
            return passing
        if evidence.read_in_part and (name in FEWER or (name in LIMITS and evidence.log is None)):
            return IN_PART
        return apart if _of_whole_requests(name, evidence) else None

    def add(facts: Mapping[str, Fact]) -> None:
        for name, fact in facts.items():
            reason = withheld(name)
            told = fact if reason is None else unknown(reason)
            known[name] = told.instead_of(known[name])

    add(origin)
    add(_flags(evidence))
    add(flag_sources.facts(evidence))
    add(_kv(evidence))
    add(lengths.facts(evidence))
    add(context_limit.facts(evidence, policy, known))
    add(start.facts(evidence, known))
    add(sharding.facts(evidence, known))
    add(throughput_knee.facts(evidence))
    add({"speculative_tokens": _speculation(evidence)})
    add(load.facts(evidence, known))
    add(prefix_cache.facts(evidence, known))
    add(latency.facts(evidence) | latency_now.facts(evidence) | worst_replica.facts(evidence))
    step = step_time.fit(evidence)
    add(step_time.facts(step) | context_cost.facts(evidence, known))
    work = full_step.identify(evidence, step)
    add({"slo_attainment_ttft_unqueued": late_in_queue.attainment_unqueued(evidence, work, known)})
    add(token_budget.facts(evidence, work, known))
    add(memory_ceiling.facts(evidence, policy, known))
    add({"memory_ceiling_at_double_tp": sharding.ceiling_at_double_tp(evidence, policy, known)})
    shared = shared_steps.of(evidence, work, known)
    add({"latency_ceiling": latency_ceiling.latency_ceiling(evidence, step, shared)})
    add(sequence_cap.facts(evidence, policy, known))
    add(
        {
            "prompts_at_cap_share_of_budget": token_budget.prompts_at_cap(known),
            "prompt_tokens_per_pass": token_budget.prompt_pass(evidence),
            "budget_within_itl": token_budget.budget_within_itl(evidence, known),
            "budget_within_tpot": long_gaps.budget_within_tpot(evidence, known),
            "prefill_tokens_per_step_left": token_budget.left_for_prompts(evidence, known["recommended_max_num_seqs"]),
            "itl_at_next_cap": step_time.predicted_gap(step, known),
            "time_at_next_cap": load.time_at_next_cap(evidence, known),
        }
    )
    add(capacity.facts(evidence, policy, step, known))
    add(
        {
            "late_share_at_next_cap": seat_wait.late_share(evidence, known),
            "next_cap_over_thrashing_rate": saturation.gain_of_next_cap(evidence, known),
        }
    )
    add(saturation.facts(evidence, policy, known))
    add(budget_target.facts(evidence, policy, work, known))
    add({"recommended_replicas": enough_replicas.recommended_replicas(evidence, known, shared)})
    add(fleet_size.facts(evidence, known))
    add({name: growth.with_spare(known[name], policy) for name in ("recommended_replicas", "replicas_to_keep")})
    add(drift.facts(evidence, policy))
    cut = populations.cut_of(evidence)
    add(populations.facts(evidence, policy, cut, known))
    add(stalls.facts(evidence, work, cut, known))
    said = {name: _reasoned(fact, never_tells(evidence.engine, name), origin) for name, fact in known.items()}
    return FactSheet({name: _dated(name, fact, evidence) for name, fact in said.items()})


def _of_whole_requests(name: str, evidence: Evidence) -> bool:
    """Whether a fact holds only where the engines serve whole requests; what logs tell is of requests."""
    if name.endswith(WHOLE_WINDOW_ENDS) or name in LIMITS:
        return evidence.log is None and evidence.exported is None
    return name in (*SIZED, "replicas_to_keep", "sequences_demanded", "finish_length_share", *populations.FACTS)


def _reasoned(fact: Fact, never: str | None, origin: Mapping[str, Fact]) -> Fact:
    """What an engine's metrics can never tell is Unknown for that; what a log would tell, for why it is not used."""
    reason = (never or log_origin.instead(origin, fact.unknown)) if fact.is_unknown else None
    return fact if reason is None else unknown(reason)


def _dated(name: str, fact: Fact, evidence: Evidence) -> Fact:
    """The fact with the span it covers: lengths and arrivals the whole window, load and latency the present epoch."""
    if fact.is_unknown or fact.window is not None:
        return fact
    epochs = [e.epoch_start for e in evidence.engines if e.windows.end.size]
    whole = name in WHOLE_WINDOW or name.endswith(WHOLE_WINDOW_ENDS)
    start = evidence.window.start if whole or not epochs else max(evidence.window.start, min(epochs))
    return fact.over(f"{_instant(start)}/{_instant(evidence.window.end)}")


def _instant(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _stated(evidence: Evidence, name: str) -> Fact:
    stated = evidence.stated.get(name)
    return unknown("nothing that was read tells this") if stated is None else replace(stated, basis="assumed")


def _flags(evidence: Evidence) -> dict[str, Fact]:
    return {
        name: unknown(flag_sources.missing(evidence, name))
        if (value := evidence.number_flag(name)) is None
        else _running(value, evidence.flags[name])
        for name in FLAG_FACTS
    }


def _running(value: float, flag: Flag) -> Fact:
    if flag.source == "inferred":
        told = f"inferred: {value:g} is the most that run while requests wait, and the cache is not full"
        return replace(computed(value, source=told), basis="assumed")
    return measured(value, source=flag.source.replace("_", " "))


def _speculation(evidence: Evidence) -> Fact:
    drafted = drafted_tokens(evidence)
    if drafted is None:
        return unknown("no speculative_config is known that says num_speculative_tokens")
    return measured(drafted, source="speculative_config")


def _kv(evidence: Evidence) -> dict[str, Fact]:
    error = kv_cache.kv_pool_relative_error(evidence)
    return {
        "kv_bytes_per_token": kv_cache.kv_bytes_per_token(evidence),
        "kv_pool_tokens": kv_cache.kv_pool_tokens(evidence),
        "kv_pool_tokens_predicted": kv_cache.kv_pool_tokens_predicted(evidence),
        "kv_pool_relative_error": error,
        "kv_pool_disagreement": kv_cache.kv_pool_disagreement(error),
    }
