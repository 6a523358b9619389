"""One change at a time: the written order, one value a knob, planned deployments, and the status that follows."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from advisor.domain.advice import SEVERITIES, Advice, Severity, Verdict
from advisor.domain.evidence import Evidence, RequestLog
from advisor.domain.histogram import JointCounts, TokenCounts
from advisor.rulebook.arbiter import KNOB_ORDER, VERDICT_ORDER, advise, arbitrate, is_planned
from tests.unit.rulebook.samples import RAISE, evidence, rule, sheet


def piece(
    *,
    severity: Severity = "info",
    verdict: Verdict = "change_flag",
    knob: str | None = "max_num_seqs",
    rule: str = "a/a",
) -> Advice:
    return Advice(
        id="0123456789",
        title="A title",
        confidence_basis="told",
        reason="told",
        verify="told",
        undo="told",
        rule=rule,
        state="queued",
        verdict=verdict,
        knob=knob,
        current=None,
        recommended=8,
        flag=None,
        severity=severity,
        confidence="high",
        evidence=(),
        prediction=(),
    )


def test_the_written_order() -> None:
    """Severity goes before verdict, verdict before knob, knob before the id."""
    written = (
        piece(severity="critical", verdict="investigate", knob=None, rule="z/z"),
        piece(severity="warning", verdict="add_replicas", knob="replicas", rule="z/y"),
        piece(severity="warning", verdict="change_flag", knob="max_model_len", rule="z/x"),
        piece(severity="warning", verdict="change_flag", knob="max_num_seqs", rule="z/w"),
        piece(severity="warning", verdict="change_flag", knob="max_num_batched_tokens", rule="b/v"),
        piece(severity="warning", verdict="run_sweep", knob=None, rule="b/u"),
        piece(severity="warning", verdict="fix_instrumentation", knob=None, rule="b/t"),
        piece(severity="warning", verdict="investigate", knob=None, rule="b/a"),
        piece(severity="warning", verdict="investigate", knob=None, rule="b/b"),
        piece(severity="opportunity", verdict="reshard", knob=None, rule="a/s"),
        piece(severity="info", verdict="split_workload", knob=None, rule="a/r"),
    )
    for shuffled in (written[::-1], (*written[5:], *written[:5]), (*written[::2], *written[1::2])):
        ordered = arbitrate(shuffled, planned=False)
        assert [one.rule for one in ordered] == [one.rule for one in written]
        assert [one.state for one in ordered] == ["open", *["queued"] * 10]


def test_a_rule_may_come_after_another_all_the_same() -> None:
    limit = piece(severity="warning", knob="max_model_len", rule="a/limit")
    cap = piece(severity="warning", knob="max_num_seqs", rule="b/cap")
    last = piece(severity="info", knob="max_num_batched_tokens", rule="c/last")
    for after, turn in [
        (["b/cap"], ["b/cap", "a/limit", "c/last"]),
        (["c/last"], ["b/cap", "c/last", "a/limit"]),
        (["b/other"], ["a/limit", "b/cap", "c/last"]),
    ]:
        kept = arbitrate([cap, last, limit], {"a/limit": after}, planned=False)
        assert [one.rule for one in kept] == turn
        assert [one.state for one in kept] == ["open", "queued", "queued"]


def test_every_word_has_its_place_in_the_order() -> None:
    assert VERDICT_ORDER[:3] == ("add_replicas", "reshard", "remove_replicas")
    assert VERDICT_ORDER.index("change_flag") < VERDICT_ORDER.index("run_sweep")
    for severity, verdict, knob in itertools.product(SEVERITIES, VERDICT_ORDER, KNOB_ORDER):
        assert len(arbitrate([piece(severity=severity, verdict=verdict, knob=knob)], planned=False)) == 1


def test_one_knob_gets_one_value() -> None:
    lower, higher = piece(rule="a/raise"), piece(rule="a/lower", severity="warning")
    other = piece(rule="a/limit", knob="max_model_len", severity="warning")
    kept = arbitrate([lower, higher, other], planned=False)
    assert [one.rule for one in kept] == ["a/limit", "a/lower"]


def test_advice_without_a_knob_is_all_kept() -> None:
    kept = arbitrate([piece(verdict="investigate", knob=None, rule=f"a/{name}") for name in "bca"], planned=False)
    assert [one.rule for one in kept] == ["a/a", "a/b", "a/c"]


def test_what_is_only_planned_gets_all_its_flags_at_once() -> None:
    kept = arbitrate(
        [piece(), piece(knob="max_model_len", rule="a/l"), piece(verdict="run_sweep", knob=None)], planned=True
    )
    assert [(one.verdict, one.knob, one.state) for one in kept] == [
        ("change_flag", "max_model_len", "open"),
        ("change_flag", "max_num_seqs", "open"),
        ("run_sweep", None, "queued"),
    ]


def test_nothing_is_advised_where_nothing_holds() -> None:
    assert arbitrate([], planned=True) == ()


# --- status ---

SWEEP = {"verdict": "run_sweep"}
BUCKETS = {"verdict": "fix_instrumentation"}
LOOK = {"verdict": "investigate"}


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        ([rule("running_p95 >= 1", advise=RAISE)], "advice"),
        ([rule("running_p95 >= 1", advise=LOOK)], "advice"),
        ([rule("running_p95 >= 1", advise=SWEEP)], "cannot_tell"),
        ([rule("running_p95 >= 1", advise=BUCKETS)], "cannot_tell"),
        ([rule("running_p95 >= 1", advise=SWEEP), rule("running_p95 >= 1", id="b/b", advise=RAISE)], "advice"),
        (
            [
                rule("running_p95 >= 1", advise=BUCKETS, severity="warning"),
                rule("running_p95 >= 1", id="b/b", advise=RAISE),
            ],
            "cannot_tell",
        ),
        ([rule("running_p95 >= 1")], "ok"),  # a finding
        ([rule("running_p95 >= 100", advise=LOOK, severity="warning")], "ok"),
        ([rule("kv_usage_p95 >= 1", advise=LOOK, severity="warning")], "cannot_tell"),
        ([rule("kv_usage_p95 >= 1", advise=LOOK, severity="opportunity")], "cannot_tell"),
        ([rule("kv_usage_p95 >= 1")], "ok"),  # nothing of weight is undecided
        ([], "ok"),
    ],
)
def test_the_status_follows_the_first_piece_of_advice(rules: list[Any], status: str) -> None:
    judgement = advise(rules, evidence(), sheet(running_p95=8, next_max_num_seqs=12), ())
    assert judgement.status == status


def test_a_rule_that_held_without_a_value_to_advise_is_undetermined() -> None:
    """8 % of requests are refused, and of the limit that would hold them only bounds are known."""
    limit = {"verdict": "change_flag", "knob": "max_model_len", "to": "recommended_max_model_len"}
    one = rule("recommended_max_model_len > max_model_len", advise=limit, severity="warning")
    facts = sheet(running_p95=8, max_model_len=4_096, recommended_max_model_len=(5_120, 8_192))
    judgement = advise([one], evidence(), facts, ())
    assert (judgement.status, judgement.advice) == ("cannot_tell", ())
    assert [(u.rule, u.needs[0].fact) for u in judgement.undetermined] == [("area/name", "recommended_max_model_len")]


def test_a_refusal_is_shown_with_its_reason() -> None:
    facts = sheet(running_p95=8, max_num_seqs=8, next_max_num_seqs=12)
    judgement = advise(
        [rule("running_p95 >= 1", advise=RAISE)],
        evidence({"max_num_seqs": 8, "max_num_batched_tokens": 10}),
        facts,
        (),
    )
    assert (judgement.status, judgement.advice) == ("ok", ())
    assert [n.condition for n in judgement.not_fired] == [
        "the engine would refuse to start: max_num_seqs 12 exceeds max_num_batched_tokens 10"
    ]


def test_a_finding_has_its_figures_filled_in() -> None:
    judgement = advise([rule("running_p95 >= 1", title="{running_p95} run")], evidence(), sheet(running_p95=8), ())
    assert [f.title for f in judgement.findings] == ["8 run"]


def test_where_something_was_found_there_was_data() -> None:
    facts = sheet(max_num_batched_tokens=2_048)
    undecided = rule("kv_usage_p95 >= 1", id="b/b", advise=LOOK, severity="warning")
    found = rule("max_num_batched_tokens is known")
    assert advise([undecided], evidence(), facts, ()).status == "no_data"
    assert advise([undecided, found], evidence(), facts, ()).status == "cannot_tell"


# --- planned ---

LOG = RequestLog(
    served=JointCounts.of([100], [10]),
    declared=TokenCounts.of([]),
    refused_needs=TokenCounts.of([]),
    cut=TokenCounts.of([]),
    refused=0,
    failed=0,
    without_usage=0,
    first_seconds=0.0,
    last_seconds=0.0,
    arrivals={0: 1},
    latency=None,
    source="log",
)


@pytest.mark.parametrize(
    "running", ["observed_seconds", "running_p95", "kv_usage_p95", "preempted_share", "time_at_sequence_cap"]
)
def test_what_is_stated_of_a_running_server_ends_the_plan(running: str) -> None:
    assert is_planned(evidence(), sheet(latency_ceiling=40))
    assert not is_planned(evidence(), sheet(latency_ceiling=40, **{running: 1.0}))


def test_a_log_ends_the_plan_however_short_it_is() -> None:
    assert not is_planned(replace(evidence(), log=LOG), sheet())


@pytest.mark.parametrize(("of", "fired"), [(evidence(), True), (replace(evidence(), log=LOG), False)])
def test_rules_for_plans_are_for_nothing_else(of: Evidence, *, fired: bool) -> None:
    one = rule("next_max_num_seqs is known", id="plan/first", advise=RAISE)
    judgement = advise([one], of, sheet(next_max_num_seqs=40), ())
    assert bool(judgement.advice) is fired
    assert judgement.not_fired == ()
    assert judgement.undetermined == ()


@pytest.mark.parametrize(
    ("known", "status"),
    [({}, "no_data"), ({"memory_ceiling_guaranteed": 47}, "ok"), ({"running_p95": 8}, "ok")],
)
def test_no_data_is_neither_traffic_nor_arithmetic(known: dict[str, float], status: str) -> None:
    assert advise([], evidence(), sheet(**known), ()).status == status


LAST = {"id": "area/last", "advise": {"verdict": "investigate"}, "last_resort": True}


def test_a_rule_of_last_resort_speaks_where_no_other_knows_what_to_do() -> None:
    last, info = rule("running_p95 >= 1", **LAST), rule("running_p95 >= 1", advise={"verdict": "investigate"})
    alone = advise([last], evidence(), sheet(running_p95=8), ())
    assert ([a.rule for a in alone.advice], alone.status) == (["area/last"], "advice")
    beside = advise([last, info], evidence(), sheet(running_p95=8), ())
    assert {a.rule for a in beside.advice} == {"area/last", "area/name"}


def test_a_rule_of_last_resort_only_states_while_others_wait_for_facts() -> None:
    last = rule("running_p95 >= 1", **LAST)
    other = rule("kv_usage_p95 < 60 %", advise={"verdict": "investigate"}, severity="opportunity")
    judged = advise([last, other], evidence(), sheet(running_p95=8), ())
    assert (judged.advice, judged.status) == ((), "cannot_tell")
    assert [finding.rule for finding in judged.findings] == ["area/last"]


def test_a_rule_of_last_resort_steps_back_where_another_advises() -> None:
    last = rule("running_p95 >= 1", **LAST)
    other = rule("running_p95 >= 1", advise={"verdict": "investigate"}, severity="opportunity")
    judged = advise([last, other], evidence(), sheet(running_p95=8), ())
    assert [a.rule for a in judged.advice] == ["area/name"]
    assert [(n.rule, n.condition) for n in judged.not_fired] == [("area/last", "another rule advises what to do")]


@pytest.mark.parametrize(
    ("attained", "reason", "told"),
    [
        (0.86, "the cap is full", "86 % of requests meet their targets, 99 % should; the cap is full"),
        (0.86, "{slo_attainment} meet them", "86 % meet them"),
        (0.995, "the cap is full", "the cap is full"),
        ((0.5, 0.999), "the cap is full", "the cap is full"),
    ],
)
def test_the_first_advice_says_that_objectives_are_missed(
    attained: float | tuple[float, float], reason: str, told: str
) -> None:
    full = rule("running_p95 >= 1", reason=reason, advise={"verdict": "investigate"})
    facts = sheet(running_p95=16, slo_attainment=attained, slo_target=0.99)
    (first,) = advise([full], evidence(), facts, ()).advice
    assert first.reason == told
