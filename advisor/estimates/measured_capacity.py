"""What one engine was seen to serve within the objectives: requests per second, by slots of time, without any model.

Slots of all engines are sorted by their rate and pooled until they hold enough requests; the share within objectives is
made falling by isotonic regression. The capacity is the largest rate up to which the lower end of the 90 % Wilson
interval stays at the share promised. Buckets count only up to the edge at or below an objective, and of two objectives
at least a + b - 1 meet both, so what is said to hold does.

Worked: 1,990 of 2,000 requests within are 99.5 %, at least 99.2 % by Wilson with z = 1.28.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, as_floats
from advisor.domain.histogram import Floats

SLOT, LONGEST_SLOT = 300.0, 3600.0
LEAST_REQUESTS = 1000
STEADY, FEW, STAYS = 400, 50, 4
Z = 1.2816


@dataclass(frozen=True, slots=True)
class Served:
    """Requests per second of one engine: `holds` within the objectives, `fails` the first rate that does not.

    `fails` is None where no rate was seen to fail. `requests`: how many were looked at.
    """

    holds: float
    fails: float | None
    requests: int


def served_within(evidence: Evidence, slot_seconds: float = SLOT) -> Served | None:
    """The capacity of one engine as measured; None without objectives, buckets, or a rate that holds."""
    slots = [s for engine in evidence.engines if (s := _slots(engine, evidence, slot_seconds)) is not None]
    if not slots:
        return None
    rate, within, requests = np.concatenate(slots, axis=1)
    pooled = _pooled(rate, within, requests)
    if pooled is None:
        return None
    rate, within, requests = pooled
    fitted = isotonic_regression(within / requests, weights=requests, increasing=False)
    holds = wilson_lower(fitted.x, _block_sizes(fitted.blocks, requests)) >= evidence.slo.share
    first = int(np.argmin(holds)) if not holds.all() else holds.size
    if first == 0:
        return None
    missing = np.flatnonzero(fitted.x < evidence.slo.share)
    fails = float(rate[missing[0]]) if missing.size else None
    return Served(float(rate[first - 1]), fails, int(requests.sum()))


def steady_slot(evidence: Evidence) -> float | None:
    """Seconds of slots in which what an engine finished is the load it ran under; None where an hour is too short.

    They hold 400 requests, so that chance moves their rate by 5 %, and four stays of a request, so that those which
    finished in one also ran in it. Worked: 0.25 requests/s of 20 s each need 1,600 s, hence slots of 1,800 s.
    """
    engines = [e for e in evidence.engines if not e.lifetime and "finished" in e.windows.deltas]
    finished = sum(float(np.nansum(e.windows.deltas["finished"])) for e in engines)
    seconds = sum(float(np.sum(e.windows.end - e.windows.start)) for e in engines)
    gauged = [e.samples.running[np.isfinite(e.samples.running)] for e in engines]
    running = [float(values.mean()) for values in gauged if values.size]
    if finished <= 0 or not running or finished / seconds * LONGEST_SLOT < FEW:
        return None
    rate = finished / seconds
    least = max(STEADY / rate, STAYS * float(np.mean(running)) / rate, SLOT)
    return min(math.ceil(least / SLOT) * SLOT, LONGEST_SLOT)


def wilson_lower(share: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """The lower end of the 90 % Wilson interval of a share seen in n requests."""
    p, n = as_floats(share), as_floats(n)
    centre, spread = p + Z * Z / (2 * n), Z * np.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    return np.asarray((centre - spread) / (1 + Z * Z / n))


def _slots(engine: EngineSeries, evidence: Evidence, slot_seconds: float) -> Floats | None:
    """Rate, requests within the objectives, requests: a column for each slot of one engine."""
    w, asked = engine.windows, evidence.slo.of_requests
    if engine.lifetime or not w.end.size:
        return None
    told = [p for name, target in asked.items() if (p := _within(w, name, target)) is not None]
    if not told or len(told) < len(asked):
        return None
    slot = (w.start // slot_seconds).astype(np.int64)
    keep = (w.end - w.start <= slot_seconds) & np.all([np.isfinite(n) for _, n in told], axis=0)
    seconds = _summed(slot, w.end - w.start, keep)
    counts = [(_summed(slot, good, keep), _summed(slot, n, keep)) for good, n in told]
    requests = np.min([n for _, n in counts], axis=0)
    missed = np.sum([n - good for good, n in counts], axis=0)
    full = (seconds >= 0.9 * slot_seconds) & (requests > 0)
    return np.stack([requests / np.maximum(seconds, 1.0), np.maximum(requests - missed, 0.0), requests])[:, full]


def _within(windows: CounterWindows, name: str, target: float) -> tuple[Floats, Floats] | None:
    """Requests within the target and all requests, window by window."""
    counted = windows.latencies(name)
    if counted is None:
        return None
    counts, edges = counted
    under = edges <= target * (1 + 1e-9)
    return counts[:, :-1][:, under].sum(axis=1), counts.sum(axis=1)


def _summed(slot: npt.NDArray[np.int64], values: Floats, keep: npt.NDArray[np.bool_]) -> Floats:
    return as_floats(np.bincount(slot - slot.min(), np.where(keep, np.nan_to_num(values), 0.0)))


def _pooled(rate: Floats, within: Floats, requests: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Neighbours in rate together until they hold enough requests; a block counts as its mean rate."""
    order = np.argsort(rate, kind="stable")
    rate, within, requests = rate[order], within[order], requests[order]
    if requests.sum() < LEAST_REQUESTS:
        return None
    block = np.minimum(np.cumsum(requests) // LEAST_REQUESTS, math.floor(requests.sum() / LEAST_REQUESTS) - 1)
    _, place = np.unique(block, return_inverse=True)
    sums = [as_floats(np.bincount(place, v)) for v in (rate * requests, within, requests)]
    return sums[0] / sums[2], sums[1], sums[2]


def _block_sizes(starts: npt.NDArray[np.int64], requests: Floats) -> Floats:
    sizes = np.add.reduceat(requests, starts[:-1])
    return np.repeat(sizes, np.diff(starts))
