"""What a token in the cache costs per step: ITL = a + b D + p P + c K, with K the cached tokens of those who decode.

K is D sequences times what each running one holds (cache in use x pool / running). While lengths stay alike it is D
times a constant and what single scrapes are off: then b and c cannot be told apart (variance inflation of 300), or
under a pinned cap c comes out as half of what it is, and nothing needs them apart. Only where contexts of one tenth of
the epoch are half as long again as those of another do they tell it. Attention of prompts to their context is in c.

Played with caches of 64, 24 and 4 ns a token under lengths that changed, grew or differed by day, c was 52 to 59, 27 to
34 and 10 to 16: hence the interval. In published runs of 86 models and GPUs c is 82 ns in the middle, and times at
2,048 tokens, foretold from those up to 1,024, are off by 6 % with it and by 23 % without.

Worked: 10 ms + 20 sequences x 2,000 tokens x 64 ns = 12.6 ms; with contexts twice as long, 15.1 ms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.histogram import Floats, Ints

from .step_time import MOST_VIF, solve
from .step_windows import LEAST_WINDOWS, Points, gather

LEAST_R2 = 0.9
LEAST_APART = 1.5
BLOCKS = 10
MOST_BELOW, MOST_ABOVE = 1.5, 1.25


def facts(evidence: Evidence, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Seconds that each token in the cache of a decoding sequence adds to a gap, or why that cannot be told."""
    return {"itl_per_kv_token_seconds": _per_token(evidence, known["kv_pool_tokens"].number)}


def _per_token(evidence: Evidence, pool_tokens: float | None) -> Fact:
    stages = evidence.count_flag("pipeline_parallel_size") or 1
    points = gather(evidence, of_epoch=True)
    if stages > 1:
        return unknown(f"{stages} pipeline stages: a gap spans the steps of all of them")
    if pool_tokens is None or points is None:
        return unknown("needs the size of the cache, and counters and gauges of the engine over time (--prometheus)")
    points = _known(points)
    if points.batch.size < LEAST_WINDOWS:
        return unknown(f"{points.batch.size} usable windows with cache usage; {LEAST_WINDOWS} are needed")
    held = points.batch * points.cache * pool_tokens
    return _told(points, held)


def _told(points: Points, held: Floats) -> Fact:
    if points.prompt.std() == 0 or held.std() == 0:
        return unknown("prompt work or cache did not vary: what each costs cannot be told apart")
    if (apart := _apart(points)) < LEAST_APART:
        return unknown(
            f"batch and cache move together: contexts of one tenth of the time are at most {apart:.2f} times those of "
            f"another; {LEAST_APART:g} times would tell"
        )
    inflation = _inflation(points, held)
    if inflation > MOST_VIF:
        return unknown(
            f"batch, prompts and cache move together (variance inflation {inflation:,.0f}; up to {MOST_VIF:g} they can "
            "be told apart)"
        )
    cost, r2 = _cost(points, held)
    if r2 < LEAST_R2 or cost <= 0:
        return unknown(f"batch, prompts and cache explain {max(r2, 0):.0%} of the gaps; {LEAST_R2:.0%} are needed")
    spread = _spread(points, held)
    story = f"mean gap over batch, prompts and cache; R2 {r2:.2f}, variance inflation {inflation:.1f}"
    low, high = min(cost - 2 * spread, cost / MOST_BELOW), max(cost + 2 * spread, cost * MOST_ABOVE)
    return computed(cost, low=max(low, 0.0), high=high, n=points.batch.size, source=story)


def _tenths(points: Points) -> Ints:
    return np.arange(points.batch.size) * BLOCKS // points.batch.size


def _apart(points: Points) -> float:
    """How many times as long contexts are in the tenth with the longest as in the one with the shortest."""
    place = _tenths(points)
    running = np.bincount(place, points.batch)
    held = np.bincount(place, points.batch * points.cache) / running
    return float(held.max() / held.min()) if held.min() > 0 else math.inf


def _known(points: Points) -> Points:
    kept = np.isfinite(points.cache)
    return Points(*(getattr(points, name)[kept] for name in points.__slots__))


def _cost(points: Points, held: Floats) -> tuple[float, float]:
    scale = float(held.mean())
    columns = np.column_stack([np.ones_like(held), points.batch, points.prompt, held / scale])
    coefficients, r2 = solve(columns, points)
    return float(coefficients[3]) / scale, r2


def _inflation(points: Points, held: Floats) -> float:
    """Variance inflation of the cached tokens by batch and prompts together."""
    others = np.column_stack([np.ones_like(held), points.batch, points.prompt])
    root = np.sqrt(points.weight)
    fitted = others @ np.linalg.lstsq(others * root[:, None], held * root, rcond=None)[0]
    mean = np.average(held, weights=points.weight)
    left = float(np.average((held - fitted) ** 2, weights=points.weight))
    return float(np.average((held - mean) ** 2, weights=points.weight)) / left if left > 0 else math.inf


def _spread(points: Points, held: Floats) -> float:
    """Standard error of the cost, from leaving out each tenth of the time (jackknife over blocks)."""
    place = _tenths(points)
    costs = [
        _cost(Points(*(getattr(points, name)[place != block] for name in points.__slots__)), held[place != block])[0]
        for block in range(BLOCKS)
    ]
    return math.sqrt((BLOCKS - 1) * float(np.var(costs)))
