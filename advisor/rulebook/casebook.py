"""Test cases of a rule, as data beside it: facts as somebody would write them, and what the rule must make of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from advisor.domain.catalogue import CATALOGUE, WORDS
from advisor.domain.errors import ConfigError
from advisor.domain.fact import Fact, FactSheet, measured

from .clause import SURENESS, Clause
from .condition import STATES, Condition, known_fact, quantity_of
from .schema import Rule

Expected = Literal["fires", "not_fires", "undetermined"]
OUTCOMES: Mapping[bool | None, Expected] = {True: "fires", False: "not_fires", None: "undetermined"}
Written = str | int | float
REQUIRED: frozenset[Expected] = frozenset(("fires", "not_fires", "undetermined"))


class Bounds(BaseModel):
    """A fact of which only bounds are known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: Written | None = None
    high: Written | None = None


class Case(BaseModel):
    """One situation. Facts that are not named are Unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    facts: Mapping[str, Written | Bounds] = Field(default_factory=dict)
    beside: tuple[str, ...] = Field(default=(), description="ids of other rules that hold")
    expect: Expected

    @field_validator("facts")
    @classmethod
    def _readable(cls, value: Mapping[str, Written | Bounds]) -> Mapping[str, Written | Bounds]:
        try:
            for name, written in value.items():
                _fact(name, written)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return value


class Casebook(BaseModel):
    """The cases of one rule: at least one that fires, one that does not, and one that cannot be told."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cases: tuple[Case, ...] = Field(min_length=1)


def failures(rule: Rule, book: Casebook) -> tuple[str, ...]:
    """What is wrong with the rule by its own cases, one line each."""
    found = []
    for case in book.cases:
        sheet = FactSheet({name: _fact(name, written) for name, written in case.facts.items()})
        outcome = OUTCOMES[False if rule.comes_after(case.beside) else rule.condition.holds(sheet)]
        if outcome != case.expect:
            found.append(f"{rule.id}: case {case.name!r} expects {case.expect}, the rule says {outcome}")
    missing = REQUIRED - {case.expect for case in book.cases} - _impossible(rule)
    return (*found, *(f"{rule.id}: no case expects {kind}" for kind in sorted(missing)))


def _impossible(rule: Rule) -> frozenset[Expected]:
    """A rule that only asks what is known, or how sure something is, can always be decided."""
    return frozenset() if _can_be_open(rule.condition) else frozenset(("undetermined",))


def _can_be_open(part: Clause | Condition) -> bool:
    if isinstance(part, Clause):
        return part.joint not in SURENESS and any(map(_can_be_open, part.parts))
    return part.word not in STATES


def _fact(name: str, written: Written | Bounds) -> Fact:
    unit = CATALOGUE[known_fact(name)].unit
    if isinstance(written, Bounds):
        low, high = (None if w is None else quantity_of(w, unit) for w in (written.low, written.high))
        return measured(None, low=low, high=high, source="case")
    if name in WORDS:
        if written not in WORDS[name]:
            raise ConfigError(f"{name} is one of {', '.join(WORDS[name])}")
        return Fact(value=str(written), source="case", basis="computed")
    return measured(quantity_of(written, unit), source="case")
