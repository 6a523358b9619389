"""Comparisons joined by `all`, `any` and `not` in Kleene's three values, and asked how sure they are.

`possible` holds unless its part is false, `sure` only where it is true, `undecided` where it is neither: none of the
three is ever left open itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from advisor.domain.errors import ConfigError
from advisor.domain.fact import Fact

from .condition import Condition, parse

Joint = Literal["all", "any", "not", "possible", "sure", "undecided"]
JOINTS: tuple[Joint, ...] = get_args(Joint)
SURENESS: Mapping[Joint, tuple[bool | None, ...]] = {"possible": (True, None), "sure": (True,), "undecided": (None,)}
MOST_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Clause:
    """A joint over comparisons and clauses; all but `all` and `any` have one part."""

    joint: Joint
    parts: tuple[Condition | Clause, ...]

    def holds(self, facts: Mapping[str, Fact]) -> bool | None:
        """True, False, or None when what is known leaves it open."""
        values = [part.holds(facts) for part in self.parts]
        if self.joint in SURENESS:
            return values[0] in SURENESS[self.joint]
        if self.joint == "not":
            return None if values[0] is None else not values[0]
        deciding = self.joint == "any"
        if deciding in values:
            return deciding
        return None if None in values else not deciding

    def left_open(self, facts: Mapping[str, Fact]) -> tuple[str, ...]:
        """The facts on whose being unknown the outcome rests; none where a part decides it by what is known.

        `any: [a < b, b is unknown]` rests on b where it holds only because b is unknown.
        """
        outcome = self.holds(facts)
        told = {part: _left_open(part, facts) for part in self.parts}
        if (self.joint, outcome) in (("any", True), ("all", False)):
            return min((told[part] for part in self.parts if part.holds(facts) is outcome), key=len)
        return tuple(dict.fromkeys(name for names in told.values() for name in names))

    def conditions(self) -> Iterator[Condition]:
        """Every comparison in it, in order."""
        for part in self.parts:
            if isinstance(part, Condition):
                yield part
            else:
                yield from part.conditions()


def _left_open(part: Condition | Clause, facts: Mapping[str, Fact]) -> tuple[str, ...]:
    if isinstance(part, Clause):
        return part.left_open(facts)
    if part.holds(facts) is None:
        return part.missing(facts) or (part.fact,)
    return (part.fact,) if part.op == "is" and part.word in ("unknown", "bounded") and part.holds(facts) else ()


def read(raw: Any, joint: Joint = "all", depth: int = 0) -> Clause:
    """A clause from plain data: a list of comparisons (texts) and of mappings such as `any: [..]` or `not: text`."""
    if depth > MOST_DEPTH:
        raise ConfigError(f"conditions are nested deeper than {MOST_DEPTH}")
    items = raw if isinstance(raw, list) else [raw]
    if not items:
        raise ConfigError(f"`{joint}` has no condition")
    if joint not in ("all", "any") and len(items) != 1:
        raise ConfigError(f"`{joint}` takes one condition, not {len(items)}")
    return Clause(joint, tuple(_part(item, depth) for item in items))


def _part(item: Any, depth: int) -> Condition | Clause:
    if isinstance(item, str):
        return parse(item)
    if isinstance(item, dict) and len(item) == 1:
        joint, inner = next(iter(item.items()))
        if joint in JOINTS:
            return read(inner, joint, depth + 1)
    raise ConfigError(f"{str(item)[:60]!r} is not a condition: a comparison, or one of {', '.join(JOINTS)} with a list")
