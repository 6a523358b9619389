"""How many independent requests a sample is worth: long requests come in bursts, from few clients and in some hours.

The exceedances of a level in blocks of time scatter more than independent requests would. With k_b of n_b requests of
block b above the level and p = sum k / sum n, the design effect is the dispersion

    deff = sum (k_b - n_b p)^2 / (n_b p (1 - p)) / (blocks - 1)

and n requests bound a quantile like n / deff independent ones (Kish 1965). Worked: four blocks of 100 requests with 0,
0, 20 and 20 above have p = 0.1 and deff = (4 x 100 / 9) / 3 = 14.8.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri

from advisor.domain.histogram import Floats

from .length_slots import Slots

BLOCKS = (8, 16, 32)
LEAST_EXCEEDANCES = 5
CHANCE = 0.05
WIDER = 10


def design_effect(slots: Slots, q: float) -> float:
    """The design effect (at least 1) on the q-quantile (0..1).

    Few requests lie above a p99.9, so their scatter tells little. Those in its bin and ten times as many, above the
    p99, tell more; where rates vary by the same factor, the excess over 1 grows with the number of exceedances, so of
    the scatter of a share s of requests (1 - q) / s is owed. The largest counts, and what chance explains (5 %) does
    not: a dispersion of 11 above the p99 makes 2 at the p99.9.
    """
    if slots.n == 0:
        return 1.0
    arrived = np.cumsum(slots.counts.sum(axis=0)) / slots.counts.sum()
    own, wide = (int(np.searchsorted(arrived, level)) for level in (q, max(1 - WIDER * (1 - q), 0.5)))
    return max(1.0, *(_owed(slots, first, 1 - q) for first in {own + 1, own, wide + 1}))


def _owed(slots: Slots, first: int, tail: float) -> float:
    above, every = slots.counts[:, first:].sum(axis=1), slots.counts.sum(axis=1)
    share = above.sum() / every.sum()
    found = scatter(slots.start, every, above, np.full(every.size, share))
    return 1 + (found - 1) * min(tail / share, 1.0) if share > 0 else 1.0


def scatter(start: Floats, every: Floats, above: Floats, expected: Floats) -> float:
    """The largest dispersion, over blocks of an 8th, 16th and 32nd of the time, that chance does not explain; or 1.

    Of slots with so many requests, so many of them above a level, and the share expected above it there.
    """
    if above.sum() < LEAST_EXCEEDANCES or (every - above).sum() < LEAST_EXCEEDANCES:
        return 1.0
    place = (start - start[0]) / max(float(start[-1] - start[0]), 1.0)
    found = (_in_blocks(np.minimum(place * m, m - 1).astype(int), every, above, expected) for m in BLOCKS)
    return max(1.0, *found)


def _in_blocks(block: np.ndarray[tuple[int], np.dtype[np.int_]], every: Floats, above: Floats, share: Floats) -> float:
    seen, mean, variance = (np.bincount(block, w) for w in (above, every * share, every * share * (1 - share)))
    used = variance > 0
    freedom = int(used.sum()) - 1
    if freedom < 1:
        return 1.0
    chi2 = float(((seen - mean)[used] ** 2 / variance[used]).sum())
    return chi2 / freedom if chi2 > chdtri(freedom, CHANCE) else 1.0
