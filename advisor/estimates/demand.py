"""What arrives: requests per second in 5-minute slots, from the log, else from what engines finished and still hold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import EngineSeries, Evidence, as_floats
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.histogram import Floats

SLOT = 300.0
LEAST_SLOTS = 3
FULLY_READ = 0.99
COVERED = 0.95
NO_DEMAND = "arrivals over time are not known: give a request log (--logs) or engine metrics (--prometheus)"


@dataclass(frozen=True, eq=False, slots=True)
class Arrivals:
    """What arrived at the deployment, by 5-minute slot: parallel arrays.

    start: UNIX seconds at which a slot begins, ascending. per_second: requests that arrived in it, a second.
    """

    start: Floats
    per_second: Floats

    @property
    def told(self) -> bool:
        """Whether there are enough slots for a distribution."""
        return self.start.size >= LEAST_SLOTS

    def since(self, unix_seconds: float) -> Arrivals:
        """Those of the slots that begin then or later."""
        kept = self.start >= unix_seconds
        return Arrivals(self.start[kept], self.per_second[kept])


NOBODY_TELLS = Arrivals(np.empty(0), np.empty(0))


def demand_facts(arrivals: Arrivals, present: Arrivals) -> dict[str, Fact]:
    """Mean and p99 of the arrival rates, and the p99 against the most that the present epoch saw."""
    names = ("demand_requests_per_second_p99", "demand_requests_per_second_mean", "demand_over_observed_rate")
    if not arrivals.told:
        return {name: unknown(NO_DEMAND) for name in names}
    n, story = int(arrivals.start.size), "5-minute slots"
    p99 = float(np.quantile(arrivals.per_second, 0.99))
    told = (
        measured(p99, n=n, source=story),
        measured(float(arrivals.per_second.mean()), n=n, source=story),
        _over_observed(p99, present),
    )
    return dict(zip(names, told, strict=True))


def _over_observed(p99: float, present: Arrivals) -> Fact:
    busiest = float(present.per_second.max(initial=0.0))
    if not present.told or busiest <= 0:
        return unknown("hardly anything arrived since the present settings began")
    return computed(p99 / busiest, source=f"{p99:.3g} requests/s against {busiest:.3g}/s at most in the present epoch")


def epoch_start(evidence: Evidence) -> float:
    """UNIX seconds since which no engine changed its settings; minus infinity where no engine tells."""
    return max((e.epoch_start for e in evidence.engines if e.windows.end.size), default=-math.inf)


def arrivals_of(evidence: Evidence, coverage: float | None) -> Arrivals:
    """What arrived over the window, whatever the epoch; empty when nothing tells.

    A log that covers less than 95 % of what the engines finished is passed over where they can tell themselves.
    """
    finished = _finished([e for e in evidence.every_engine if not e.lifetime and e.windows.end.size])
    partial = coverage is not None and coverage < COVERED and finished.told
    if evidence.log is None or not evidence.log.arrivals or partial:
        return finished
    slots: dict[int, int] = {}
    for at, count in evidence.log.arrivals.items():
        slots[int(at // SLOT)] = slots.get(int(at // SLOT), 0) + count
    first, last = min(slots), max(slots)
    inner = range(first + 1, last) if last - first > 2 else range(first, last + 1)
    return Arrivals(as_floats(np.array(inner) * SLOT), np.array([slots.get(s, 0) / SLOT for s in inner]))


def _finished(engines: list[EngineSeries]) -> Arrivals:
    """Requests that arrived: those that finished, and those by which running and waiting together grew.

    A window longer than a slot is spread evenly. Only slots in which every engine was read: what one of them served
    while it was not would be missing from the demand.
    """
    counted = [e.windows.deltas["finished"] for e in engines if "finished" in e.windows.deltas]
    if not engines or len(counted) < len(engines):
        return NOBODY_TELLS
    first = max(float(e.windows.start[0]) for e in engines)
    last = min(float(e.windows.end[-1]) for e in engines)
    grid = as_floats(np.arange(math.ceil(first / SLOT), math.floor(last / SLOT) + 1) * SLOT)
    if grid.size < 2:
        return NOBODY_TELLS
    total, read = np.zeros(grid.size - 1), np.ones(grid.size - 1, bool)
    for engine, finished in zip(engines, counted, strict=True):
        good = np.isfinite(finished)
        start, end = engine.windows.start[good], engine.windows.end[good]
        total += np.maximum(per_slot(grid, start, end, finished[good]) + _growth(engine, grid), 0.0)
        read &= per_slot(grid, start, end, end - start) >= FULLY_READ * SLOT
    return Arrivals(grid[:-1][read], total[read] / SLOT)


def _growth(engine: EngineSeries, grid: Floats) -> Floats:
    """By how many requests an engine held more at the end of a slot than at its begin; 0 where gauges do not tell."""
    samples = engine.samples
    read = np.isfinite(samples.running) & np.isfinite(samples.waiting)
    if read.sum() < 2:
        return np.zeros(grid.size - 1)
    held = np.interp(grid, samples.time[read], samples.running[read] + samples.waiting[read])
    return np.diff(held)


def per_slot(grid: Floats, start: Floats, end: Floats, amount: Floats) -> Floats:
    """Amounts of successive windows, each spread evenly over its time, summed between the borders of the grid."""
    if start.size == 0:
        return np.zeros(grid.size - 1)
    after = np.cumsum(amount)
    times, running = np.stack([start, end]).T.ravel(), np.stack([after - amount, after]).T.ravel()
    return np.diff(np.interp(grid, times, running))
