"""What must never be said, whatever the facts: the shipped rules over random sheets of facts.

Facts are drawn near the thresholds of the rules, known, bounded or Unknown, without regard to whether they fit: a
dashboard, a log and a sweep may well contradict each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import rule_pack
from advisor.domain.advice import Advice, Judgement
from advisor.domain.catalogue import CATALOGUE, WORDS
from advisor.domain.evidence import Evidence, Slo
from advisor.domain.fact import Basis, Fact, FactSheet, unknown
from advisor.domain.numbers import setting
from advisor.rulebook import casebook
from advisor.rulebook.arbiter import CANNOT_TELL, advise, order
from advisor.rulebook.judge import judge
from tests.unit.rulebook.samples import evidence, fact

pytestmark = pytest.mark.slow

FILES = rule_pack.read([rule_pack.shipped_directory("rules")])
RULES = tuple(file.rule for file in FILES)
FIRING = [
    (file.rule, {name: casebook._fact(name, written) for name, written in case.facts.items()})
    for file in FILES
    for case in (file.cases.cases if file.cases else ())
    if case.expect == "fires"
]
CHANGING = [(rule, stated) for rule, stated in FIRING if rule.advise and rule.advise.knob]
TARGETS = {rule.advise.to for rule in RULES if rule.advise and rule.advise.to}
ASKED = sorted({c.fact for rule in RULES for c in rule.condition.conditions()} | TARGETS)
PLANS = {rule.id for rule in RULES if rule.plans}
CANNOT_SERVE = {rule.id for rule in RULES if rule.id.startswith("startup/")} | {"memory/limit-above-pool"}
"""They change what the engine refuses to start with, or can never serve: there is no traffic to harm."""
RESHAPE = {
    "startup/weights-fill-memory",
    "capacity/sharded-beyond-need",
    "workload/two-populations",
    "workload/long-prompts-stall-short-ones",
}
FLAG_FACTS = ("max_num_seqs", "max_model_len", "max_num_batched_tokens")
RATIOS = st.sampled_from([0.0, 0.001, 0.004, 0.005, 0.05, 0.3, 0.59, 0.6, 0.75, 0.9, 0.95, 0.99, 1.0, 1.3])
COUNTS = st.sampled_from([0.0, 1.0, 2.0, 7.5, 8.0, 12.0, 16.0, 24.0, 40.0, 256.0, 1024.0])
LENGTHS = st.sampled_from([1.0, 1024.0, 4096.0, 9216.0, 12288.0, 131072.0, 1048576.0])
SECONDS = st.sampled_from([0.0, 0.001, 0.02, 0.04, 2.0, 43200.0, 604800.0])
BASES: tuple[Basis, ...] = ("measured", "computed", "assumed")
BY_UNIT = {"ratio": RATIOS, "tokens": LENGTHS, "seconds": SECONDS}
SLOS = st.sampled_from([Slo(0.04, 0.2, 2.0), Slo(0.04, 0.2, 2.0), Slo(tpot_seconds=0.04), Slo()])


@st.composite
def facts(draw: st.DrawFn, name: str) -> Fact:
    """One fact, in any of its shapes."""
    spec = CATALOGUE[name]
    if name in WORDS:
        return Fact(value=draw(st.sampled_from(WORDS[name])), source="drawn")
    shape = draw(st.sampled_from(["known", "known", "known", "unknown", "bounded"]))
    values = BY_UNIT.get(spec.unit, COUNTS)
    basis, n = draw(st.sampled_from(BASES)), draw(st.sampled_from([None, 3, 10_000]))
    if shape == "unknown":
        return unknown("not drawn")
    if shape == "known":
        return Fact(value=draw(values), n=n, source="drawn", basis=basis)
    low, high = sorted((draw(values), draw(values)))
    return Fact(low=draw(st.sampled_from([low, None])), high=high, n=n, source="drawn", basis=basis)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Evidence, FactSheet]:
    """Facts under which a rule changes something by its own case, perhaps with those of a second; some overwritten."""
    rule, drawn = draw(st.sampled_from(CHANGING))
    if draw(st.integers(0, 2)) == 0:
        drawn = draw(st.sampled_from(FIRING))[1] | drawn
    own = sorted({c.fact for c in rule.condition.conditions()})
    overwritten = draw(st.sets(st.sampled_from(own), max_size=2)) | draw(st.sets(st.sampled_from(ASKED), max_size=1))
    drawn = drawn | {name: draw(facts(name)) for name in sorted(overwritten)}
    flags = {n: max(int(drawn[n].number or 0), 1) for n in FLAG_FACTS if n in drawn and drawn[n].number is not None}
    drawn |= {name: replace(drawn[name], value=value) for name, value in flags.items()}
    of = evidence(flags, slo=draw(SLOS), workload=draw(st.sampled_from(["interactive", "interactive", "batch"])))
    return of, FactSheet(drawn)


def judged(situation: tuple[Evidence, FactSheet]) -> tuple[Judgement, Mapping[str, Fact]]:
    of, sheet = situation
    return advise(RULES, of, sheet, ()), sheet


def at_most(fact: Fact, bound: float) -> bool:
    """Whether the fact certainly is at most `bound`."""
    return fact.ceiling is not None and fact.ceiling <= bound


def raises(advice: Advice, knob: str) -> bool:
    return advice.knob == knob and (advice.recommended or 0) > (advice.current or 0)


def _thrashes(stated: Mapping[str, Fact]) -> bool:
    """So much is done twice that fewer at once serve more, whether or not demand fits."""
    gain = "next_cap_over_thrashing_rate"
    return gain in stated and (stated[gain].floor or 0.0) >= 1.1


def _surges(stated: Mapping[str, Fact]) -> bool:
    """Half an hour asks for more than the replicas carry, whether or not the p99 of demand fits."""
    return (stated.get("busiest_half_hour_over_capacity", NOBODY_KNOWS).floor or 0.0) > 1


@given(situations())
@settings(max_examples=100)
def test_every_rule_that_applies_is_in_one_place(situation: tuple[Evidence, FactSheet]) -> None:
    verdicts = judge(RULES, *situation)
    named = [
        *(r.id for r in verdicts.fired),
        *(r.id for r, _ in verdicts.undetermined),
        *(n.rule for n in verdicts.not_fired),
    ]
    assert len(named) == len(set(named))
    assert all(undetermined.needs for _, undetermined in verdicts.undetermined)


AFTER_OTHERS = {rule.id for rule in RULES if rule.after}


@given(situations())
@settings(max_examples=100)
def test_one_change_at_a_time(situation: tuple[Evidence, FactSheet]) -> None:
    judgement, _ = judged(situation)
    knobs = [a.knob for a in judgement.advice if a.knob is not None]
    assert len(knobs) == len(set(knobs))
    in_order = [a for a in judgement.advice if a.rule not in AFTER_OTHERS]
    assert in_order == sorted(in_order, key=order)
    if judgement.advice:
        assert judgement.advice[0].state == "open"
        assert (judgement.status == "cannot_tell") is (judgement.advice[0].verdict in CANNOT_TELL)
    opened = [a for a in judgement.advice if a.state == "open"]
    assert len(opened) <= 1 or all(a.verdict == "change_flag" for a in opened)


@given(situations())
@settings(max_examples=100)
def test_what_is_recommended_is_a_number_that_a_server_takes(situation: tuple[Evidence, FactSheet]) -> None:
    judgement, _ = judged(situation)
    for advice in judgement.advice:
        if advice.knob is not None:
            assert advice.recommended is not None
            share = advice.knob == "gpu_memory_utilization"
            assert 0 < advice.recommended <= 1 if share else advice.recommended >= 1
            assert share or float(advice.recommended).is_integer()
        if advice.verdict == "change_flag":
            assert advice.flag is not None
            assert advice.flag.endswith(f" {setting(advice.recommended or 0)}")
            assert advice.recommended != advice.current
        if advice.verdict == "add_replicas" and advice.current is not None:
            assert (advice.recommended or 0) > advice.current


@given(situations())
@settings(max_examples=400)
def test_the_cap_is_never_raised_into_churn_or_a_full_cache(situation: tuple[Evidence, FactSheet]) -> None:
    judgement, known = judged(situation)
    for advice in judgement.advice:
        if advice.rule not in CANNOT_SERVE and raises(advice, "max_num_seqs"):
            batch = advice.rule == "concurrency/batch-cap-below-memory"
            assert (known["preempted_share"].floor or 0.0) < (0.05 if batch else 0.005)
            assert batch or (known["kv_usage_p95"].floor or 0.0) < 0.6


@given(situations())
@settings(max_examples=400)
def test_the_cap_is_lowered_only_for_a_failure_that_demand_allows(situation: tuple[Evidence, FactSheet]) -> None:
    judgement, known = judged(situation)
    for advice in judgement.advice:
        current = advice.current
        if (
            advice.rule not in PLANS | CANNOT_SERVE
            and advice.knob == "max_num_seqs"
            and (advice.recommended or 0) < (current or 0)
        ):
            attained, asked = known["slo_attainment_tpot"].ceiling, known["slo_target"].floor
            failing = attained is not None and asked is not None and attained < asked
            churning = (known["preempted_share"].floor or 0.0) >= 0.005
            assert failing or churning
            assert at_most(known["demand_over_capacity"], 1.0) or _thrashes(known)


@given(situations())
@settings(max_examples=400)
def test_the_limit_is_lowered_only_on_a_full_uncensored_week(situation: tuple[Evidence, FactSheet]) -> None:
    judgement, known = judged(situation)
    for advice in judgement.advice:
        current = advice.current
        if (
            advice.rule not in PLANS | CANNOT_SERVE
            and advice.knob == "max_model_len"
            and (advice.recommended or 0) < (current or 0)
        ):
            assert (known["observed_days"].floor or 0.0) >= 7
            assert (known["length_coverage"].floor or 0.0) >= 0.95
            assert at_most(known["refused_share_now"], 0.001)
            assert at_most(known["finish_length_share"], 0.001)


@given(situations())
@settings(max_examples=100)
def test_replicas_are_only_added_where_demand_exceeds_them(situation: tuple[Evidence, FactSheet]) -> None:
    judgement, known = judged(situation)
    for advice in judgement.advice:
        if advice.verdict == "remove_replicas":
            assert 1 <= (advice.recommended or 0) < (known["replicas"].floor or 0.0)
            assert (known["slo_attainment"].floor or 0.0) >= (known["slo_target"].ceiling or 1.0)
            assert (known["observed_seconds"].floor or 0.0) >= 6.5 * 86_400
        assert advice.verdict not in ("reshard", "split_workload") or advice.rule in RESHAPE
        if advice.rule == "capacity/low-cap-would-queue":  # demand fits the seats, but not the time per token
            assert (known["slo_attainment_tpot"].ceiling or 0.0) < (known["slo_target"].floor or 1.0)
            assert (known["late_share_at_next_cap"].floor or 0.0) > 0.05
        elif advice.rule == "capacity/first-tokens-late":  # demand fits on average, and bursts of prompts do not
            assert (known["slo_attainment_ttft"].ceiling or 0.0) < (known["slo_target"].floor or 1.0)
            assert (known["waiting_share"].floor or 0.0) >= 0.01 or (known["queue_share_of_ttft"].floor or 0.0) >= 0.2
        elif advice.verdict == "add_replicas":
            pressure = max((known[n].floor or 0.0) for n in ("demand_over_capacity", "demand_over_saturated_rate"))
            assert pressure > 1.0


@given(situations())
@settings(max_examples=100)
def test_what_is_predicted_can_be_refuted(situation: tuple[Evidence, FactSheet]) -> None:
    judgement, _ = judged(situation)
    for prediction in (p for a in judgement.advice for p in a.prediction):
        assert prediction.low is not None or prediction.high is not None
        if prediction.low is not None and prediction.high is not None:
            assert prediction.low <= prediction.high


@given(situations())
@settings(max_examples=50)
def test_the_same_facts_give_the_same_advice(situation: tuple[Evidence, FactSheet]) -> None:
    of, sheet = situation
    once, again = advise(RULES, of, sheet, ()), advise(tuple(reversed(RULES)), of, sheet, ())
    assert [a.id for a in once.advice] == [a.id for a in again.advice]
    assert once.status == again.status


NOBODY_KNOWS = unknown("not told")
GUARDS = [
    ("concurrency/cap-pinned-cache-free", "preempted_share", 0.005),
    ("concurrency/cap-pinned-cache-free", "preempted_share", None),
    ("concurrency/cap-pinned-cache-free", "kv_usage_p95", 0.6),
    ("concurrency/cap-pinned-cache-free", "kv_usage_p95", (0.5, 0.7)),
    ("concurrency/cap-pinned-cache-free", "kv_usage_p95", None),
    ("concurrency/cap-pinned-cache-free", "time_at_sequence_cap", 0.04),
    ("concurrency/cap-pinned-cache-free", "time_at_sequence_cap", None),
    ("concurrency/cap-above-latency-ceiling", "demand_over_capacity", 1.01),
    ("concurrency/cap-above-latency-ceiling", "demand_over_capacity", (0.9, None)),
    ("concurrency/cap-above-latency-ceiling", "demand_over_capacity", None),
    ("concurrency/cap-above-latency-ceiling", "slo_attainment_tpot", 1.0),
    ("concurrency/cap-above-latency-ceiling", "slo_attainment_tpot", (0.9, 1.0)),
    ("concurrency/cap-invites-churn", "demand_over_capacity", 1.01),
    ("concurrency/cap-invites-churn", "demand_over_capacity", None),
    ("concurrency/cap-invites-churn", "preempted_share", 0.004),
    ("length/limit-oversized", "observed_days", 6.9),
    ("length/limit-oversized", "observed_days", None),
    ("length/limit-oversized", "length_coverage", 0.94),
    ("length/limit-oversized", "length_coverage", None),
    ("length/limit-oversized", "refused_share_now", 0.002),
    ("length/limit-oversized", "refused_share_now", None),
    ("length/limit-oversized", "finish_length_share", 0.002),
    ("length/limit-oversized", "recommended_max_model_len", (1_024, 12_288)),
    ("length/limit-refuses-traffic", "recommended_max_model_len", (5_120, None)),
    ("capacity/demand-exceeds-capacity", "demand_over_capacity", 1.0),
    ("capacity/demand-exceeds-capacity", "demand_over_capacity", None),
    ("capacity/demand-exceeds-capacity", "slo_attainment", 1.0),
    ("capacity/demand-exceeds-capacity", "slo_attainment", None),
]


@pytest.mark.parametrize(("rule_id", "name", "value"), GUARDS)
def test_each_guard_alone_holds_the_change_back(
    rule_id: str, name: str, value: float | tuple[float, float | None] | None
) -> None:
    """What fires by the rule's own case does not once this one fact is otherwise, or not known."""
    for rule, firing in CHANGING:
        if rule.id == rule_id and not _thrashes(firing) and not _surges(firing):
            stated = firing | {"replicas": fact(4)}
            of = evidence(slo=Slo(0.04, 0.2, 2.0))
            assert rule_id in {a.rule for a in advise(RULES, of, FactSheet(stated), ()).advice}
            changed = FactSheet(stated | {name: NOBODY_KNOWS if value is None else fact(value)})
            assert rule_id not in {a.rule for a in advise(RULES, of, changed, ()).advice}
