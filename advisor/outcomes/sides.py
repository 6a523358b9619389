"""Which replicas of a deployment run alike, which run apart, and whether that is a canary or a rollout passing through.

Two replicas differ where both are known to have a setting and have it differently; what nobody tells is no difference.
The side with the most replicas is the one that ceilings are taken from, of equal ones the side that has run longer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from advisor.domain.canary import Difference, Rollout
from advisor.domain.evidence import EngineSeries, FlagValue
from advisor.domain.numbers import duration

POOL_WITHIN = 0.05
"""Pools of equal replicas differ by what the memory profile of each start happened to find."""
SETTLED_SECONDS = 3600.0
"""A side that is younger may be a rollout on its way."""
_GUESSED = frozenset({"inferred", "default"})
_EQUAL = 1e-6


@dataclass(frozen=True, slots=True)
class Sides:
    """A deployment's engines by the settings that they run with. `rollout`: one side is young, with what follows."""

    engines: tuple[EngineSeries, ...]
    apart: tuple[EngineSeries, ...] = ()
    rollout: Rollout | None = None


@dataclass(slots=True)
class Side:
    """Replicas without a known difference: each instance with its engines, and all that is known of any of them."""

    replicas: list[list[EngineSeries]] = field(default_factory=list)
    settings: dict[str, FlagValue] = field(default_factory=dict)

    @property
    def engines(self) -> list[EngineSeries]:
        """The engines of all its replicas."""
        return [engine for replica in self.replicas for engine in replica]

    @property
    def since(self) -> float:
        """When the first of its replicas began to run so, UNIX seconds; one that crashed does not make it younger."""
        return min(engine.epoch_start for engine in self.engines)

    def is_young(self, now: float) -> bool:
        """Whether it has run for less than an hour."""
        return now - self.since < SETTLED_SECONDS


def divide(engines: Sequence[EngineSeries]) -> Sides:
    """The engines that run alike and those that run apart, as of the newest scrape."""
    first, *others = ranked(engines) or [Side()]
    if not others:
        return Sides(tuple(engines))
    apart = {id(engine) for side in others for engine in side.engines}
    return Sides(
        engines=tuple(e for e in engines if id(e) not in apart),
        apart=tuple(e for e in engines if id(e) in apart),
        rollout=_rollout(first, others, newest(engines)),
    )


def ranked(engines: Iterable[EngineSeries]) -> list[Side]:
    """Sides of those replicas that tell anything, the largest first, of equal ones the one that began earlier."""
    told = [(settings, replica) for replica in _replicas(engines) if (settings := settings_of(replica))]
    sides: list[Side] = []
    # Who tells most shapes the sides; who tells little joins the largest that it does not contradict.
    for settings, replica in sorted(told, key=lambda one: (-len(one[0]), one[1][0].epoch_start, one[1][0].instance)):
        fitting = [side for side in sides if not differences(settings, side.settings)]
        home = min(fitting, key=_rank) if fitting else Side()
        if not fitting:
            sides.append(home)
        home.replicas.append(replica)
        home.settings = {**settings, **home.settings}
    return sorted(sides, key=_rank)


def _rank(side: Side) -> tuple[int, float, str]:
    return -len(side.replicas), side.since, side.engines[0].instance


def newest(engines: Iterable[EngineSeries]) -> float:
    """When any of them was last scraped, UNIX seconds."""
    return max((float(e.samples.time[-1]) for e in engines if e.samples.time.size), default=-math.inf)


def settings_of(engines: Iterable[EngineSeries]) -> dict[str, FlagValue]:
    """What engines that run alike are known to run with: flags, `version` or a range of releases, `pool_tokens`."""
    known: dict[str, FlagValue] = {}
    for engine in engines:
        for name, flag in engine.flags.items():
            if flag.source not in _GUESSED and flag.value != "auto":
                known.setdefault(name, flag.value)
        if engine.version is not None:
            # A release and a range that it may lie in do not contradict each other.
            known.setdefault("releases" if engine.version[:1] in "<>" else "version", engine.version)
        if engine.pool_tokens is not None:
            known.setdefault("pool_tokens", engine.pool_tokens)
    return known


def differences(one: Mapping[str, FlagValue], other: Mapping[str, FlagValue]) -> tuple[Difference, ...]:
    """The settings that both tell, and tell differently; the pool last, because it often follows from the others."""
    names = sorted(one.keys() & other.keys(), key=lambda name: (name == "pool_tokens", name))
    return tuple(Difference(n, one[n], other[n]) for n in names if not _equal(n, one[n], other[n]))


def _equal(name: str, one: FlagValue, other: FlagValue) -> bool:
    if isinstance(one, str) or isinstance(other, str) or isinstance(one, bool) or isinstance(other, bool):
        return one == other
    return math.isclose(one, other, rel_tol=POOL_WITHIN if name == "pool_tokens" else _EQUAL)


def _replicas(engines: Iterable[EngineSeries]) -> list[list[EngineSeries]]:
    """Engines by process; those that were not seen running in their present epoch have nothing to say."""
    found: dict[str, list[EngineSeries]] = {}
    for engine in engines:
        if engine.samples.time.size:
            found.setdefault(engine.instance, []).append(engine)
    return list(found.values())


def _rollout(first: Side, others: Sequence[Side], now: float) -> Rollout | None:
    if first.is_young(now):
        age = duration(max(now - first.since, 0.0))
        reason = f"a rollout is under way: most replicas have run with their settings for {age}, others run differently"
        return Rollout(f"{reason}; ceilings wait until they have run for an hour", refuses_ceilings=True)
    young = [side for side in others if side.is_young(now)]
    if not young:
        return None
    count, total = sum(len(s.replicas) for s in young), len(first.replicas) + sum(len(s.replicas) for s in others)
    age = duration(max(now - min(side.since for side in young), 0.0))
    who = f"{count} of {total} replicas run{'s' if count == 1 else ''}"
    reason = f"a rollout may be under way: {who} with other settings, for {age} now"
    return Rollout(f"{reason}; ceilings are taken from the others", refuses_ceilings=False)
