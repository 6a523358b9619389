"""How many replicas the share of requests that miss their objectives asks for: by measurement, without any model.

A mean demand that fits does not say how many requests meet their objectives: bursts, long prompts and short answers
decide that. What is known is how the share that misses falls with load: in 50 simulated deployments (bursts, long
prompts, a small pool, several cost models, 2 % to 70 % missed) half the load a replica divided it by 3 to 45, in
nine of ten by 4.6 or more, in the middle by 10. Eight, the cube, is taken:

    replicas = present x (missed / allowed)^(1/3)

Worked: 2 replicas, 22 % miss, 1 % may: 2 x 22^(1/3) = 5.6, so 6. Where more than 70 % miss, they miss in a queue that
never drains, and that ends at once where demand fits: what was served while saturated decides, not the cube.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.fact import Fact, computed

FALL, SLOWEST_FALL, QUICKEST_FALL = 3.0, 2.2, 4.7
MOST_MISSED = 0.7


def recommended_replicas(known: Mapping[str, Fact]) -> Fact:
    """The replicas that capacity asks for, or more where the misses do; the figure is for all of them together."""
    told, present = known["recommended_replicas"], known["replicas"].number
    attained, asked = known["slo_attainment"], known["slo_target"].number
    missed = _missed(attained)
    if missed is None or missed > MOST_MISSED or asked is None or asked >= 1 or not present:
        return told
    over = missed / (1 - asked)
    wanted = math.ceil(present * over ** (1 / FALL) - 1e-9)
    if over <= 1 or wanted <= max(told.floor or 0, present):
        return told
    low, high = (math.ceil(present * over ** (1 / fall) - 1e-9) for fall in (QUICKEST_FALL, SLOWEST_FALL))
    story = f"{present:,.0f} x ({missed:.2%} missed / {1 - asked:.2%})^(1/3): misses fall with the cube of the load"
    return computed(wanted, low=min(low, wanted), high=max(high, wanted), source=story)


def _missed(attained: Fact) -> float | None:
    """The share that missed, in the middle of what buckets leave open."""
    if attained.number is not None:
        return 1 - attained.number
    if attained.low is None or attained.high is None:
        return None
    return 1 - (attained.low + attained.high) / 2
