"""How sure a piece of advice is: low on assumptions, medium on small samples or with something left open, else high."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain import numbers
from advisor.domain.advice import Confidence, EvidenceLine
from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact

from .schema import Rule

LEAST_N = 500


def confidence(
    rule: Rule, lines: tuple[EvidenceLine, ...], evidence: Evidence, facts: Mapping[str, Fact]
) -> tuple[Confidence, str]:
    """How sure, and what that rests on."""
    named = [*(line.fact for line in lines), *([rule.advise.knob] if rule.advise and rule.advise.knob else [])]
    assumed = [name for name in named if facts[name].basis == "assumed" and name != "slo_target"]
    if assumed:
        return "low", f"stated or assumed, not measured here: {', '.join(dict.fromkeys(assumed))}"
    if left_open := rule.condition.left_open(facts):
        return "medium", f"not known: {', '.join(left_open)}"
    sizes = [n for line in lines if (n := facts[line.fact].n) is not None]
    if not sizes:
        return "medium", _arithmetic(evidence)
    if min(sizes) < LEAST_N:
        return "medium", f"the smallest sample behind it is {min(sizes):,}"
    observed = facts["observed_seconds"].number
    over = f", over {numbers.duration(observed)}" if observed else ""
    return "high", f"every condition measured or computed; the smallest sample is {min(sizes):,}{over}"


def _arithmetic(evidence: Evidence) -> str:
    """What advice rests on where no sample decides: settings and the traffic, or nothing but a plan."""
    if evidence.log is None and evidence.exported is None and not evidence.engines:
        return "arithmetic on stated figures; nothing was measured on this deployment"
    return "arithmetic on its settings and on what was measured; no sample decides it"
