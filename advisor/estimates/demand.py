"""What arrives: requests per second in 5-minute slots, from the log, else from what engines finished and still hold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.domain.evidence import EngineSeries, Evidence, as_floats
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.histogram import Floats
from advisor.domain.hours import HOUR_SECONDS

SLOT = 300.0
LEAST_SLOTS, SURGE_SLOTS = 3, 6
FULLY_READ, GONE_SECONDS = 0.99, 900.0
COVERED, OTHER_LENGTHS = 0.95, 1.25
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


def busiest_half_hour(arrivals: Arrivals) -> float | None:
    """The largest mean rate over six slots in a row: a surge, which the p99 of a week leaves out; None without such."""
    start, rate = arrivals.start, arrivals.per_second
    if start.size < SURGE_SLOTS:
        return None
    unbroken = start[SURGE_SLOTS - 1 :] - start[: 1 - SURGE_SLOTS] == (SURGE_SLOTS - 1) * SLOT
    means = np.convolve(rate, np.full(SURGE_SLOTS, 1 / SURGE_SLOTS), "valid")[unbroken]
    return float(means.max()) if means.size else None


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


def last_left(evidence: Evidence) -> float:
    """UNIX seconds at which an engine last left for good; minus infinity where none did. Before it more served."""
    ends = [float(e.windows.end[-1]) for e in evidence.every_engine if not e.lifetime and e.windows.end.size]
    gone = [end for end in ends if end < max(ends) - GONE_SECONDS]
    return max(gone, default=-math.inf)


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


@dataclass(frozen=True, eq=False, slots=True)
class _Finished:
    """Requests that one engine finished in successive times: whole hours before its present epoch, its windows since.

    `new`: nothing was served before the first of them.
    """

    engine: EngineSeries
    start: Floats
    end: Floats
    requests: Floats
    new: bool

    def read(self, grid: Floats, until: float) -> npt.NDArray[np.bool_]:
        """Slots that were read whole, or lie before the engine began or after it left for good."""
        whole: npt.NDArray[np.bool_] = per_slot(grid, self.start, self.end, self.end - self.start) >= FULLY_READ * SLOT
        absent = np.zeros_like(whole)
        if self.new:
            absent |= grid[1:] <= self.start[0]
        if self.end[-1] < until - GONE_SECONDS:
            absent |= grid[:-1] >= self.end[-1]
        return whole | absent


def _finished(engines: list[EngineSeries]) -> Arrivals:
    """Requests that arrived: those that finished, and those by which running and waiting together grew.

    A window longer than a slot is spread evenly. Only slots in which every engine that served was read: what one of
    them served while it was not would be missing from the demand. One restart must not hide the day before it.
    """
    rows = [row for engine in engines if (row := _rows(engine)) is not None]
    if not rows or len(rows) < len(engines):
        return NOBODY_TELLS
    first, last = min(float(row.start[0]) for row in rows), max(float(row.end[-1]) for row in rows)
    grid = as_floats(np.arange(math.ceil(first / SLOT), math.floor(last / SLOT) + 1) * SLOT)
    if grid.size < 2:
        return NOBODY_TELLS
    total, read = np.zeros(grid.size - 1), np.ones(grid.size - 1, bool)
    for row in rows:
        finished = per_slot(grid, row.start, row.end, row.requests)
        total += np.maximum(finished + _growth(row.engine, grid), 0.0)
        read &= row.read(grid, last)
    return Arrivals(grid[:-1][read], total[read] / SLOT)


def _rows(engine: EngineSeries) -> _Finished | None:
    """None where an engine does not tell what it finished."""
    counted = engine.windows.deltas.get("finished")
    if counted is None or not np.isfinite(counted).any():
        return None
    good = np.isfinite(counted)
    start, end, requests = engine.windows.start[good], engine.windows.end[good], counted[good]
    hours = engine.length_hours.get("prompt_tokens")
    if hours is not None and _as_long_before(engine, start[0]):
        past = hours.start + HOUR_SECONDS <= start[0]
        began, ended = hours.start[past], hours.start[past] + HOUR_SECONDS
        start, end = np.concatenate([began, start]), np.concatenate([ended, end])
        requests = np.concatenate([hours.counts[past].sum(axis=1), requests])
    return _Finished(engine, start, end, requests, new=start.size > good.sum() or engine.epoch_cause == "first_seen")


def _as_long_before(engine: EngineSeries, epoch_start: float) -> bool:
    """Whether requests before the present epoch were as long as since: a rate of others is no demand of these.

    By the middles of buckets: 200 and 240 tokens count as one, 200 and 250 do not.
    """
    for hours in (engine.length_hours.get(name) for name in ("prompt_tokens", "generation_tokens")):
        if hours is None:
            continue
        before = hours.start + HOUR_SECONDS <= epoch_start
        middles = (np.append(hours.edges, hours.edges[-1:]) + np.concatenate([[0.0], hours.edges])) / 2
        then, now = hours.counts[before].sum(axis=0), hours.counts[~before].sum(axis=0)
        if then.sum() and now.sum():
            means = sorted((float(then @ middles / then.sum()), float(now @ middles / now.sum())))
            if means[1] >= OTHER_LENGTHS * means[0]:
                return False
    return True


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
