"""One comparison of a rule, `fact op quantity` or `fact op [factor] fact`, judged in three values.

    kv_usage_p95 < 60 %            running_p95 < 0.8 budget_ceiling            binding_ceiling is latency
    latency_ceiling is unknown     recommended_max_model_len is bounded        max_num_seqs is known

A fact is an interval: a known value, or bounds. A comparison holds when it holds for the whole interval, fails when it
fails for the whole interval, and is undecided otherwise: `at least 16` decides `>= 10` and leaves `>= 20` open.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from advisor.domain import quantity
from advisor.domain.catalogue import CATALOGUE, WORDS
from advisor.domain.errors import ConfigError
from advisor.domain.fact import Fact

STATES = ("unknown", "known", "bounded")
OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
PARSERS: Mapping[str, Callable[[str | float], float]] = {
    "ratio": quantity.ratio,
    "seconds": quantity.seconds,
    "bytes": quantity.size_bytes,
}
MOST_LENGTH = 200
_SHAPE = re.compile(r"([a-z][a-z0-9_]*)\s*(>=|<=|>|<|\bis\b)\s*(\S.*)")
_OTHER = re.compile(r"(?:(\d+(?:\.\d+)?)\s*\*?\s*)?([a-z][a-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed comparison. `threshold` and `other` exclude each other; `factor` scales `other`."""

    text: str
    fact: str
    op: str
    word: str | None = None
    threshold: float | None = None
    other: str | None = None
    factor: float = 1.0

    def holds(self, facts: Mapping[str, Fact]) -> bool | None:
        """True, False, or None when what is known leaves it open."""
        fact = facts[self.fact]
        if self.op == "is":
            return self._is(fact)
        left, right = _interval(fact), self._right(facts)
        if left is None or right is None:
            return None
        compare = OPERATORS[self.op]
        outcomes = {compare(left[0], right[1]), compare(left[1], right[0]), compare(left[0], right[0])}
        return outcomes.pop() if len(outcomes) == 1 else None

    def missing(self, facts: Mapping[str, Fact]) -> tuple[str, ...]:
        """The facts that leave it open."""
        names = (self.fact, self.other) if self.other else (self.fact,)
        return tuple(n for n in names if facts[n].number is None and not isinstance(facts[n].value, str))

    def distance(self, facts: Mapping[str, Fact]) -> float | None:
        """How far the fact is from the threshold, relative to the threshold; None where that has no meaning."""
        right, value = self._right(facts), facts[self.fact].number
        if self.op == "is" or right is None or value is None or not all(map(math.isfinite, right)):
            return None
        middle = (right[0] + right[1]) / 2
        return abs(value - middle) / abs(middle) if middle else abs(value)

    def _is(self, fact: Fact) -> bool | None:
        if self.word == "unknown":
            return fact.is_unknown
        if self.word == "known":
            return fact.value is not None
        if self.word == "bounded":
            return not fact.is_unknown and fact.value is None
        return None if fact.is_unknown else fact.value == self.word

    def _right(self, facts: Mapping[str, Fact]) -> tuple[float, float] | None:
        if self.other is None:
            return (self.threshold, self.threshold) if self.threshold is not None else None
        bounds = _interval(facts[self.other])
        return None if bounds is None else (self.factor * bounds[0], self.factor * bounds[1])


def parse(text: str) -> Condition:
    """Read one comparison; ConfigError says what is wrong with it and what was probably meant."""
    match = _SHAPE.fullmatch(text.strip()) if len(text) <= MOST_LENGTH else None
    if match is None:
        raise ConfigError(
            f'"{text[:60]}" is not a comparison: write `fact >= quantity`, `fact < 0.8 other_fact` or `fact is word`'
        )
    name, op, rest = match[1], match[2], match[3].strip()
    spec = CATALOGUE[known_fact(name)]
    if op == "is":
        words = (*STATES, *WORDS.get(name, ()))
        if rest not in words:
            raise ConfigError(f'"{text}": {name} is one of {", ".join(words)}')
        return Condition(text, name, op, word=rest)
    if name in WORDS:
        raise ConfigError(f'"{text}": {name} is a word; ask for it with `is`')
    other = _OTHER.fullmatch(rest)
    if other is not None and not _is_unit(other[1], other[2]):
        if CATALOGUE[known_fact(other[2])].unit not in _comparable(spec.unit) or other[2] in WORDS:
            raise ConfigError(f'"{text}": {name} is in {spec.unit}, {other[2]} in {CATALOGUE[other[2]].unit}')
        return Condition(text, name, op, other=other[2], factor=float(other[1] or 1))
    return Condition(text, name, op, threshold=quantity_of(rest, spec.unit))


def quantity_of(text: str | float, unit: str) -> float:
    """A quantity in the unit of a fact: `60 %` of a ratio is 0.6, `40ms` of a time 0.04."""
    try:
        return PARSERS.get(unit, _plain)(text)
    except ValueError as error:
        raise ConfigError(f"a quantity in {unit} is expected: {error}") from None


def known_fact(name: str) -> str:
    """The name itself, when the catalogue has it."""
    if name not in CATALOGUE:
        near = difflib.get_close_matches(name, CATALOGUE, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ConfigError(f'unknown fact "{name[:60]}"{hint}')
    return name


def _is_unit(factor: str | None, name: str) -> bool:
    """`40 ms` is a quantity, `0.8 budget_ceiling` is not."""
    return factor is not None and name not in CATALOGUE and "_" not in name


def _comparable(unit: str) -> tuple[str, ...]:
    return ("sequences", "requests") if unit in ("sequences", "requests") else (unit,)


def _plain(text: str | float) -> float:
    return quantity.parse(text, quantity.COUNT, bare="")


def _interval(fact: Fact) -> tuple[float, float] | None:
    if fact.number is not None:
        return fact.number, fact.number
    if fact.is_unknown or isinstance(fact.value, str):
        return None
    low = -math.inf if fact.low is None else fact.low
    return low, math.inf if fact.high is None else fact.high
