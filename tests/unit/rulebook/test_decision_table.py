"""Each state that scrapes can show leads to its row of the decision table: the shipped rules over a few facts.

The healthy deployment below is the start of every row; a row names what is different, and what must (and must not) be
said about it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from advisor import rule_pack
from advisor.domain.evidence import Slo
from advisor.domain.fact import Fact
from advisor.rulebook.arbiter import advise
from tests.unit.rulebook.samples import evidence, sheet

RULES = tuple(file.rule for file in rule_pack.read([rule_pack.shipped_directory("rules")]))
HEALTHY: Mapping[str, float] = {
    "max_num_seqs": 64,
    "max_model_len": 16_384,
    "max_num_batched_tokens": 2048,
    "replicas": 1,
    "running_p95": 12,
    "running_max": 20,
    "waiting_p95": 0,
    "waiting_share": 0,
    "kv_usage_p95": 0.1,
    "preempted_share": 0,
    "time_at_sequence_cap": 0,
    "time_at_full_seats": 0,
    "slo_target": 0.99,
    "slo_attainment": 0.998,
    "slo_attainment_tpot": 0.999,
    "slo_attainment_ttft": 0.999,
    "memory_ceiling_expected": 300,
    "memory_ceiling_guaranteed": 30,
    "latency_ceiling": 120,
    "budget_ceiling": 315,
    "recommended_max_num_seqs": 120,
    "next_max_num_seqs": 64,
    "demand_over_capacity": 0.4,
    "demand_over_cap_capacity": 0.3,
    "recommended_replicas": 1,
    "replicas_to_keep": 1,
    "replica_imbalance": 1.0,
    "replicas_left_ratio": 0.0,
    "prefix_cache_hit_rate": 0.0,
    "observed_seconds": 7 * 86_400.0,
    "observed_days": 7.0,
}
CAP = {"max_num_seqs": 16, "running_p95": 16, "running_max": 16}


def said(**changed: float | tuple[float | None, float | None] | Fact) -> tuple[dict[str, float | None], set[str]]:
    """What is advised (rule -> value) and every rule that held."""
    facts = sheet(**{**HEALTHY, **changed})
    flags = {n: int(facts[n].number or 1) for n in ("max_num_seqs", "max_model_len", "max_num_batched_tokens")}
    judgement = advise(RULES, evidence(flags, slo=Slo(0.04, None, 2.0)), facts, ())
    asked = {a.rule: a.recommended for a in judgement.advice}
    return asked, set(asked) | {f.rule for f in judgement.findings}


def test_demand_limited_nothing_to_raise() -> None:
    asked, held = said()
    assert "health/demand-limited" in held
    assert not any(rule.startswith(("concurrency/", "capacity/", "memory/", "budget/")) for rule in asked)


@pytest.mark.parametrize(
    ("rule", "value", "changed"),
    [
        # running = cap, waiting, cache free: raise the cap
        (
            "concurrency/cap-pinned-cache-free",
            24,
            CAP | {"waiting_p95": 5, "waiting_share": 0.2, "time_at_sequence_cap": 0.2, "next_max_num_seqs": 24},
        ),
        # cache full, preempted, demand fits below the ceiling: lower the cap
        (
            "concurrency/cap-invites-churn",
            13,
            {
                "kv_usage_p95": 0.97,
                "preempted_share": 0.075,
                "waiting_share": 0.3,
                "waiting_p95": 4,
                "memory_ceiling_expected": 13,
                "next_max_num_seqs": 13,
                "demand_over_capacity": 0.6,
            },
        ),
        # the same while demand does not fit: replicas, not a cap
        (
            "memory/cache-pinned-by-long-prompts",
            3,
            {
                "kv_usage_p95": 0.97,
                "preempted_share": 0.075,
                "waiting_share": 0.3,
                "waiting_p95": 4,
                "memory_ceiling_expected": 13,
                "next_max_num_seqs": 13,
                "demand_over_capacity": 2.4,
                "recommended_replicas": 3,
            },
        ),
        # time per token misses above a concurrency, demand fits below it: lower the cap to it
        (
            "concurrency/cap-above-latency-ceiling",
            24,
            {
                "max_num_seqs": 256,
                "slo_attainment": 0.93,
                "slo_attainment_tpot": 0.93,
                "latency_ceiling": 24,
                "recommended_max_num_seqs": 24,
                "next_max_num_seqs": 24,
                "late_share_at_next_cap": 0.0,
            },
        ),
        # objectives missed, demand above capacity, queue or not: replicas
        (
            "capacity/demand-exceeds-capacity",
            2,
            {
                "slo_attainment": 0.8,
                "slo_attainment_ttft": 0.8,
                "waiting_share": 0.5,
                "waiting_p95": 9,
                "demand_over_capacity": 1.7,
                "recommended_replicas": 2,
            },
        ),
        # first tokens late while prompts fill the budget: a larger budget
        (
            "budget/prefill-starved",
            4096,
            {
                "slo_attainment": 0.9,
                "slo_attainment_ttft": 0.9,
                "waiting_share": 0.4,
                "waiting_p95": 6,
                "next_max_num_batched_tokens": 4096,
                "demand_over_capacity_at_next_budget": 0.6,
            },
        ),
    ],
)
def test_a_state_leads_to_its_change(rule: str, value: float, changed: dict[str, float]) -> None:
    asked, _ = said(**changed)
    assert asked.get(rule) == value
    assert next(iter(asked)) == rule


def test_below_the_cap_at_the_budget_ceiling_the_cap_is_inert() -> None:
    # prompts share the budget: 20 run at p95 of 27 that it admits
    asked, held = said(budget_ceiling=27, running_p95=20, waiting_p95=3, waiting_share=0.4)
    assert "budget/cap-inert" in held
    assert not any(rule.startswith("concurrency/cap") for rule in asked)


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("health/cache-held-by-nobody", {"kv_usage_p95": 0.9, "running_p95": 0, "running_max": 1}),
        ("health/queue-without-progress", {"waiting_p95": 5, "waiting_share": 1.0, "running_p95": 0, "running_max": 0}),
    ],
)
def test_the_marks_of_a_bug_are_not_sized(rule: str, changed: dict[str, float]) -> None:
    asked, held = said(**changed)
    assert rule in held
    assert not any(asked.values())


def test_a_cache_that_is_full_on_purpose_is_not_pinned() -> None:
    _, held = said(kv_usage_p95=0.99, demand_over_capacity=(0.0, 1.4), running_p95=40)
    assert "memory/cache-pinned-by-long-prompts" not in held


def test_one_replica_that_holds_the_most_is_the_routers_doing() -> None:
    _, held = said(replicas=4, replica_imbalance=1.6)
    assert "health/uneven-replicas" in held


def test_fewer_replicas_only_where_nothing_else_moves_them() -> None:
    asked, _ = said(replicas=12, replicas_to_keep=9, recommended_replicas=6)
    assert asked["capacity/replicas-to-spare"] == 9
    moved, held = said(replicas=12, replicas_to_keep=9, replicas_left_ratio=3.0)
    assert "capacity/replicas-to-spare" not in moved
    assert "capacity/replicas-come-and-go" in held
