"""The page of a rule, the same headings for every one, from its own file; and that of a fact, from the catalogue."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from advisor.domain.catalogue import CATALOGUE, WORDS

from .clause import Clause
from .condition import Condition
from .schema import Rule

WIDTH = 100
HEADINGS = (
    ("What it checks", "what"),
    ("Why it costs", "why"),
    ("Evidence it needs", "evidence"),
    ("What to change", "change"),
    ("How to verify", "verify"),
    ("How to undo", "undo"),
    ("Limits", "limits"),
)


def render(rule: Rule) -> str:
    """The page as plain text."""
    lines = [f"{rule.id} · {rule.severity}", rule.title, "", "It holds when"]
    lines += [f"  {line}" for line in _conditions(rule.condition)]
    if rule.gives_way_to:
        lines += ["", "It gives way to", *(f"  {other}" for other in rule.gives_way_to)]
    if rule.advise is not None:
        target = f" {rule.advise.knob} -> {rule.advise.to}" if rule.advise.knob else ""
        lines += ["", "It advises", f"  {rule.advise.verdict}{target}"]
    for heading, field in HEADINGS:
        lines += ["", heading, *textwrap.wrap(getattr(rule, field), WIDTH, initial_indent="  ", subsequent_indent="  ")]
    return "\n".join(lines) + "\n"


def render_fact(name: str, rules: Iterable[Rule]) -> str:
    """What a fact of the catalogue means, in which unit, and the comparisons by which rules ask for it."""
    spec = CATALOGUE[name]
    unit = ", ".join(WORDS[name]) if name in WORDS else spec.unit
    lines = [name if unit == "-" else f"{name} · {unit}", spec.meaning[:1].upper() + spec.meaning[1:]]
    asked = [(c.text, rule.id) for rule in rules for c in rule.condition.conditions() if name in (c.fact, c.other)]
    told = [f"  {rule}: {text}" for text, rule in dict.fromkeys(asked)]
    return "\n".join([*lines, "", "Rules that ask for it", *(told or ["  none"])]) + "\n"


def _conditions(clause: Clause, indent: str = "") -> Iterator[str]:
    for part in clause.parts:
        if isinstance(part, Condition):
            yield f"{indent}{part.text}"
        else:
            yield f"{indent}{part.joint}:"
            yield from _conditions(part, indent + "  ")
