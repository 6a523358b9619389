"""The fewest replicas with which enough requests meet the time per token: by the time of a step, else by the misses.

What prompts do to those who decode in the same steps (`shared_steps`) falls only in proportion to the load of a
replica. Replicas are added, from those that capacity asks for, until few enough answers are slowed at demand p99. Where
more miss now than the time of a step tells, as many times more are taken to miss with more replicas. Where it tells
less than a fifth of the misses, or first tokens are late, the misses themselves ask for replicas first
(`missed_share`). Where one replica is far busier than the others they miss on that one, and ask for nothing. Where not
even twice as many replicas do, no number is given but "at least what demand asks for": another remedy helps more.

Worked: 30 % miss and 23 % are told, 1.3 times as many. Two replicas leave 1.5 % x 1.3, three 0.48 % x 1.3 = 0.6 %;
where 1 % may miss, three.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed

from . import missed_share
from .growth import FAULTY
from .load import engines_per_instance
from .shared_steps import SharedSteps

HALF = 0.5
MOST_TIMES = 2
MOST_UNTOLD = 5.0
REMEDY = "a smaller token budget or a pool for long prompts helps, more replicas hardly do"


def recommended_replicas(evidence: Evidence, known: Mapping[str, Fact], shared: SharedSteps | None) -> Fact:
    """The replicas that capacity asks for, or more where the misses do or the time of a step.

    Where one request in a thousand takes more than half of the cache, or buckets leave open that it does, "at least":
    while it runs all others of its replica wait, however many there are beside it.
    """
    told = _by_load(evidence, known, shared)
    pool, longest = known["kv_pool_tokens"].number, known["total_tokens_p999"].ceiling or known["max_model_len"].number
    if told.number is None or not pool or longest is None or longest <= HALF * pool:
        return told
    story = f"one request in a thousand may take {min(longest / pool, 1):.0%} of the cache, and others wait for it"
    return computed(None, low=told.number, n=told.n, source=f"{told.source}; {story}")


def _by_load(evidence: Evidence, known: Mapping[str, Fact], shared: SharedSteps | None) -> Fact:
    demand, present = known["demand_to_carry"].number, known["replicas"].number
    if (known["replica_imbalance"].number or 1.0) >= FAULTY:
        return known["recommended_replicas"]
    target, allowed = evidence.slo.tpot_seconds, 1 - evidence.slo.share
    if shared is None or target is None or not demand or not present:
        return missed_share.recommended_replicas(known)
    rate = demand / engines_per_instance(evidence)
    times = _times(known, shared.missed_at(rate / present, target), allowed)
    told = missed_share.recommended_replicas(known) if times is None else known["recommended_replicas"]
    missing = times is not None and _missed(known, "slo_attainment_tpot") > allowed
    first = max(math.ceil(told.floor or 0), int(present) + 1 if missing else 0)
    if first <= present or (told.number is None and not missing):
        return told
    counts = range(first, MOST_TIMES * first + 1)
    return _raised(told, {n: (times or 1.0) * shared.missed_at(rate / n, target) for n in counts}, allowed)


def _raised(told: Fact, slowed: Mapping[int, float], allowed: float) -> Fact:
    """The first of so many replicas with which few enough answers are slowed."""
    source, first, most = told.source or "what capacity asks for is not known", min(slowed), max(slowed)
    enough = next((n for n, share in slowed.items() if share <= allowed), None)
    if enough is None:
        story = f"even with {most} replicas prompts of others slow {min(slowed[most], 1):.1%} of answers too much"
        return computed(None, low=first, source=f"{source}; {story}: {REMEDY}")
    if enough == told.number:
        return told
    story = f"prompts of others slow {slowed[enough]:.2%} of answers too much with {enough}"
    return computed(enough, low=min(told.floor or enough, enough), high=enough, source=f"{source}; {story}")


def _times(known: Mapping[str, Fact], told: float, allowed: float) -> float | None:
    """How many times as many miss as the time of a step tells, at least 1; None where it is not why they miss."""
    missed = _missed(known, "slo_attainment_tpot")
    if _missed(known, "slo_attainment_ttft") > allowed or missed > max(MOST_UNTOLD * told, allowed):
        return None
    return max(missed / told, 1.0) if told else 1.0


def _missed(known: Mapping[str, Fact], attainment: str) -> float:
    """At least so many missed it; 0 where nobody can tell."""
    most = known[attainment].ceiling
    return 0.0 if most is None else 1 - most
