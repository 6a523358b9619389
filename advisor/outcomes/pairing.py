"""Hours after a change, each beside the hours before it that were like it.

Like means: the same hour of the week, at most four weeks back, under similar demand and lengths. Where less than a week
is known before the change, the same hour of the day among working days, or among days of a weekend. Demand is what
arrives at one engine, because that is what a flag works on; of replicas that are added it is what arrives in all.
Pairs are then dropped from the heavier side until demand is equal on both: a queue may double under 15 % more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.domain.hours import DEMAND, ENGINES, HOUR_SECONDS, OUTPUT, PROMPT, HourFacts
from advisor.domain.life import AdviceRecord
from advisor.domain.numbers import quantity

from .terms import DAY, HOUR, Terms

_REPLICAS = "replicas"
_WEEK = 7 * DAY
_MONDAY = 4 * DAY
"""The first Monday of UNIX time; it began on a Thursday."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An hour after the change and those before it that were like it; `period` is the part of the cycle it lies in."""

    after: HourFacts
    before: tuple[HourFacts, ...]
    period: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """What can be compared: `cycle` says in which sense hours are the same, `unlike` why there are no more of them.

    usual: all hours before the change, under the settings that it changed.
    """

    pairs: tuple[Pair, ...]
    cycle: str
    unlike: str = ""
    usual: tuple[HourFacts, ...] = ()


def paired(record: AdviceRecord, hours: Sequence[HourFacts], terms: Terms) -> Pairs:
    """The pairs of one applied change, oldest first."""
    knob, changed = record.advice.knob, record.applied_at or 0.0
    # A change is noticed after it was made: hours that ran with the new value already are not from before it.
    now_runs = hours[-1].settings.get(knob or "") if hours else None
    before = [h for h in hours if changed - terms.back_seconds <= h.start <= changed - HOUR_SECONDS]
    before = [h for h in before if now_runs is None or h.settings.get(knob or "") != now_runs]
    before = [h for h in before if not _differing(h, before[-1])]
    epochs = {h.epoch for h in before} if knob != _REPLICAS else set()
    after = [h for h in hours if h.start >= changed and h.epoch not in epochs]
    if not before or not after:
        return Pairs((), "", f"no whole hour is known {'after' if before else 'before'} the change")
    other = _differing(before[-1], after[-1]) - {knob}
    if other:
        return Pairs((), "", f"not comparable: {', '.join(sorted(other))} changed as well")
    weekly = before[-1].start - before[0].start >= _WEEK - HOUR_SECONDS
    pairs = _alike([h for h in after if not _differing(h, after[-1])], before, knob, terms, weekly=weekly)
    even = _evened(pairs, knob, terms)
    if len(even) >= terms.compared_hours and (quiet := _quiet(even, before, knob, terms)):
        return Pairs((), "", quiet)
    cycle = "same hours of the week" if weekly else "same hours of the day, as less than a week before it is known"
    return Pairs(tuple(even), cycle, _unlike(len(after), pairs, even), tuple(before))


def _differing(one: HourFacts, other: HourFacts) -> set[str]:
    """The settings that both tell, and tell differently."""
    return {name for name in one.settings.keys() & other.settings.keys() if one.settings[name] != other.settings[name]}


def _alike(
    after: Sequence[HourFacts], before: Sequence[HourFacts], knob: str | None, terms: Terms, *, weekly: bool
) -> list[Pair]:
    place = _of_week if weekly else _of_day
    at: dict[int, list[HourFacts]] = {}
    for hour in before:
        at.setdefault(place(hour.start), []).append(hour)
    pairs = []
    for hour in after:
        alike = tuple(b for b in at.get(place(hour.start), ()) if _is_like(b.figures, hour.figures, knob, terms))
        if alike:
            pairs.append(Pair(hour, alike, int(place(hour.start) // (terms.period_seconds / HOUR))))
    return pairs


def _of_week(start: float) -> int:
    return int((start - _MONDAY) % _WEEK // HOUR)


def _of_day(start: float) -> int:
    """0 to 23 on working days (UTC), 24 to 47 on Saturday and Sunday."""
    weekend = (start - _MONDAY) % _WEEK >= 5 * DAY
    return int(start % DAY // HOUR) + 24 * weekend


def _is_like(before: Mapping[str, float], after: Mapping[str, float], knob: str | None, terms: Terms) -> bool:
    then, now = _demand(before, knob), _demand(after, knob)
    if not then or not now or abs(now - then) > terms.demand_within * then:
        return False
    lengths = [(before[name], after[name]) for name in (PROMPT, OUTPUT) if name in before and name in after]
    return all(abs(now - then) <= terms.lengths_within * then for then, now in lengths)


def _demand(figures: Mapping[str, float], knob: str | None) -> float | None:
    arrived = figures.get(DEMAND)
    return arrived if arrived is None or knob == _REPLICAS else arrived / max(figures.get(ENGINES, 1.0), 1.0)


def _evened(pairs: Sequence[Pair], knob: str | None, terms: Terms) -> list[Pair]:
    """Those that are left when the pairs with the most demand too many, or too few, are dropped one by one."""
    by_excess = sorted(pairs, key=lambda pair: _excess(pair, knob))
    excess = [_excess(pair, knob) for pair in by_excess]
    first, last, total = 0, len(excess), sum(excess)
    while first < last and abs(total) > terms.demand_even * (last - first):
        if total > 0:
            last -= 1
            total -= excess[last]
        else:
            total -= excess[first]
            first += 1
    return sorted(by_excess[first:last], key=lambda pair: pair.after.start)


def _excess(pair: Pair, knob: str | None) -> float:
    """How much more demand there was after than before: 0.1 is about a tenth."""
    then = [_demand(hour.figures, knob) or 0.0 for hour in pair.before]
    return math.log((_demand(pair.after.figures, knob) or 0.0) * len(then) / sum(then))


def _quiet(pairs: Sequence[Pair], before: Sequence[HourFacts], knob: str | None, terms: Terms) -> str:
    """Why the pairs are no test yet: what a setting does shows under load, and a Sunday has little of it."""
    usual = [demand for hour in before if (demand := _demand(hour.figures, knob)) is not None]
    tested = [demand for pair in pairs for hour in pair.before if (demand := _demand(hour.figures, knob)) is not None]
    if sum(tested) / len(tested) >= terms.usual_tested * sum(usual) / len(usual):
        return ""
    on_them, on_all = quantity(sum(tested) / len(tested), "1/s"), quantity(sum(usual) / len(usual), "1/s")
    return f"{len(pairs)} hours are alike, but quiet ones: {on_them} on them, {on_all} before the change"


def _unlike(after: int, pairs: Sequence[Pair], even: Sequence[Pair]) -> str:
    if len(even) < len(pairs):
        return f"{len(pairs) - len(even)} of {after} hours left out, so that demand is the same on both sides"
    return "" if len(pairs) == after else f"{after - len(pairs)} of {after} hours had other demand or lengths"
