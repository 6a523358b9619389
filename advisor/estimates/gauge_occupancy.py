"""What a running sequence holds of the cache, from running n and cache use y at the same scrape: no length is needed.

    mu = sum y / sum n        sd^2 = mean((y - mu n)^2 / n)

Where the cache is full and requests wait most of the time, the cache decides how many run: the spread is then told by
the other scrapes.

Prompts that share a prefix hold it once, so y = s0 + mu n with s0 above 0: s0 is what they share, and the slope is what
one more sequence takes. Ten stretches of time tell how sure s0 is. Worked: 4,000 tokens shared and 500 each read 5,000
with 2 running and 9,000 with 10: not 2,500 or 900 a sequence.

A cache that is as full with few running as with many while nobody waits is kept full on purpose, as offload does: it
tells nothing of sequences.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from advisor.domain.evidence import EngineSeries, Evidence
from advisor.domain.fact import Fact
from advisor.domain.histogram import Floats

from .reservation import GAUGES, Occupancy

LEAST_SCRAPES = 500
LEAST_RUNNING = 3
LEAST_CALM = 100
STRETCHES = 10
SURE = 4.0
LEAST_SPREAD = 1.5
LEAST_SHARED = 0.02
MOST_UNSURE = 0.15
FULL = 0.9
NO_LESS = 0.95


def from_gauges(evidence: Evidence, pool: Fact) -> Occupancy | None:
    """Occupancy from the scrapes of all engines that run alike, or None where they are too few."""
    shown = [engine for engine in evidence.engines if engine.samples.kv_usage is not None]
    parts = [_pairs(engine) for engine in shown if not kept_full(engine)]
    if pool.number is None or not parts:
        return None
    n = np.concatenate([p[0] for p in parts])
    y = np.concatenate([p[1] for p in parts]) * pool.number
    if n.size < LEAST_SCRAPES or not n.sum() or y.sum() <= 0:
        return None
    shared = _shared(n, y) if _hits(evidence) else 0.0
    if shared < LEAST_SHARED * pool.number:
        shared = 0.0
    mean = float((y - shared).sum() / n.sum())
    free = ~np.concatenate([p[2] for p in parts])
    told = free if LEAST_SCRAPES <= free.sum() < n.size / 2 else np.ones_like(free)
    sd = math.sqrt(float(np.mean((y - shared - mean * n)[told] ** 2 / n[told])))
    return Occupancy(mean, sd, int(n.size), GAUGES, shared=shared) if mean > 0 else None


def kept_full(engine: EngineSeries) -> bool:
    """Whether the cache is full on purpose: nobody waits, and with a third fewer running it is as full as before.

    Where mostly nothing runs a full cache is no purpose, but a leak.
    """
    usage, running = engine.samples.kv_usage, engine.samples.running
    if usage is None:
        return False
    busy = np.isfinite(usage) & (running > 0)
    calm = busy & (engine.samples.waiting == 0)
    if calm.sum() < LEAST_CALM or 2 * busy.sum() < running.size:
        return False
    few, many = np.quantile(running[calm], [0.25, 0.75])
    if many < LEAST_SPREAD * few:
        return False
    with_few, with_many = (float(usage[calm & side].mean()) for side in (running <= few, running >= many))
    return with_few >= max(FULL, NO_LESS * with_many)


def _pairs(engine: EngineSeries) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Running and cache use at each scrape with enough running, and whether the cache was what others waited for."""
    running, usage = engine.samples.running, engine.samples.kv_usage
    if usage is None:
        return running[:0], running[:0], np.zeros(0, bool)
    use = np.isfinite(usage) & (running >= LEAST_RUNNING)
    return running[use], usage[use], (usage[use] >= FULL) & (engine.samples.waiting[use] > 0)


def _hits(evidence: Evidence) -> bool:
    """Whether the prefix cache finds anything at all: without it an intercept is something else than a prefix."""
    return any((engine.windows.total("prefix_hits") or 0.0) > 0 for engine in evidence.engines)


def _shared(n: Floats, y: Floats) -> float:
    """The intercept of y over n where it is surely above 0 and the slope is known to 15 %; else 0."""
    low, high = np.quantile(n, [0.05, 0.95])
    if high < LEAST_SPREAD * low:
        return 0.0
    fits = np.array(
        [_line(a, b) for a, b in zip(np.array_split(n, STRETCHES), np.array_split(y, STRETCHES), strict=True)]
    )
    intercept, slope = _line(n, y)
    unsure = fits.std(axis=0, ddof=1) / math.sqrt(STRETCHES)
    if not np.isfinite(unsure).all() or slope <= 0 or unsure[1] > MOST_UNSURE * slope:
        return 0.0
    return float(intercept) if intercept > SURE * unsure[0] else 0.0


def _line(n: Floats, y: Floats) -> tuple[float, float]:
    """Intercept and slope of y over n, weighted by 1/n: the variance of a sum grows with its terms."""
    if n.max() == n.min():
        return math.nan, math.nan
    root = 1 / np.sqrt(n)
    found = np.linalg.lstsq(np.column_stack([root, n * root]), y * root, rcond=None)[0]
    return float(found[0]), float(found[1])
