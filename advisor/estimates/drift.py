"""Whether traffic changed its shape: the body, the tail, and what would be advised, before and after a moment.

Candidates for the moment are every full day counted from the end, each compared at the same hours of the day (of the
week, where a week lies before it), because nights differ from days; of a log under two days, every 24th of it. The
moment at which most changed is told.

Body: the population stability index over tenths of the earlier lengths, PSI = sum (p - r) ln(p / r). Without any change
chance makes it about (bins - 1)(1/n + 1/m), times the design effect; only three times that, and 0.1, say anything.
Tail: how many more requests than promised exceed the earlier bound on the p99.9, as a lower confidence bound (0.1 %) in
both halves of the time since. Worked: 40 of 10,000 where 10 are promised are at least 23.3, so 2.3 times.
Decision: the earlier and the later bound, where neither lies within the other's interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.histogram import Floats
from advisor.domain.length_history import BIN_RATIO, LengthHistory
from advisor.domain.policy import Policy

from . import lengths
from .effective_sample import design_effect, scatter
from .length_sample import TELL_LENGTHS, length_sample
from .length_slots import Slots

HOUR, DAY, WEEK = 3600.0, 86_400.0, 7 * 86_400.0
PARTS = 24
LEAST_REQUESTS = 300
BODY_BINS = 10
TELLING_PSI = 0.1
OVER_NOISE = 3.0
ALPHA = 1e-3
MOST_OF_IT = 0.5
FACTS = ("length_shift", "length_shift_noise", "length_tail_excess", "length_decision_drift", "length_shift_client")


@dataclass(frozen=True, slots=True)
class Shift:
    """What changed at a moment (UNIX seconds). tail_excess: times what was promised, at least. decision: relative."""

    at: float
    psi: float
    noise: float
    tail_excess: float
    decision: float
    before: int
    since: int

    @property
    def strength(self) -> float:
        """Over 1 where body or tail tell a change."""
        return max(self.psi / max(TELLING_PSI, OVER_NOISE * self.noise), self.tail_excess)


def facts(evidence: Evidence, policy: Policy) -> Mapping[str, Fact]:
    """How much the lengths of requests changed within the window, and whose.

    From the total tokens of the log or of host agents; without them from the engines' histograms of prompts or of
    outputs, by the hour and as finely as their buckets allow, whichever changed more.
    """
    tables = _tables(evidence)
    shifts = [(s, of) for of, slots in tables.items() if (s := largest_shift(slots, policy.length_percentile))]
    if not tables:
        return dict.fromkeys(FACTS, unknown(f"needs request lengths over time: {TELL_LENGTHS}, or engine metrics"))
    if not shifts:
        few = f"too few requests to compare earlier with later ones ({LEAST_REQUESTS} each)"
        return dict.fromkeys(FACTS, unknown(few))
    shift, of = max(shifts, key=lambda pair: pair[0].strength)
    out = _told(shift, tables[of], policy.length_percentile, of)
    history = evidence.log.history if evidence.log else None
    client, of_client = "not logged", "no log names clients"
    if history is not None and history.n:
        client, of_client = whose(shift, history, policy.length_percentile)
    return out | {"length_shift_client": computed(client, source=of_client)}


def _tables(evidence: Evidence) -> dict[str, Slots]:
    log = evidence.log
    if log is not None and log.history is not None and log.history.n:
        return {f"{log.source}, total tokens": Slots.of(log.history)}
    sample = length_sample(evidence)
    if sample is not None and sample.slots is not None:
        return {f"{sample.source}, total tokens": sample.slots}
    of = {
        f"engine histograms of {kind}": Slots.of_hours(
            [e.length_hours[kind] for e in evidence.every_engine if kind in e.length_hours]
        )
        for kind in ("prompt_tokens", "output_tokens")
    }
    return {name: slots for name, slots in of.items() if slots is not None}


@lru_cache(maxsize=1)
def largest_shift(slots: Slots, percentile: float) -> Shift | None:
    """The moment at which most changed; None where there are too few requests on either side of any.

    The last one is kept: the limit and the drift of one evaluation ask for the same.
    """
    shifts = [s for at in _moments(slots) if (s := shift_at(slots, at, percentile)) is not None]
    return max(shifts, key=lambda s: s.strength, default=None)


def shift_at(slots: Slots, at: float, percentile: float) -> Shift | None:
    """What changed at that moment (UNIX seconds); None with under 300 requests before or since."""
    before, since = slots.split(at)
    hours = _hours(slots, before)
    reference, now = _at_same_hours(before, since, hours)
    n, m = int(reference.sum()), int(now.sum())
    compared = min(before.n, n) if hours else n
    if min(compared, m) < LEAST_REQUESTS:
        return None
    psi, bins = stability(reference, now)
    effect = max(_body_effect(before, hours), _body_effect(since, hours))
    noise = max(bins - 1, 1) * (1 / compared + 1 / m) * effect
    return Shift(
        at, psi, noise, tail_excess(before, since, percentile), _decision(before, since, percentile), compared, m
    )


def stability(reference: Floats, now: Floats) -> tuple[float, int]:
    """PSI of two counts over the same bins, drawn together to tenths of the first; and how many there were of them.

    Worked: halves that become 60 % and 40 % have (0.1) ln 1.2 + (-0.1) ln 0.8 = 0.0405.
    """
    seen = (reference > 0) | (now > 0)
    reference, now = reference[seen], now[seen]
    arrived = np.cumsum(reference) / reference.sum()
    tenth = np.minimum((np.concatenate([[0.0], arrived[:-1]]) * BODY_BINS).astype(int), BODY_BINS - 1)
    _, place = np.unique(tenth, return_inverse=True)
    r, p = (np.maximum(np.bincount(place, c), 0.5) / c.sum() for c in (reference, now))
    return float(np.sum((p - r) * np.log(p / r))), int(r.size)


def tail_excess(before: Slots, since: Slots, percentile: float) -> float:
    """At least how many times the promised share of later requests exceeds what was enough before; 0 for not surely."""
    q = percentile / 100
    level = lengths.upper_bound(before.totals(), percentile, effect=design_effect(before, q))
    if level is None:
        return 0.0
    # Each half by itself: a burst in one of them is no change of habits.
    middle = since.after_share(0.5)
    return min(_surely_above(half, level, q) for half in since.split(middle))


def _surely_above(slots: Slots, level: float, q: float) -> float:
    above = float(slots.above(level).sum())
    if above == 0:
        return 0.0
    effect = design_effect(slots, q)
    return float(gammaincinv(above / effect, ALPHA)) * effect / (slots.n * (1 - q))


def _decision(before: Slots, since: Slots, percentile: float) -> float:
    """Later bound / earlier bound - 1, or 0 where the later percentile may be the earlier one or cannot be told."""
    told = []
    for part in (before, since):
        counts, effect = part.totals(), design_effect(part, percentile / 100)
        below, _ = lengths.ranks(int(counts.n / effect), percentile / 100)
        upper = lengths.upper_bound(counts, percentile, effect=effect)
        if below is None or upper is None:
            return 0.0
        told.append((counts.at_rank(max(int(below * effect), 1)), upper))
    (low, high), (later_low, later_high) = told
    apart = later_low > high * BIN_RATIO or later_high * BIN_RATIO < low
    return later_high / max(high, 1) - 1 if apart else 0.0


def _moments(slots: Slots) -> Iterator[float]:
    end = float(slots.start[-1]) + slots.seconds
    days = int(slots.span_seconds // DAY)
    if days >= 2:
        yield from (end - day * DAY for day in range(1, days))
    else:
        yield from (float(slots.start[0]) + slots.span_seconds * part / PARTS for part in range(1, PARTS))


def _hours(slots: Slots, before: Slots) -> float:
    """The cycle that is compared with itself, in seconds: a week, a day, or 0 for none."""
    if slots.seconds > HOUR or slots.span_seconds < 2 * DAY:
        return 0.0
    return WEEK if before.span_seconds >= WEEK else DAY


def _hour(slots: Slots, cycle: float) -> Floats:
    return np.asarray(slots.start % cycle // HOUR)


def _at_same_hours(before: Slots, since: Slots, cycle: float) -> tuple[Floats, Floats]:
    """Requests by bin before, as if they had come at the hours of those since; and those since."""
    if not cycle:
        return before.counts.sum(axis=0), since.counts.sum(axis=0)
    then, now = _hour(before, cycle), _hour(since, cycle)
    reference, compared = np.zeros(before.edges.size), np.zeros(before.edges.size)
    for hour in np.intersect1d(then, now):
        earlier, later = before.counts[then == hour].sum(axis=0), since.counts[now == hour].sum(axis=0)
        reference += earlier * (later.sum() / earlier.sum())
        compared += later
    return reference, compared


def _body_effect(slots: Slots, cycle: float) -> float:
    """The design effect on the median, where each hour of the cycle has its own share above it."""
    if not slots.n:
        return 1.0
    if not cycle:
        return design_effect(slots, 0.5)
    arrived = np.cumsum(slots.counts.sum(axis=0))
    above = slots.counts[:, int(np.searchsorted(arrived, arrived[-1] / 2)) + 1 :].sum(axis=1)
    every = slots.counts.sum(axis=1)
    _, hour = np.unique(_hour(slots, cycle), return_inverse=True)
    expected = (np.bincount(hour, above) / np.bincount(hour, every))[hour]
    return scatter(slots.start, every, above, expected)


def _told(shift: Shift, slots: Slots, percentile: float, of: str) -> dict[str, Fact]:
    moment = datetime.fromtimestamp(shift.at, UTC).strftime("%Y-%m-%dT%H:%MZ")
    span = f"{of}: {shift.since:,} requests since {moment} against {shift.before:,} before"
    hours = " at the same hours" if _hours(slots, slots.split(shift.at)[0]) else ""
    sure = f"{span}; with 99.9 % confidence, in both halves since"
    return {
        "length_shift": computed(shift.psi, n=shift.since, source=f"PSI, {span}{hours}"),
        "length_shift_noise": computed(shift.noise, n=shift.since, source="PSI that chance makes of so many requests"),
        "length_tail_excess": computed(shift.tail_excess, n=shift.since, source=sure),
        "length_decision_drift": computed(
            shift.decision, n=shift.since, source=f"upper bound of the p{percentile:g}, {span}"
        ),
    }


def whose(shift: Shift, history: LengthHistory, percentile: float) -> tuple[str, str]:
    """The client who explains most of the change, as a salted hash, and how much of it; or that there is none.

    A client explains the share of the strength that is gone without them.
    """
    if len(history.clients) == 1:
        return "not logged", "the log names no clients"
    numbers = np.arange(len(history.clients))
    without = {k: shift_at(Slots.of_clients(history, numbers != k), shift.at, percentile) for k in numbers[1:].tolist()}
    left = {k: s.strength if s is not None else 0.0 for k, s in without.items()}
    most = min(left, key=lambda k: left[k])
    gone = 1 - left[most] / shift.strength if shift.strength > 0 else 0.0
    if gone < MOST_OF_IT:
        return "many", f"no single client explains half of it; {history.clients[most]} explains {max(gone, 0.0):.0%}"
    return history.clients[most], f"without this client (a salted hash) {gone:.0%} of the change is gone"
