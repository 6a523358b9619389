"""What arrives: requests per second in 5-minute slots, from the log, else from what engines finished and still hold."""

from __future__ import annotations

import math

import numpy as np

from advisor.domain.evidence import EngineSeries, Evidence, as_floats
from advisor.domain.fact import Fact, measured, unknown
from advisor.domain.histogram import Floats

SLOT = 300.0
LEAST_SLOTS = 3
FULLY_READ = 0.99
COVERED = 0.95
NO_DEMAND = "arrivals over time are not known: give a request log (--logs) or engine metrics (--prometheus)"


def demand_facts(rates: Floats) -> dict[str, Fact]:
    """Mean and p99 of the arrival rates."""
    if rates.size < LEAST_SLOTS:
        return {f"demand_requests_per_second_{k}": unknown(NO_DEMAND) for k in ("p99", "mean")}
    n, story = int(rates.size), "5-minute slots"
    return {
        "demand_requests_per_second_p99": measured(float(np.quantile(rates, 0.99)), n=n, source=story),
        "demand_requests_per_second_mean": measured(float(rates.mean()), n=n, source=story),
    }


def arrival_rates(evidence: Evidence, coverage: float | None) -> Floats:
    """Requests per second that arrived at the deployment, per 5-minute slot; empty when nothing tells.

    A log that covers less than 95 % of what the engines finished is passed over where they can tell themselves.
    """
    finished = _finished_rates([e for e in evidence.every_engine if not e.lifetime and e.windows.end.size])
    partial = coverage is not None and coverage < COVERED and finished.size >= LEAST_SLOTS
    if evidence.log is not None and evidence.log.arrivals and not partial:
        slots: dict[int, int] = {}
        for at, count in evidence.log.arrivals.items():
            slots[int(at // SLOT)] = slots.get(int(at // SLOT), 0) + count
        first, last = min(slots), max(slots)
        inner = range(first + 1, last) if last - first > 2 else range(first, last + 1)
        return np.array([slots.get(s, 0) / SLOT for s in inner])
    return finished


def _finished_rates(engines: list[EngineSeries]) -> Floats:
    """Requests that arrived: those that finished, and those by which running and waiting together grew.

    A window longer than a slot is spread evenly. Only slots in which every engine was read: what one of them served
    while it was not would be missing from the demand.
    """
    counted = [e.windows.deltas["finished"] for e in engines if "finished" in e.windows.deltas]
    if not engines or len(counted) < len(engines):
        return np.empty(0)
    first = max(float(e.windows.start[0]) for e in engines)
    last = min(float(e.windows.end[-1]) for e in engines)
    grid = as_floats(np.arange(math.ceil(first / SLOT), math.floor(last / SLOT) + 1) * SLOT)
    if grid.size < 2:
        return np.empty(0)
    total, read = np.zeros(grid.size - 1), np.ones(grid.size - 1, bool)
    for engine, finished in zip(engines, counted, strict=True):
        good = np.isfinite(finished)
        start, end = engine.windows.start[good], engine.windows.end[good]
        total += np.maximum(per_slot(grid, start, end, finished[good]) + _growth(engine, grid), 0.0)
        read &= per_slot(grid, start, end, end - start) >= FULLY_READ * SLOT
    return total[read] / SLOT


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
