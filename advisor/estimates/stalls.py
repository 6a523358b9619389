"""Long prompts that hold up the short requests beside them, and what a pool of their own would spare these.

While a long prompt is computed its steps are full, and whoever decodes or arrives on that replica waits for it. A share
L of requests is long; where a larger share M misses its objectives, at least (M - L) / (1 - L) of the short ones do. A
long prompt takes S seconds of a replica and a short request stays for R, so with l long ones a second on each replica
at least 1 - exp(-l (S + R)) of the short ones meet one. Alone at r a second and replica, they decode D at a time:

    T(D) = a + s D     s = b + p I / O     D = r O T(D) = r O a / (1 - r O s)

Their pool is large enough where chance keeps the batch below what the objective allows: T(D + z sqrt(D)) <= TPOT, z the
normal quantile of the share of requests that must meet it.

Worked: a = 10 ms, s = 0.5 ms, r = 3, O = 200: r O = 600, D = 6 / 0.7 = 8.6; with z = 2.33 at most 15.4, 17.7 ms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.histogram import JointCounts

from .full_step import FullStep
from .populations import Cut
from .token_budget import step_budget

FACTS = (
    "late_short_share",
    "long_prefill_seconds",
    "stalled_short_share",
    "apart_short_replicas",
    "apart_long_replicas",
    "apart_replicas",
    "apart_short_ceiling",
    "apart_short_tpot",
    "slo_attainment_apart",
)
APART = FACTS[3:]
LEAST_EXPLAINED = 0.25
"""What stalls have to explain of the short requests that are late. Both figures are lower bounds."""
MOST_LOAD = 0.75
"""Of what the step time allows: an error of a third in its slope must not fill the pool."""
MOST_SHARE = 0.9999
LONG_LOAD = 0.5
"""Beyond it long prompts wait for each other: on three quarters of it they waited six times as long as in the mix."""
LONG_COSTS = 4.0
"""Attention makes a long prompt dearer than in proportion: simulated, 60,000 tokens took 3.9 times what mixes told."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Replicas of a pool of short requests, seconds a token at its mean and at its largest batch, and its cap."""

    replicas: int
    tpot: float
    tpot_at_most: float
    ceiling: int


def facts(evidence: Evidence, work: FullStep | str, cut: Cut | None, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Whether long prompts make short requests late, and how the present replicas would be divided between both."""
    if cut is None:
        return _one_population(evidence, known)
    why = _untold(work, cut, known)
    if why is not None or isinstance(work, str):
        return dict.fromkeys(FACTS, unknown(why or str(work)))
    prefill = _prefill_seconds(work, cut.long, step_budget(evidence) or 0)
    told = f"{cut.long.prompts().mean:,.0f} prompt tokens on average, in full steps"
    late, stalled = _late(known, cut), _stalled(work, cut, known, prefill)
    out = {
        "late_short_share": late,
        "long_prefill_seconds": computed(None, low=prefill, source=told),
        "stalled_short_share": stalled,
    }
    if late.number is None or (stalled.number or 0.0) < LEAST_EXPLAINED * late.number:
        return out | dict.fromkeys(APART, unknown(late.unknown or "long prompts explain too little of what is late"))
    pool = _pool(evidence, work, cut, known)
    if pool is None:
        few = "twice the replicas do not keep short requests alone within their objectives"
        return out | dict.fromkeys(APART, unknown(few))
    of_long = _of_long(known, cut, prefill)
    return out | _apart(evidence, cut, pool, of_long, known)


def _apart(evidence: Evidence, cut: Cut, pool: Pool, of_long: int, known: Mapping[str, Fact]) -> dict[str, Fact]:
    present, asked = int(known["replicas"].number or 0), evidence.slo.share
    rest = max(present - pool.replicas, of_long)
    rate = (known["demand_requests_per_second_p99"].number or 0.0) * (1 - cut.long_share)
    story = f"{rate:.3g} short requests/s on {pool.replicas} replicas"
    held = f"{asked:.4g} of the {1 - cut.long_share:.2%} that are short; every long one taken for late"
    return {
        "apart_short_replicas": computed(pool.replicas, source=story),
        "apart_long_replicas": computed(rest, source=f"at least {of_long}, or what remains of {present}"),
        "apart_replicas": computed(pool.replicas + rest, source=f"{pool.replicas} and {rest}"),
        "apart_short_ceiling": computed(pool.ceiling, source="within the objective by the step time, and seen to run"),
        "apart_short_tpot": computed(pool.tpot, low=pool.tpot, high=pool.tpot_at_most, source=story),
        "slo_attainment_apart": computed((1 - cut.long_share) * asked, source=held),
    }


def _one_population(evidence: Evidence, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Nobody is held up by long prompts where there are none; without single requests nobody can tell."""
    out = dict.fromkeys(FACTS, unknown(known["split_cut_tokens"].unknown or "one population of lengths"))
    joint = evidence.best_joint
    if joint is None or not joint.n:
        return out
    return out | {"stalled_short_share": computed(0.0, n=joint.n, source="one population of lengths")}


def _untold(work: FullStep | str, cut: Cut, known: Mapping[str, Fact]) -> str | None:
    """Why nothing can be said, or None."""
    if isinstance(work, str):
        return f"what a long prompt costs is not known: {work}"
    if work.per_sequence <= 0:
        return "how the gap grows with concurrency is not known: it hardly varied"
    if cut.short.outputs().mean <= 0:
        return "short requests have no output tokens"
    needed = (
        "replicas",
        "demand_requests_per_second_p99",
        "demand_requests_per_second_mean",
        "itl_mean",
        "max_num_batched_tokens",
    )
    return next((known[name].unknown or f"only bounds of {name}" for name in needed if not known[name].number), None)


def _prefill_seconds(work: FullStep, long: JointCounts, budget: int) -> float:
    """Seconds that a replica computes the prompt of a long request on average, alone and in full steps."""
    tokens = long.prompts().mean
    return tokens * work.per_prompt_token + math.ceil(tokens / max(budget, 1)) * work.base


def _late(known: Mapping[str, Fact], cut: Cut) -> Fact:
    """At least so many of the short requests miss their objectives, even where every long one misses them too."""
    attained = known["slo_attainment"]
    met = attained.ceiling
    if attained.is_unknown or met is None:
        return unknown(attained.unknown or "only a lower bound of the requests within their targets is known")
    share = max((1 - met - cut.long_share) / (1 - cut.long_share), 0.0)
    return measured(share, n=attained.n, source=f"{1 - met:.2%} late, {cut.long_share:.2%} long")


def _stalled(work: FullStep, cut: Cut, known: Mapping[str, Fact], prefill: float) -> Fact:
    mean, replicas = known["demand_requests_per_second_mean"].number or 0.0, known["replicas"].number or 1.0
    stay = cut.short.outputs().mean * (known["itl_mean"].number or 0.0) / work.tokens_per_gap
    each = mean * cut.long_share / replicas
    share = -math.expm1(-each * (prefill + stay))
    story = f"{each:.3g} long requests/s a replica, {prefill:.3g} s each, beside requests of {stay:.3g} s"
    return computed(share, source=story)


def _of_long(known: Mapping[str, Fact], cut: Cut, prefill: float) -> int:
    """Replicas that are busy at most half of the time with the prompts of long requests at p99 demand."""
    rate = (known["demand_requests_per_second_p99"].number or 0.0) * cut.long_share
    return max(math.ceil(LONG_COSTS * rate * prefill / LONG_LOAD), 1)


def _pool(evidence: Evidence, work: FullStep, cut: Cut, known: Mapping[str, Fact]) -> Pool | None:
    """The fewest replicas that keep short requests within their objectives; None where twice the present do not."""
    rate = (known["demand_requests_per_second_p99"].number or 0.0) * (1 - cut.long_share)
    pools = (
        _pool_of(count, rate / count, evidence, work, cut, known)
        for count in range(1, 2 * int(known["replicas"].number or 0) + 1)
    )
    return next((pool for pool in pools if pool is not None), None)


def _pool_of(
    replicas: int, rate: float, evidence: Evidence, work: FullStep, cut: Cut, known: Mapping[str, Fact]
) -> Pool | None:
    """The pool with that rate a replica, or None where it misses an objective or runs more than were seen to run."""
    prompt, output = cut.short.prompts(), cut.short.outputs().mean
    slope, asked = work.per_sequence + work.per_prompt_token * prompt.mean / output, rate * output / work.tokens_per_gap
    if asked * slope > MOST_LOAD:
        return None
    batch = asked * work.base / (1 - asked * slope)
    crowd = batch + NormalDist().inv_cdf(min(max(evidence.slo.share, 0.5), MOST_SHARE)) * math.sqrt(batch)
    usual, worst = ((work.base + slope * size) / work.tokens_per_gap for size in (batch, crowd))
    first = worst * work.tokens_per_gap + prompt.quantile(0.99) * work.per_prompt_token
    tpot, ttft = evidence.slo.tpot_seconds or math.inf, evidence.slo.ttft_seconds or math.inf
    ceiling = min((tpot * work.tokens_per_gap - work.base) / slope, known["running_max"].number or 0.0)
    if worst > tpot or first > ttft or crowd > ceiling:
        return None
    return Pool(replicas, usual, worst, math.floor(ceiling))
