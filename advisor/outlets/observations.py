"""What was observed of a deployment: its load, its latencies, and what demand asks of its replicas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.domain.evidence import Slo
from advisor.domain.fact import FactSheet
from advisor.domain.numbers import told
from advisor.domain.report import DeploymentReport

_LOAD = (
    ("running p95 {}", "running_p95"),
    ("waiting p95 {}", "waiting_p95"),
    ("{} at the cap while requests wait", "time_at_sequence_cap"),
    ("cache p95 {}", "kv_usage_p95"),
    ("preempted {}", "preempted_share"),
    ("prefix cache hits {}", "prefix_cache_hit_rate"),
    ("an unused prefix survives {}", "prefix_turnover_seconds"),
    ("busiest engine {} the mean", "replica_imbalance"),
)
_LATENCY = (
    ("TTFT p50 {}", "ttft_p50"),
    ("TTFT p99 {}", "ttft_p99"),
    ("TPOT p99 {}", "tpot_p99"),
    ("ITL mean {}", "itl_mean"),
    ("ITL p99 {}", "itl_p99"),
)
_CAPACITY = "capacity_requests_per_second_per_replica"
_PRESSURE = "demand_over_capacity"


def observed(deployment: DeploymentReport) -> Iterator[tuple[str, str]]:
    """What load, latency and demand were, as (title, text); nothing for what nobody saw."""
    facts = deployment.facts
    sections = (
        ("LOAD", _LOAD),
        ("LATENCY", (*_LATENCY, *_met(deployment.evidence.slo))),
        ("DEMAND", _demand(facts)),
    )
    for title, items in sections:
        known = [words.format(told(name, facts[name])) for words, name in items if not facts[name].is_unknown]
        if known:
            yield title, " · ".join(known)


def _met(slo: Slo) -> Iterable[tuple[str, str]]:
    """Which share meets what is asked: requests their time to the first and per token, gaps between tokens theirs."""
    asked = [name for name, target in (("TTFT", slo.ttft_seconds), ("TPOT", slo.tpot_seconds)) if target is not None]
    yield " and ".join(asked or ["objectives"]) + " met by {} of requests", "slo_attainment"
    yield "ITL met by {} of gaps", "slo_attainment_itl"


def _demand(facts: FactSheet) -> Iterable[tuple[str, str]]:
    """Arrivals against what a replica was seen to serve within its objectives, else what its seats alone would."""
    yield "p99 {}", "demand_requests_per_second_p99"
    served = f"one replica serves {{}}{_within(facts)}"
    yield served if _seen(facts) else "the seats of one replica would serve {}", _CAPACITY
    if not _refuted(facts):
        yield "demand {} the capacity", _PRESSURE


def _seen(facts: FactSheet) -> bool:
    """Whether any of it was measured: a sample stands behind what arithmetic on seats only widens."""
    return facts[_CAPACITY].basis == "measured" or facts[_CAPACITY].n is not None


def _within(facts: FactSheet) -> str:
    """That this is within the objectives: not where none is given, nor where the gaps between tokens miss theirs."""
    asked, gaps = facts["slo_target"].number, facts["slo_attainment_itl"].ceiling
    return "" if asked is None or (gaps is not None and gaps < asked) else " within its objectives"


def _refuted(facts: FactSheet) -> bool:
    """Whether the replicas were seen to serve the demand that arithmetic on their seats holds to be too much."""
    served, pressure = facts[_CAPACITY].floor, facts[_PRESSURE].floor
    replicas, wanted = facts["replicas"].number, facts["demand_requests_per_second_p99"].number
    if served is None or pressure is None or replicas is None or wanted is None:
        return False
    return _seen(facts) and pressure > 1 and replicas * served >= wanted
