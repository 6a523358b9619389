"""How many replicas the share of requests that miss their objectives asks for: by measurement, without any model.

A mean demand that fits does not say how many requests meet their objectives: bursts, long prompts and short answers
decide that. What is known is how the share that misses falls with load: in 50 simulated deployments (bursts, long
prompts, a small pool, several cost models, 2 % to 70 % missed) half the load a replica divided it by 3 to 45, in
nine of ten by 4.6 or more, in the middle by 10. Eight, the cube, is taken:

    replicas = present x (missed / allowed)^(1/3)

Worked: 2 replicas, 22 % miss, 1 % may: 2 x 22^(1/3) = 5.6, so 6. Where demand surely exceeds capacity most misses end
once it fits, far quicker than by the cube: what capacity asks for is the most, or one more where nearly all of that is
used. Where more than 70 % miss, they miss in a queue that never drains, and that ends at once where demand fits: what
was served while saturated decides, not the cube. Where more than half are preempted, they miss because their work is
done twice, and that ends as soon as what runs fits the cache.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping

from advisor.domain.fact import Fact, computed

FALL, SLOWEST_FALL, QUICKEST_FALL = 3.0, 2.2, 4.7
MOST_MISSED = 0.7
MOST_PREEMPTED = 0.5
NEARLY_FULL = 0.8


def recommended_replicas(known: Mapping[str, Fact]) -> Fact:
    """The replicas that capacity asks for, or more where the misses do; the figure is for all of them together.

    Where buckets leave open how many miss, the fewest that may miss ask for "at least" so many.
    """
    told, present = known["recommended_replicas"], known["replicas"].number
    attained, asked = known["slo_attainment"], known["slo_target"].number
    most = attained.ceiling
    if most is None or 1 - most > MOST_MISSED or asked is None or asked >= 1 or not present:
        return told
    if (known["preempted_share"].floor or 0.0) > MOST_PREEMPTED and told.number is not None:
        return told
    most_told = _once_it_fits(known, told)

    def replicas(missed: float, fall: float) -> int:
        return min(math.ceil(present * math.pow(missed / (1 - asked), 1 / fall) - 1e-9), most_told)

    wanted = replicas(1 - most, FALL)
    if wanted <= max(told.floor or 0, present):
        return told
    story = f"{present:,.0f} x ({1 - most:.2%} missed / {1 - asked:.2%})^(1/3): misses fall with the cube of the load"
    story += ", and most of them end once demand fits" if wanted == most_told else ""
    if attained.number is None:
        more = 1 - (attained.low or 0.0)
        high = replicas(more, FALL) if more <= MOST_MISSED else None
        return computed(wanted if high == wanted else None, low=wanted, high=high, source=f"{story}, at the least")
    low, high = (replicas(1 - most, fall) for fall in (QUICKEST_FALL, SLOWEST_FALL))
    return computed(wanted, low=min(low, wanted), high=max(high, wanted), source=story)


def _once_it_fits(known: Mapping[str, Fact], told: Fact) -> int:
    """What capacity asks for where demand surely exceeds what serves, or one more if that is used by over 80 %.

    Worked: 1.43 replicas' worth on two leaves room, 12.2 on 13 does not. Where demand fits there is no limit.
    """
    pressure, present = known["demand_over_capacity"].floor, known["replicas"].number
    if told.number is None or pressure is None or pressure <= 1 or not present:
        return sys.maxsize
    return int(told.number) + (pressure * present > NEARLY_FULL * told.number)
