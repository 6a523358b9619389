"""One figure about a deployment with its story: value, interval, n, window, source; or Unknown, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .catalogue import CATALOGUE

Basis = Literal["measured", "computed", "assumed"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure. Ratios are 0..1 and times are seconds.

    Three shapes: known (`value`, perhaps with `low` and `high`), bounded (`value` is None, `low` or `high` given: "at
    least", "at most", "between"), and Unknown (`unknown` says why, and what would resolve it).

    rivals: what else was told of the same thing and is not believed.
    """

    value: float | str | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    source: str | None = None
    basis: Basis = "measured"
    unknown: str | None = None
    window: str | None = None
    rivals: tuple[Fact, ...] = ()

    @property
    def number(self) -> float | None:
        """The best guess as a number, or None when it is bounded, Unknown or a word."""
        return self.value if isinstance(self.value, int | float) else None

    @property
    def floor(self) -> float | None:
        """The least it can be: the value, else the lower bound."""
        return self.number if self.number is not None else self.low

    @property
    def ceiling(self) -> float | None:
        """The most it can be: the value, else the upper bound."""
        return self.number if self.number is not None else self.high

    @property
    def is_unknown(self) -> bool:
        """True when nothing at all can be said."""
        return self.unknown is not None

    def each(self, change: Callable[[float], float]) -> Fact:
        """The figure and its bounds with the same done to each; what is Unknown stays so."""
        value, low, high = (None if part is None else change(part) for part in (self.number, self.low, self.high))
        return self if self.is_unknown else replace(self, value=value, low=low, high=high)

    def over(self, window: str) -> Fact:
        """The same fact, said to cover `window`."""
        return replace(self, window=window)

    def instead_of(self, other: Fact) -> Fact:
        """What is believed of two accounts of one thing: this one, and where the two differ the other is kept as rival.

        An Unknown is believed only where the other is Unknown, too.
        """
        if self.is_unknown or other.is_unknown:
            return other if self.is_unknown and not other.is_unknown else self
        if (self.value, self.low, self.high) == (other.value, other.low, other.high):
            return self
        return replace(self, rivals=(*self.rivals, replace(other, rivals=()), *other.rivals))


def measured(
    value: float | None, *, source: str, n: int | None = None, low: float | None = None, high: float | None = None
) -> Fact:
    """A figure read off the world; leave `value` None and give bounds where the reading is an interval."""
    return Fact(value=value, low=low, high=high, n=n, source=source, basis="measured")


def computed(
    value: float | str | None, *, source: str, n: int | None = None, low: float | None = None, high: float | None = None
) -> Fact:
    """A figure that follows from others by a formula."""
    return Fact(value=value, low=low, high=high, n=n, source=source, basis="computed")


def unknown(reason: str) -> Fact:
    """Nothing can be said; `reason` says why and what would resolve it."""
    return Fact(unknown=reason)


class FactSheet(Mapping[str, Fact]):
    """Every fact of the catalogue, in its order. What nobody computed is Unknown; an uncatalogued name is an error."""

    def __init__(self, facts: Mapping[str, Fact]) -> None:
        strays = set(facts) - set(CATALOGUE)
        if strays:
            raise KeyError(f"not in the catalogue of facts: {', '.join(sorted(strays))}")
        self._facts = {name: facts.get(name, unknown("nothing that was read tells this")) for name in CATALOGUE}

    def __getitem__(self, name: str) -> Fact:
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)
