"""A canary against its siblings, on the same hours: the best test of what a setting does.

Both sides are averaged hour by hour, so that day and night, which move both, cancel out in the differences. The mean
difference means something when it lies outside the noise, the widest of three:
- the 95 % interval of a mean of paired differences, t(n') s / sqrt(n'), where neighbouring hours that resemble each
  other count for less: n' = n (1 - r) / (1 + r) with their lag-1 autocorrelation r (the effective sample size of an
  AR(1) process). Worked: n = 24, s = 1 ms, r = 0.2: n' = 16, t = 2.131, the band is 0.53 ms;
- how far the siblings, which run alike, differ among themselves;
- 2 % of the siblings' figure (half a percentage point for shares), below which nothing matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from advisor.domain.canary import Canary, ComparedTo, Reading
from advisor.domain.evidence import EngineSeries, Evidence, as_floats
from advisor.domain.histogram import Floats

from .sides import Side, differences, newest, ranked

HOUR = 3600.0
LEAST_HOURS = 6
LEAST_REQUESTS = 20
LEAST_SCRAPES = 4
_LEAST_SHARE, _LEAST_RELATIVE = 0.005, 0.02
_TINY = 1e-9


@dataclass(frozen=True, eq=False, slots=True)
class _Hourly:
    """A figure of some engines hour by hour, as numerator and denominator, so that engines add up."""

    above: Floats
    below: Floats

    @classmethod
    def sum(cls, parts: Sequence[_Hourly]) -> _Hourly:
        """All parts (at least one) together."""
        return cls(np.sum([p.above for p in parts], axis=0), np.sum([p.below for p in parts], axis=0))

    def without(self, part: _Hourly) -> _Hourly:
        """What remains when `part` of it is taken away."""
        return _Hourly(self.above - part.above, self.below - part.below)

    def values(self, least: float) -> Floats:
        """The figure in each hour, NaN where too little lies under it."""
        return np.where(self.below >= least, self.above / np.maximum(self.below, _TINY), np.nan)


@dataclass(frozen=True, slots=True)
class _Metric:
    """A figure that both sides are compared by. `least`: the denominator that an hour needs to count."""

    name: str
    unit: str
    least: float
    of: Callable[[EngineSeries, _Hours], _Hourly | None]
    per_replica: bool = False


@dataclass(frozen=True, slots=True)
class _Hours:
    """`count` whole hours from hour number `first` on; `edge`: of TPOT buckets, the one that is looked at."""

    first: int
    count: int
    edge: float | None

    def sums(self, engine: EngineSeries, times: Floats, amounts: Floats) -> Floats:
        """Amounts by the hour that their time lies in; what is no number, and the hour of the start, are left out."""
        place = np.floor(times / HOUR) - self.first
        warm = times >= math.ceil(engine.epoch_start / HOUR) * HOUR
        use = warm & (place >= 0) & (place < self.count) & np.isfinite(amounts)
        return as_floats(np.bincount(place[use].astype(np.int64), amounts[use], minlength=self.count))


def compare(evidence: Evidence) -> tuple[Canary, ...]:
    """The canaries of a deployment, each against those that run alike; a side of under an hour is not called one."""
    stable, now = ranked(evidence.engines), newest(evidence.every_engine)
    if not evidence.apart or not stable:
        return ()
    settled = [side for side in ranked(evidence.apart) if not side.is_young(now)]
    return tuple(_canary(side, stable[0], now, evidence.slo.tpot_seconds) for side in settled)


def _canary(side: Side, siblings: Side, now: float, target: float | None) -> Canary:
    first = max(math.ceil(s.since / HOUR) for s in (side, siblings))
    edge = None if target is None else _edge([*side.engines, *siblings.engines], target)
    hours = _Hours(first, max(math.floor(now / HOUR) - first, 0), edge)
    asked = [m for m in _METRICS if target is not None or m.of is not _within_tpot]
    return Canary(
        instances=tuple(sorted(replica[0].instance for replica in side.replicas)),
        since=max(engine.epoch_start for engine in side.engines),
        differences=differences(side.settings, siblings.settings),
        hours=hours.count,
        readings=tuple(_reading(metric, side, siblings, hours) for metric in asked),
    )


def _edge(engines: Sequence[EngineSeries], target: float) -> float | None:
    """The largest bucket edge at or below the target that every engine with TPOT buckets has."""
    edges = [set(e.windows.tpot_edges.tolist()) for e in engines if e.windows.tpot_edges is not None]
    shared = set.intersection(*edges) if edges else set()
    return max((edge for edge in shared if edge <= target * (1 + _TINY)), default=None)


def _reading(metric: _Metric, side: Side, siblings: Side, hours: _Hours) -> Reading:
    one, many = _replicas(metric, side, hours), _replicas(metric, siblings, hours)
    if not one or not many:
        silent = "the canary" if many else "either side" if not one else "its siblings"
        return _unknown(metric, f"no metric of {silent} tells it")
    ours, theirs = _Hourly.sum(one).values(metric.least), _Hourly.sum(many).values(metric.least)
    both = np.isfinite(ours) & np.isfinite(theirs)
    if both.sum() < LEAST_HOURS:
        return _unknown(metric, f"{both.sum()} common hours tell it, {LEAST_HOURS} are needed")
    ours, theirs = ours[both], theirs[both]
    floor = _LEAST_SHARE if metric.unit == "ratio" else _LEAST_RELATIVE * abs(float(theirs.mean()))
    noise = max(_paired_band(ours - theirs), _among(many, metric.least), floor)
    apart = float((ours - theirs).mean())
    outcome: ComparedTo = "same" if abs(apart) <= noise else "higher" if apart > 0 else "lower"
    return Reading(metric.name, metric.unit, float(ours.mean()), float(theirs.mean()), noise, outcome)


def _unknown(metric: _Metric, why: str) -> Reading:
    return Reading(metric.name, metric.unit, None, None, None, "unknown", why)


def _replicas(metric: _Metric, side: Side, hours: _Hours) -> list[_Hourly]:
    """The figure of each replica that tells it; a rate of a replica is that of all its engines together."""
    found = []
    for replica in side.replicas:
        parts = [part for engine in replica if (part := metric.of(engine, hours)) is not None]
        if parts:
            whole = _Hourly.sum(parts)
            found.append(_Hourly(whole.above * len(parts), whole.below) if metric.per_replica else whole)
    return found


def _paired_band(apart: Floats) -> float:
    """Half the width of the 95 % interval of the mean of paired differences, fewer of them where they hang together."""
    n, spread = apart.size, float(apart.std(ddof=1))
    if spread == 0:
        return 0.0
    centred = apart - apart.mean()
    resemblance = min(max(float(centred[1:] @ centred[:-1] / (centred @ centred)), 0.0), 0.99)
    effective = max(n * (1 - resemblance) / (1 + resemblance), 2.0)
    return float(stdtrit(effective - 1, 0.975)) * spread / math.sqrt(effective)


def _among(siblings: Sequence[_Hourly], least: float) -> float:
    """The largest mean difference of one sibling from the rest of them; 0 where there is none to compare."""
    if len(siblings) < 2:
        return 0.0
    every, far = _Hourly.sum(siblings), 0.0
    for one in siblings:
        apart = one.values(least) - every.without(one).values(least)
        if np.isfinite(apart).sum() >= LEAST_HOURS:
            far = max(far, abs(float(np.nanmean(apart))))
    return far


def _counted(above: str, below: str) -> Callable[[EngineSeries, _Hours], _Hourly | None]:
    """One counter over another, in windows in which both were read."""

    def of(engine: EngineSeries, hours: _Hours) -> _Hourly | None:
        deltas = engine.windows.deltas
        if above not in deltas or below not in deltas:
            return None
        return _windowed(engine, hours, deltas[above], deltas[below])

    return of


def _windowed(engine: EngineSeries, hours: _Hours, above: Floats, below: Floats) -> _Hourly:
    """Increases by the hour of the window's middle; a window longer than an hour belongs to none."""
    start, end = engine.windows.start, engine.windows.end
    use = np.isfinite(above) & np.isfinite(below) & (end - start <= HOUR)
    middle = as_floats((start + end) / 2)[use]
    return _Hourly(hours.sums(engine, middle, above[use]), hours.sums(engine, middle, below[use]))


def _finished(engine: EngineSeries, hours: _Hours) -> _Hourly | None:
    finished = engine.windows.deltas.get("finished")
    return None if finished is None else _windowed(engine, hours, finished, engine.windows.end - engine.windows.start)


def _sampled(engine: EngineSeries, hours: _Hours, values: Floats) -> _Hourly:
    time = engine.samples.time
    return _Hourly(
        hours.sums(engine, time, values), hours.sums(engine, time, np.where(np.isfinite(values), 1.0, np.nan))
    )


def _running(engine: EngineSeries, hours: _Hours) -> _Hourly | None:
    return _sampled(engine, hours, engine.samples.running)


def _waiting(engine: EngineSeries, hours: _Hours) -> _Hourly | None:
    waiting = engine.samples.waiting
    return _sampled(engine, hours, np.where(np.isfinite(waiting), waiting > 0, np.nan))


def _within_tpot(engine: EngineSeries, hours: _Hours) -> _Hourly | None:
    edges, counts = engine.windows.tpot_edges, engine.windows.tpot
    if edges is None or counts is None or hours.edge is None:
        return None
    return _windowed(engine, hours, counts[:, :-1][:, edges <= hours.edge].sum(axis=1), counts.sum(axis=1))


_METRICS = (
    _Metric("requests_per_second_per_replica", "1/s", HOUR / 2, _finished, per_replica=True),
    _Metric("running_mean", "requests", LEAST_SCRAPES, _running),
    _Metric("waiting_share", "ratio", LEAST_SCRAPES, _waiting),
    _Metric("itl_mean", "seconds", LEAST_REQUESTS, _counted("itl_sum", "itl_count")),
    _Metric("ttft_mean", "seconds", LEAST_REQUESTS, _counted("ttft_sum", "ttft_count")),
    _Metric("preempted_share", "ratio", LEAST_REQUESTS, _counted("preemptions", "finished")),
    _Metric("slo_attainment_tpot", "ratio", LEAST_REQUESTS, _within_tpot),
)
