"""What max_num_batched_tokens should be, and what that does: which objective the budget hurts, if any.

A full step lasts as long for everybody who decodes in it. A budget whose full step fits the objective keeps it at any
concurrency; that is the ceiling C_itl = D + (objective - d) / p. Below it lies what prompts need: the rate of demand
p99 with headroom, and the time to first token of a long prompt, ceil(L / (C - D)) d + p L + the wait for the prompts
before it (M/G/1). Powers of two only, never below max_num_seqs, which the engine would refuse. The mean gap does not
depend on the budget and is never looked at.

Worked: d = 12.5 ms, p = 0.11 ms, D = 18, gaps of at most 100 ms with a quarter for the jitter of steps: 80 ms. A
budget of 1,024 takes 110.7 to 123.2 ms, one of 512 between 54.3 and 66.8: the target is 512.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.numbers import seconds, tokens
from advisor.domain.policy import Policy

from .budget_scene import Scene, scene_of
from .full_step import FullStep, observed
from .load import sequence_cap
from .long_gaps import gap_bounds
from .objectives import surely_missed
from .token_budget import admitted, step_budget

CANDIDATES = tuple(2**k for k in range(7, 17))
"""128 to 65,536 tokens: below it no engine is efficient, above it no prompt is longer than a step."""
JITTER = 1.25
"""A single gap may be so many times the mean of its step; a time per token averages that away."""
EFFICIENT = 0.9
LEAST_GAIN = 1.1
MOST_RAISE = 4
SHORTEST = 0.001
POOL_COST = (0.6, 2.0)
"""KV tokens that one more token of budget was seen to cost: 0.61 on 24 GB, 2.0 on four GPUs."""
LATER = (
    "full_step_at_next_budget",
    "prefill_tokens_per_step_at_next_budget",
    "prefill_efficiency_at_next_budget",
    "budget_ceiling_at_next_budget",
    "demand_over_capacity_at_next_budget",
    "ttft_at_next_budget",
    "kv_pool_tokens_at_next_budget",
)
NAMES = (
    "recommended_max_num_batched_tokens",
    "next_max_num_batched_tokens",
    "full_step_seconds",
    "prefill_efficiency",
    *LATER,
)
WAYS_OUT = "the ways out are long_prefill_token_threshold, a pool of its own for long prompts, or fewer sequences"


def facts(evidence: Evidence, policy: Policy, work: FullStep | str, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """The target of the token budget, the step towards it, and what is predicted there."""
    scene = scene_of(evidence, policy, work, known)
    if isinstance(scene, str):
        return dict.fromkeys(NAMES, unknown(scene)) | _doubled(evidence, known)
    target = _target(evidence, scene, known)
    following = _next(target, scene)
    now = scene.work.bounds(scene.decoding, scene.budget)
    return {
        "recommended_max_num_batched_tokens": target,
        "next_max_num_batched_tokens": following,
        "full_step_seconds": computed(
            scene.full_step(scene.budget), low=now[0], high=now[1], n=scene.work.windows, source=_parts(scene)
        ),
        "prefill_efficiency": _efficiency(scene, scene.budget),
        **_at_next(scene, following, known["kv_pool_tokens"]),
    }


def _target(evidence: Evidence, scene: Scene, known: Mapping[str, Fact]) -> Fact:
    limits = _limits(evidence, scene.work.tokens_per_gap)
    failing = [name for name in limits if surely_missed(known, f"slo_attainment_{name}")]
    least = sequence_cap(evidence) or 1
    if failing:
        return _lower(evidence, scene, {n: limits[n] for n in failing}, least)
    if surely_missed(known, "slo_attainment_ttft") or (
        evidence.workload == "batch" and (known["waiting_share"].number or 0.0) > 0
    ):
        return _raise(scene, limits)
    return computed(scene.budget, source="the present budget: no objective is missed")


def _limits(evidence: Evidence, tokens_per_gap: float) -> dict[str, float]:
    """Seconds that a full step may take, by objective; m tokens a step allow m times the time per token."""
    slo = evidence.slo
    given = {"itl": (slo.itl_seconds, JITTER), "tpot": (slo.tpot_seconds, 1.0 / tokens_per_gap)}
    return {n: limit / margin for n, (limit, margin) in given.items() if limit is not None}


def _lower(evidence: Evidence, scene: Scene, limits: Mapping[str, float], least: int) -> Fact:
    """The largest budget whose full step fits what is missed now, if prompts can live with it."""
    name = min(limits, key=lambda n: limits[n])
    limit, step = limits[name], scene.full_step(scene.budget)
    if step <= limit:
        story = f"a full step takes {seconds(step)}, within the {seconds(limit)} that {name.upper()} allows"
        return computed(scene.budget, source=f"{story}: the budget is not what hurts")
    alone = scene.work.decoding(scene.decoding)
    if alone >= limit:
        story = f"decoding {scene.decoding:,.0f} sequences takes {seconds(alone)} without any prompt"
        return unknown(f"{story}, {seconds(limit)} are allowed: no budget helps, fewer sequences or faster steps do")
    fitting = [c for c in CANDIDATES if scene.decoding < c < scene.budget and scene.full_step(c) <= limit]
    if not fitting:
        return unknown(f"no budget makes a full step fit {seconds(limit)}: {WAYS_OUT}")
    best = fitting[-1]
    if best < least:
        return unknown(f"{tokens(best)} tokens would fit, but a budget below max_num_seqs is refused: lower that first")
    if refused := _too_small(evidence, scene, best):
        return unknown(f"{tokens(best)} tokens fit {seconds(limit)}, but {refused}: {WAYS_OUT}, or replicas")
    story = f"a full step of {seconds(scene.full_step(best))} fits {seconds(limit)}"
    return computed(best, n=scene.work.windows, source=story)


def _too_small(evidence: Evidence, scene: Scene, budget: int) -> str | None:
    """Why prompts could not live with a budget."""
    pressure, ttft = scene.pressure(budget), scene.ttft(budget)
    if pressure is not None and pressure > 1:
        return f"demand is {pressure:.0%} of what that serves"
    target = evidence.slo.ttft_seconds
    if target is not None and scene.arrivals is not None and (ttft is None or ttft > target):
        told = "without bound" if ttft is None else seconds(ttft)
        return f"the first token would take {told}, {seconds(target)} are allowed"
    return None


def _raise(scene: Scene, limits: Mapping[str, float]) -> Fact:
    """The least budget that spends 90 % of a full step on prompts, or the largest that the objectives allow."""
    held = [
        c
        for c in CANDIDATES
        if c > scene.budget and all(scene.work.bounds(scene.decoding, c)[1] <= limit for limit in limits.values())
    ]
    efficiency = scene.work.efficiency(scene.decoding, scene.budget)
    if efficiency >= EFFICIENT:
        return computed(scene.budget, source=f"full steps spend {efficiency:.0%} on prompts already: more adds nothing")
    if not held:
        return computed(scene.budget, source="a larger budget would stretch steps beyond the objectives")
    best = next((c for c in held if scene.work.efficiency(scene.decoding, c) >= EFFICIENT), held[-1])
    gain = scene.work.efficiency(scene.decoding, best)
    if gain < LEAST_GAIN * efficiency:
        return computed(scene.budget, source=f"{tokens(best)} would prefill under 10 % faster")
    return computed(best, n=scene.work.windows, source=f"full steps spend {efficiency:.0%} on prompts, then {gain:.0%}")


def _doubled(evidence: Evidence, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """One step up where every step is full and its parts cannot be told: 2 C take at most twice the seconds of C."""
    budget = step_budget(evidence)
    full = observed(evidence, budget) if budget is not None and surely_missed(known, "slo_attainment_ttft") else None
    if budget is None or full is None:
        return {}
    step, windows = full
    if any(2 * step > limit for limit in _limits(evidence, 1.0).values()):
        return {}
    story = f"every step is full and takes {seconds(step)}: twice the budget takes at most twice that"
    return _pressure_doubled(evidence, step, known) | {
        "next_max_num_batched_tokens": computed(2 * budget, n=windows, source=story),
        "full_step_seconds": computed(step, n=windows, source="windows in which every step is full"),
        "full_step_at_next_budget": computed(None, low=step, high=2 * step, n=windows, source=story),
    }


def _pressure_doubled(evidence: Evidence, step: float, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Demand against what twice the budget serves, at the least: t(2 C) = 2 t(C) - base, and no step is under its base.

    Worked: full steps take 213 ms and the shortest gaps at most 25 ms, so 2 C take at least 401 ms and serve at most
    6 % more; 1.6 times what was served while saturated is then at least 1.5 times.
    """
    gap, pressure = gap_bounds(evidence, SHORTEST), known["demand_over_saturated_rate"].number
    if gap is None or pressure is None:
        return {}
    base = min(gap[1], step)
    gain = 2 * step / (2 * step - base)
    story = (
        f"no step is shorter than the shortest gaps, {seconds(base)}: twice the budget serves at most {gain:.2f} times"
    )
    return {"demand_over_capacity_at_next_budget": computed(None, low=pressure / gain, source=story)}


def _next(target: Fact, scene: Scene) -> Fact:
    """Down in one step, as nothing between may help; up at most fourfold, as the pool pays for it."""
    if target.number is None or target.number <= MOST_RAISE * scene.budget:
        return target
    return computed(MOST_RAISE * scene.budget, n=target.n, source=f"towards {target.number:,.0f}: {target.source}")


def _at_next(scene: Scene, following: Fact, pool: Fact) -> dict[str, Fact]:
    if following.number is None:
        return dict.fromkeys(LATER, unknown("no budget is advised (recommended_max_num_batched_tokens says why)"))
    if following.number == scene.budget:
        return dict.fromkeys(LATER, unknown("the budget stays as it is"))
    budget = int(following.number)
    low, high = scene.work.bounds(scene.decoding, budget)
    story = f"at a budget of {tokens(budget)}"
    ceiling = admitted(budget, scene.prompt, scene.output)
    return {
        "full_step_at_next_budget": computed(scene.full_step(budget), low=low, high=high, source=story),
        "prefill_tokens_per_step_at_next_budget": computed(max(budget - scene.decoding, 0.0), source=story),
        "prefill_efficiency_at_next_budget": _efficiency(scene, budget),
        "budget_ceiling_at_next_budget": computed(max(math.floor(ceiling), 1), source=story),
        "demand_over_capacity_at_next_budget": _or_unknown(scene.pressure(budget), story),
        "ttft_at_next_budget": _or_unknown(scene.ttft(budget), f"a prompt of {scene.long_prompt:,.0f} tokens, {story}"),
        "kv_pool_tokens_at_next_budget": _pool(pool, budget - scene.budget),
    }


def _or_unknown(value: float | None, story: str) -> Fact:
    return (
        unknown("demand is not known, or more than that budget can ever serve")
        if value is None
        else computed(value, source=story)
    )


def _pool(pool: Fact, more: int) -> Fact:
    """The KV pool after the change: each token of budget takes 0.6 to 2 tokens of cache for activations."""
    if pool.number is None:
        return unknown(f"the KV pool is unknown: {pool.unknown}")
    low, high = sorted(max(pool.number - cost * more, 0.0) for cost in POOL_COST)
    story = f"{pool.number:,.0f} reported, {POOL_COST[0]:g} to {POOL_COST[1]:g} tokens of cache a token of budget"
    return Fact(low=low, high=high, source=story, basis="assumed")


def _efficiency(scene: Scene, budget: int) -> Fact:
    value = scene.work.efficiency(scene.decoding, budget)
    return computed(value, n=scene.work.windows, source=f"prompts' share of a full step of {tokens(budget)}")


def _parts(scene: Scene) -> str:
    decoding, prompts = scene.work.decoding(scene.decoding), scene.budget - scene.decoding
    return (
        f"{seconds(decoding)} to decode {scene.decoding:,.0f}, {prompts:,.0f} prompt tokens at "
        f"{scene.work.per_prompt_token * 1e6:.3g} us"
    )
