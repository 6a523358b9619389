"""What held, what did not and by how much, and what could not be told."""

from __future__ import annotations

import pytest

from advisor.domain.advice import EvidenceLine
from advisor.domain.evidence import Slo
from advisor.domain.fact import Fact
from advisor.rulebook.judge import closest, evidence_lines, judge, needs
from tests.unit.rulebook.samples import evidence, fact, rule, sheet

PINNED = ("time_at_sequence_cap >= 5 %", "kv_usage_p95 < 60 %")


def test_rules_are_sorted_by_what_came_of_them() -> None:
    rules = [
        rule(*PINNED, id="a/fires"),
        rule("kv_usage_p95 >= 90 %", id="a/does-not"),
        rule("preempted_share >= 0.5 %", id="a/open"),
        rule("kv_usage_p95 < 60 %", id="a/of-batch", workload="batch"),
    ]
    verdicts = judge(rules, evidence(), sheet(time_at_sequence_cap=0.2, kv_usage_p95=0.04))
    assert [r.id for r in verdicts.fired] == ["a/fires"]
    assert [n.rule for n in verdicts.not_fired] == ["a/does-not"]
    assert [(r.id, u.needs[0].fact) for r, u in verdicts.undetermined] == [("a/open", "preempted_share")]


def test_a_rule_is_silent_beside_one_that_it_gives_way_to() -> None:
    rules = [
        rule("running_p95 >= 1", id="a/holds", gives_way_to=["b/cause"]),
        rule("preempted_share >= 0.5 %", id="a/open", gives_way_to=["b/cause"]),
        rule("running_p95 >= 1", id="a/stays", gives_way_to=["b/open", "b/does-not"]),
        rule("running_p95 >= 2", id="b/cause"),
        rule("running_p95 >= 9", id="b/does-not"),
        rule("kv_usage_p95 >= 90 %", id="b/open"),
    ]
    verdicts = judge(rules, evidence(), sheet(running_p95=8))
    assert [r.id for r in verdicts.fired] == ["a/stays", "b/cause"]
    told = {n.rule: n.condition for n in verdicts.not_fired}
    assert told["a/holds"] == told["a/open"] == "gives way to b/cause"
    assert [r.id for r, _ in verdicts.undetermined] == ["b/open"]


@pytest.mark.parametrize(
    ("objective", "slo", "applies"),
    [
        ("tpot", Slo(tpot_seconds=0.04), True),
        ("tpot", Slo(ttft_seconds=2.0), False),
        ("itl", Slo(itl_seconds=0.2), True),
        ("any", Slo(ttft_seconds=2.0), True),
        ("any", Slo(itl_seconds=0.2), False),
        ("any", Slo(), False),
    ],
)
def test_a_rule_for_an_objective_applies_where_it_is_given(objective: str, slo: Slo, *, applies: bool) -> None:
    verdicts = judge([rule("running_p95 >= 1", objective=objective)], evidence(slo=slo), sheet(running_p95=8))
    assert bool(verdicts.fired) is applies


def test_the_closest_is_the_failed_condition_nearest_to_its_threshold() -> None:
    one = rule("kv_usage_p95 < 60 %", "running_p95 >= 10")
    # 0.9 against 0.6 is half the threshold away, 8 against 10 a fifth.
    found = closest(one, sheet(kv_usage_p95=0.9, running_p95=8))
    assert (found.condition, found.value) == ("running_p95 >= 10", 8)
    assert found.distance == pytest.approx(0.2)


def test_how_it_fares_keeps_a_rule_away_before_how_it_is_built() -> None:
    one = rule("replicas > 1", "replica_imbalance >= 1.3")
    found = closest(one, sheet(replicas=1, replica_imbalance=1))
    assert (found.condition, found.value, found.distance) == ("replica_imbalance >= 1.3", 1, None)
    assert closest(one, sheet(replicas=1, replica_imbalance=1.5)).condition == "replicas > 1"
    assert closest(one, sheet(replicas=2, replica_imbalance=1)).distance == pytest.approx(0.3 / 1.3)


def test_the_closest_has_the_bounds_of_what_is_bounded() -> None:
    found = closest(rule("latency_ceiling is unknown"), sheet(latency_ceiling=(10, None)))
    assert (found.value, found.low, found.high) == (None, 10, None)
    known = closest(rule("latency_ceiling is unknown"), sheet(latency_ceiling=Fact(value=12, high=14)))
    assert (known.value, known.low, known.high) == (12, None, None)


def test_the_closest_says_not_under_a_negation() -> None:
    found = closest(rule({"not": "kv_usage_p95 < 60 %"}), sheet(kv_usage_p95=0.3))
    assert found.condition == "not kv_usage_p95 < 60 %"
    assert found.distance == pytest.approx(0.5)


def test_a_double_negation_is_none() -> None:
    found = closest(rule({"not": {"not": "kv_usage_p95 < 60 %"}}), sheet(kv_usage_p95=0.9))
    assert found.condition == "kv_usage_p95 < 60 %"


def test_a_condition_that_nobody_could_decide_is_not_what_failed() -> None:
    one = rule("running_p95 < 10", "slo_target is unknown")
    found = closest(one, sheet(slo_target=0.99))
    assert (found.condition, found.value) == ("slo_target is unknown", 0.99)


def test_what_is_decided_blocks_a_rule_that_wants_it_open() -> None:
    one = rule({"undecided": "slo_attainment < slo_target"})
    found = closest(one, sheet(slo_attainment=(0.80, 0.93), slo_target=0.99))
    assert found.condition == "slo_attainment < slo_target"


def test_bounds_of_a_need_are_written_in_their_unit() -> None:
    found = needs(rule("recommended_max_model_len < 8192").condition, sheet(recommended_max_model_len=(5010, 11_000)))
    assert found[0].reason == "only known to lie between 5,010 and 11,000 (test): not enough to decide"


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ((4_000, None), "be at least 4,000"),
        ((None, 5_010), "be at most 5,010"),
        ((4_999.6, 5_000.4), "be 5,000"),  # both print as one number
    ],
)
def test_a_need_says_what_is_known_of_a_fact(bounds: tuple[float | None, float | None], told: str) -> None:
    (need,) = needs(rule("needed_tokens_p999_upper < 5_000").condition, sheet(needed_tokens_p999_upper=bounds))
    assert need.reason == f"only known to {told} (test): not enough to decide"


def test_needs_name_only_what_leaves_the_rule_open() -> None:
    one = rule({"any": ["running_p95 < 10", "budget_ceiling < 5"]}, "preempted_share < 0.5 %", "kv_usage_p95 < 60 %")
    found = needs(one.condition, sheet(running_p95=8, kv_usage_p95=(0.5, 0.7)))
    assert [need.fact for need in found] == ["preempted_share", "kv_usage_p95"]
    assert found[1].reason == "only known to lie between 50 % and 70 % (test): not enough to decide"


def test_evidence_shows_what_made_the_rule_hold() -> None:
    one = rule("kv_usage_p95 < 60 %", {"any": ["running_p95 > 100", "running_p95 < 10"]}, {"not": "waiting_p95 < 1"})
    lines = evidence_lines(one.condition, sheet(kv_usage_p95=0.04, running_p95=8, waiting_p95=30))
    assert lines == (
        EvidenceLine("kv_usage_p95", 0.04, "ratio", "kv_usage_p95 < 60 %"),
        EvidenceLine("running_p95", 8, "requests", "running_p95 < 10"),
        EvidenceLine("waiting_p95", 30, "requests", "not waiting_p95 < 1"),
    )


def test_a_condition_that_holds_under_not_is_no_evidence() -> None:
    one = rule({"not": ["kv_usage_p95 < 60 %"]}, "running_p95 >= 1")
    lines = evidence_lines(one.condition, sheet(kv_usage_p95=0.04, running_p95=8))
    assert [line.condition for line in lines] == []


@pytest.mark.parametrize(
    ("condition", "shown", "bound"),
    [
        ("kv_usage_p95 < 60 %", 0.01, "high"),  # at most 1 % decides it, not the 0 % at the other end
        ("kv_usage_p95 >= 0 %", 0.0, "low"),
        ({"not": "kv_usage_p95 >= 60 %"}, 0.01, "high"),
    ],
)
def test_of_bounds_the_one_that_decides_is_shown(condition: str | dict[str, str], shown: float, bound: str) -> None:
    (line,) = evidence_lines(rule(condition).condition, sheet(kv_usage_p95=fact((0.0, 0.01))))
    assert (line.value, line.bound) == (shown, bound)
