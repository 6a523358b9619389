"""Evidence -> facts: pure mathematics, one module a question; `estimate` is the order in which they build up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from advisor.domain.catalogue import CATALOGUE
from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, FactSheet, measured, unknown
from advisor.domain.policy import Policy

from . import (
    capacity,
    context_limit,
    kv_cache,
    latency,
    latency_ceiling,
    lengths,
    load,
    memory_ceiling,
    saturation,
    sequence_cap,
    step_time,
    token_budget,
)

FLAG_FACTS = ("max_num_seqs", "max_model_len", "max_num_batched_tokens")
WHOLE_WINDOW = (
    "refused_share_now",
    "finish_length_share",
    "refused_share_at_recommended",
    "recommended_max_model_len",
    "length_coverage",
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

    A stated fact is used where nothing that was read yields it, by later estimates too.
    """
    known = {name: _stated(evidence, name) for name in CATALOGUE}

    def add(facts: Mapping[str, Fact]) -> None:
        for name, fact in facts.items():
            known[name] = fact if not fact.is_unknown or known[name].is_unknown else known[name]

    add(_flags(evidence))
    add(_kv(evidence))
    add(lengths.facts(evidence))
    add(context_limit.facts(evidence, policy, known))
    add(load.facts(evidence, known))
    add(latency.facts(evidence))
    step = step_time.fit(evidence)
    add(token_budget.facts(evidence, step, known))
    add(memory_ceiling.facts(evidence, policy, known))
    add({"latency_ceiling": latency_ceiling.latency_ceiling(evidence, step)})
    add(sequence_cap.facts(evidence, policy, known))
    add({"prefill_tokens_per_step_left": token_budget.left_for_prompts(evidence, known["recommended_max_num_seqs"])})
    add({"itl_at_next_cap": step_time.predicted_gap(step, known)})
    add({"time_at_next_cap": load.time_at_next_cap(evidence, known)})
    add(capacity.facts(evidence, policy, step, known))
    add(saturation.facts(evidence, policy, known))
    return FactSheet({name: _dated(name, fact, evidence) for name, fact in known.items()})


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
    missing = "no metric carries it: give a start-up log (--startup-log) or --set {}=N"
    return {
        name: unknown(missing.format(name))
        if (value := evidence.count_flag(name)) is None
        else measured(value, source=evidence.flags[name].source.replace("_", " "))
        for name in FLAG_FACTS
    }


def _kv(evidence: Evidence) -> dict[str, Fact]:
    error = kv_cache.kv_pool_relative_error(evidence)
    return {
        "kv_bytes_per_token": kv_cache.kv_bytes_per_token(evidence),
        "kv_pool_tokens": kv_cache.kv_pool_tokens(evidence),
        "kv_pool_tokens_predicted": kv_cache.kv_pool_tokens_predicted(evidence),
        "kv_pool_relative_error": error,
        "kv_pool_disagreement": kv_cache.kv_pool_disagreement(error),
    }
