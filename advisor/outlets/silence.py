"""Why a rule says nothing: what keeps it away, how close that is, and what nobody can tell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from advisor.domain.advice import NotFired, Undetermined
from advisor.domain.catalogue import CATALOGUE, STRUCTURE
from advisor.domain.numbers import bounded, unit_of

from . import remedies


@dataclass(frozen=True, slots=True)
class Lack:
    """A reason, the facts that are Unknown because of it, and how many rules wait for them."""

    reason: str
    facts: tuple[str, ...]
    rules: int


def needs(undetermined: tuple[Undetermined, ...]) -> list[Lack]:
    """What undecided rules lack, what is most useful to connect first; its facts with the most wanted first."""
    facts: dict[str, Counter[str]] = {}
    rules: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    for rule in undetermined:
        reasons = list(dict.fromkeys(need.reason for need in rule.needs))
        rules.update(reasons)
        wanted.update(frozenset[str]().union(*map(remedies.options, reasons)))
        for need in rule.needs:
            facts.setdefault(need.reason, Counter())[need.fact] += 1
    lacks = [
        Lack(reason, tuple(fact for fact, _ in facts[reason].most_common()), number)
        for reason, number in rules.most_common()
    ]
    return sorted(lacks, key=lambda lack: remedies.usefulness(lack.reason, wanted))


def nearest(not_fired: tuple[NotFired, ...]) -> list[NotFired]:
    """Rules that did not hold, the closest to holding first; last those that only how it is built keeps away.

    What is 0 and would have to be more is as close as can be and nothing to look at.
    """

    def far(rule: NotFired) -> tuple[bool, bool, float]:
        nothing = rule.value == rule.distance == 0
        return _compared(rule) in STRUCTURE, nothing, float("inf") if rule.distance is None else abs(rule.distance)

    return sorted(not_fired, key=far)


def shortfall(rule: NotFired) -> str:
    """Why it did not fire: `fires when preempted_share > 0.5%; it is 0 %`, or why it held and says nothing."""
    fact = _compared(rule)
    if fact not in CATALOGUE:
        return rule.condition
    wanted = f"{fact} is known" if rule.condition == f"not {fact} is unknown" else rule.condition
    return f"fires when {wanted}; it is {bounded(rule.value, rule.low, rule.high, unit_of(fact))}"


def _compared(rule: NotFired) -> str:
    """The fact that its closest condition is about."""
    first, _, rest = rule.condition.strip().partition(" ")
    return rest.split(" ", 1)[0] if first == "not" else first
