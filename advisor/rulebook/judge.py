"""Rules x facts -> what held, what did not and by how much, and what could not be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from advisor.domain import numbers
from advisor.domain.advice import EvidenceLine, Need, NotFired, Undetermined
from advisor.domain.catalogue import CATALOGUE, STRUCTURE
from advisor.domain.evidence import Evidence, Slo
from advisor.domain.fact import Fact

from .clause import Clause
from .condition import Condition
from .schema import Rule


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The rules of one deployment, sorted by what came of them; rules that do not apply to it are in none."""

    fired: tuple[Rule, ...]
    undetermined: tuple[tuple[Rule, Undetermined], ...]
    not_fired: tuple[NotFired, ...]


def judge(rules: Iterable[Rule], evidence: Evidence, facts: Mapping[str, Fact]) -> Verdicts:
    """Evaluate every rule that applies; one that gives way to another that holds counts as not holding."""
    outcomes = [(rule, rule.condition.holds(facts)) for rule in rules if applies(rule, evidence)]
    holding = {rule.id for rule, outcome in outcomes if outcome}
    fired: list[Rule] = []
    open_: list[tuple[Rule, Undetermined]] = []
    not_fired: list[NotFired] = []
    for rule, outcome in outcomes:
        if outcome is False:
            not_fired.append(closest(rule, facts))
        elif before := rule.comes_after(holding):
            not_fired.append(NotFired(rule.id, f"gives way to {before}", None, None))
        elif outcome:
            fired.append(rule)
        else:
            open_.append((rule, Undetermined(rule.id, needs(rule.condition, facts))))
    return Verdicts(tuple(fired), tuple(open_), tuple(not_fired))


def applies(rule: Rule, evidence: Evidence) -> bool:
    """Whether the rule is meant for this engine, this workload and these objectives."""
    if rule.engines is not None and evidence.engine not in rule.engines:
        return False
    if rule.workload is not None and rule.workload != evidence.workload:
        return False
    return rule.objective is None or _given(rule.objective, evidence.slo)


def evidence_lines(clause: Clause, facts: Mapping[str, Fact]) -> tuple[EvidenceLine, ...]:
    """The comparisons that made a rule hold, with their figures."""
    lines = []
    for condition, negated in _grounds(clause, facts, wanted=True):
        if condition.word != "unknown" and not (negated and condition.word == "known"):
            shown, bound = _deciding(condition, facts[condition.fact], negated=negated)
            text = f"not {condition.text}" if negated else condition.text
            lines.append(EvidenceLine(condition.fact, shown, CATALOGUE[condition.fact].unit, text, bound))
    return tuple(lines)


def needs(clause: Clause, facts: Mapping[str, Fact]) -> tuple[Need, ...]:
    """The facts that leave a rule open, each with why it is not known."""
    named: dict[str, str] = {}
    for condition in _left_open(clause, facts):
        for name in condition.missing(facts):
            named.setdefault(name, facts[name].unknown or between(name, facts[name]))
    return tuple(Need(name, reason) for name, reason in named.items())


def closest(rule: Rule, facts: Mapping[str, Fact]) -> NotFired:
    """Of the comparisons that keep a rule from holding, the one nearest to giving way.

    One over how the deployment fares before one over how it is built, which no traffic changes: where that keeps the
    rule away, too, no distance is one from holding.
    """
    blocking = list(_blockers(rule.condition, facts, wanted=True))
    nearest, negated = min(blocking, key=lambda pair: _rank(pair[0], facts))
    text = f"not {nearest.text}" if negated else nearest.text
    fact = facts[nearest.fact]
    low, high = (fact.low, fact.high) if fact.value is None else (None, None)
    built = any(condition.fact in STRUCTURE and condition.holds(facts) is not None for condition, _ in blocking)
    return NotFired(rule.id, text, fact.value, None if built else nearest.distance(facts), low, high)


def _blockers(part: Clause | Condition, facts: Mapping[str, Fact], *, wanted: bool) -> Iterator[tuple[Condition, bool]]:
    """The comparisons because of which `part` is not `wanted`, each with whether it is wanted false."""
    if part.holds(facts) is wanted:
        return
    if isinstance(part, Condition):
        yield part, not wanted
        return
    if part.joint == "undecided":
        yield from ((condition, False) for condition in part.conditions())
        return
    for inner in part.parts:
        yield from _blockers(inner, facts, wanted=wanted is not (part.joint == "not"))


def _grounds(part: Clause | Condition, facts: Mapping[str, Fact], *, wanted: bool) -> Iterator[tuple[Condition, bool]]:
    """The comparisons because of which `part` is `wanted`, each with whether that is so because it is false."""
    if part.holds(facts) is not wanted:
        return
    if isinstance(part, Condition):
        yield part, not wanted
        return
    for inner in part.parts:
        yield from _grounds(inner, facts, wanted=wanted is not (part.joint == "not"))


def _left_open(part: Clause | Condition, facts: Mapping[str, Fact]) -> Iterator[Condition]:
    """The undecided comparisons of what is undecided: an `any` that holds already needs nothing more."""
    if part.holds(facts) is not None:
        return
    if isinstance(part, Condition):
        yield part
        return
    for inner in part.parts:
        yield from _left_open(inner, facts)


def _deciding(
    condition: Condition, fact: Fact, *, negated: bool
) -> tuple[float | str | None, Literal["low", "high"] | None]:
    """The value, or of bounds the one nearer to the threshold: `at most 1 %` is what decides `< 60 %`."""
    if fact.value is not None:
        return fact.value, None
    upper_decides = condition.op in ((">", ">=") if negated else ("<", "<="))
    if fact.low is None or (upper_decides and fact.high is not None):
        return fact.high, "high" if fact.high is not None else None
    return fact.low, "low"


def _rank(condition: Condition, facts: Mapping[str, Fact]) -> tuple[bool, bool, float]:
    """Failed before undecided, how it fares before how it is built, then the nearest to its threshold."""
    distance = condition.distance(facts)
    undecided, built = condition.holds(facts) is None, condition.fact in STRUCTURE
    return undecided, built, float("inf") if distance is None else distance


def _given(objective: str, slo: Slo) -> bool:
    targets = {"tpot": slo.tpot_seconds, "ttft": slo.ttft_seconds, "itl": slo.itl_seconds}
    asked = ("tpot", "ttft") if objective == "any" else (objective,)
    return any(targets[name] is not None for name in asked)


def between(name: str, fact: Fact) -> str:
    """How a need speaks of a fact that is known only within bounds."""
    unit = numbers.unit_of(name)
    low, high = (None if bound is None else numbers.quantity(bound, unit) for bound in (fact.low, fact.high))
    told = f"lie between {low} and {high}" if low and high and low != high else f"be {numbers.figure(name, fact)}"
    return f"only known to {told} ({fact.source or 'bounds'}): not enough to decide"
