"""How many sequences fit the KV cache: guaranteed (all at the limit) and expected (as long as they really are).

The expected ceiling is the largest N whose preempted share keeps the promise (`kv_overflow_risk`); see overflow.py. It
never exceeds pool / mu: from there on it is the cache that decides who runs, and more seats stay empty.
What one sequence takes comes from its lengths, averaged over its residence of s = ceil(I / C) and O steps,

    mu = E[s I/2 + O (I + O/2)] / E[R]        m2 = E[s I^2/3 + O (I^2 + I O + O^2/3)] / E[R]        sd^2 = m2 - mu^2

and from gauges (gauge_occupancy.py); both are kept, and where they are apart the one that is believed says why.

Worked: every request 1,000 in and 200 out with C = 2,048 has s = 1, R = 201, mu = (500 + 200 x 1,100) / 201 = 1,097.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.histogram import JointCounts
from advisor.domain.policy import Policy

from . import kv_cache, lengths, reservation
from .context_limit import present_limit
from .gauge_occupancy import from_gauges
from .kv.layouts import shares_blocks
from .length_sample import TELL_LENGTHS, TELL_PAIRS
from .overflow import MOST_FOLDED, MOST_OVERFULL, Growth, Promise, folded_ceiling, gamma_ceiling
from .readmission import readmission
from .reservation import GAUGES, Occupancy
from .token_budget import mean_work, step_budget

DEFAULT_BUDGET = 2048
BATCH_RISK = 0.1
APART = 0.2
OVERDISPERSED = 2.0
NO_OCCUPANCY = f"needs prompt and output of single requests ({TELL_PAIRS}), or 500 scrapes of running and cache usage"


@dataclass(frozen=True, slots=True)
class Room:
    """The cache to fill, the promise to keep while filling it, and how the engine takes back what it preempted."""

    tokens: float
    promise: Promise
    joint: JointCounts | None
    budget: int
    block: int
    admission: str | None


def facts(evidence: Evidence, policy: Policy, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Both memory ceilings and the mean cache of a sequence."""
    pool, mixed = _pool(known), shares_blocks(evidence)
    estimates = _occupancies(evidence, pool)
    out = {"memory_ceiling_guaranteed": _guaranteed(evidence, pool, known)}
    if pool.number is None:
        out["memory_ceiling_expected"] = unknown(_no_pool(pool))
    elif mixed and not estimates:
        out["memory_ceiling_expected"] = unknown(
            "its layers keep windows or states, so lengths do not tell what a sequence holds: "
            "needs 500 scrapes of running and cache usage"
        )
    elif not estimates:
        out["memory_ceiling_expected"] = _from_means(evidence, pool.number)
    else:
        out["memory_ceiling_expected"] = _expected(estimates, _room(evidence, policy, pool.number, known))
    out["kv_tokens_per_sequence"] = _per_sequence(estimates)
    return out


def expected_in(evidence: Evidence, policy: Policy, known: Mapping[str, Fact], tokens: float) -> Fact:
    """The expected ceiling of a pool of so many tokens, were sequences to hold what they hold in the present one."""
    estimates = _occupancies(evidence, _pool(known))
    if not estimates:
        return unknown(NO_OCCUPANCY)
    return _expected(estimates, _room(evidence, policy, tokens, known))


def accepted_risk(evidence: Evidence, policy: Policy) -> float:
    """Share of requests that may be preempted: in batch work that costs throughput only, so one in ten is accepted."""
    return max(policy.kv_overflow_risk, BATCH_RISK) if evidence.workload == "batch" else policy.kv_overflow_risk


def from_joint(evidence: Evidence) -> Occupancy | None:
    """Occupancy from the joint (prompt, output) counts, or None without them."""
    joint = _joint(evidence)
    if joint is None:
        return None
    budget = step_budget(evidence) or DEFAULT_BUDGET
    block = evidence.count_flag("block_size") or 1
    i, o, w = joint.prompt.astype(float), joint.output.astype(float), joint.counts / joint.n
    s = np.ceil(i / budget)
    residence = float(np.sum(w * (s + o)))
    if residence <= 0:
        return None
    mean = float(np.sum(w * (s * i / 2 + o * (i + o / 2)))) / residence
    second = float(np.sum(w * (s * i**2 / 3 + o * (i**2 + i * o + o**2 / 3)))) / residence
    sd = math.sqrt(max(second - mean**2, 0.0))
    return Occupancy(mean + (block - 1) / 2, sd, joint.n, "prompt and output of each logged request")


def _pool(known: Mapping[str, Fact]) -> Fact:
    return known["kv_pool_tokens"] if known["kv_pool_tokens"].number else known["kv_pool_tokens_predicted"]


def _occupancies(evidence: Evidence, pool: Fact) -> list[Occupancy]:
    """What a sequence holds, as admission counts it: from lengths where these tell it, and from gauges."""
    from_lengths = None if shares_blocks(evidence) else from_joint(evidence)
    told = [o for o in (from_lengths, from_gauges(evidence, pool)) if o is not None]
    return reservation.as_admitted(evidence, told)


def _room(evidence: Evidence, policy: Policy, pool: float, known: Mapping[str, Fact]) -> Room:
    joint = None if shares_blocks(evidence) else _joint(evidence)
    budget, kept_free = step_budget(evidence) or DEFAULT_BUDGET, evidence.flag("watermark")
    share = kept_free if isinstance(kept_free, float) and 0 <= kept_free < 1 else 0.0
    block, accepted = evidence.count_flag("block_size") or 1, accepted_risk(evidence, policy)
    growth = _growth(evidence, known)
    if growth is None:
        return Room(pool * (1 - share), Promise(accepted), joint, budget, block, None)
    back = readmission(evidence, known, growth, budget)
    promise = Promise(accepted, back.growth, MOST_OVERFULL if back.known else accepted)
    return Room(pool * (1 - share), promise, joint, budget, block, back.why)


def _growth(evidence: Evidence, known: Mapping[str, Fact]) -> Growth | None:
    """From the prompt tokens that are computed: what hits the prefix cache may be shared, and no victim frees that."""
    means, joint = mean_work(evidence, known), _joint(evidence)
    if means is None or not any(means):
        return None
    return Growth(*means, prompts=None if joint is None else joint.prompts())


def _expected(estimates: list[Occupancy], room: Room) -> Fact:
    """The believed estimate's ceiling; what parts the two is in the source, and the other one is kept beside it."""
    ceilings = [(_ceiling(o, room), o) for o in estimates]
    value, believed, why = _believed(ceilings)
    free = room.tokens - believed.shared
    story = [f"{room.promise.share * 100:g} % preempted at most; {_held(believed)}"]
    story += [f"{other} from {o.source}" for other, o in ceilings if o is not believed]
    if (value + 1) * believed.mean > free:
        story.append("more would not find room on average, and seats stay empty")
    story += [part for part in (why, room.admission) if part]
    bound = _synchronised(estimates, room)
    if bound is not None and bound < value:
        value, note = bound, "requests that start together are long together: all of them at E[I] + Q90(O)"
        story.append(note)
    if value < 1:
        return unknown(f"not one fits {free:,.0f} tokens of cache: {_held(believed)}; is the pool of these engines?")
    told = computed(value, n=believed.n, source="; ".join(story))
    for other, occupancy in ceilings:
        if occupancy is not believed:
            told = told.instead_of(computed(other, n=occupancy.n, source=_held(occupancy)))
    return told


def _held(occupancy: Occupancy) -> str:
    once = f", {occupancy.shared:,.0f} shared by all" if occupancy.shared else ""
    return f"{occupancy.mean:,.0f} +- {occupancy.sd:,.0f} tokens a sequence ({occupancy.source}){once}"


def _believed(ceilings: list[tuple[int, Occupancy]]) -> tuple[int, Occupancy, str | None]:
    """Of two estimates the lower one, as an overfull cache costs more than an idle seat; unless a prefix is shared."""
    low, high = min(ceilings, key=lambda pair: pair[0]), max(ceilings, key=lambda pair: pair[0])
    if high[0] <= (1 + APART) * low[0]:
        return *low, None
    if high[1].shared:
        return *high, "lengths count the prefix that is shared once for each, so the gauges are believed"
    if low[1].source.startswith(GAUGES):
        return *low, "sequences hold more than their lengths say: lengths changed, or something else holds cache"
    return *low, "sequences hold less than their lengths say: lengths changed, or the log is not of these engines alone"


def _ceiling(occupancy: Occupancy, room: Room) -> int:
    free = room.tokens - occupancy.shared
    promise = replace(room.promise, growth=None) if occupancy.reserved else room.promise
    value = gamma_ceiling(occupancy.mean, occupancy.sd, free, promise)
    drawn = room.joint if occupancy.source != GAUGES and not occupancy.reserved else None
    # The sum of hundreds of sequences has hardly any tail.
    if drawn is None or value >= MOST_FOLDED:
        return value
    return folded_ceiling(drawn, room.budget, free, promise, block=room.block)


def _synchronised(estimates: list[Occupancy], room: Room) -> int | None:
    """Pool / (E[I] + Q90(O)), where the cache varies twice as much as independent requests make it vary."""
    told = {o.source == GAUGES: o for o in estimates}
    if len(told) < 2 or room.joint is None or told[True].sd ** 2 <= OVERDISPERSED * told[False].sd ** 2:
        return None
    longest = room.joint.prompts().mean + room.joint.outputs().quantile(0.9)
    return math.floor((room.tokens - told[True].shared) / longest)


def _from_means(evidence: Evidence, pool: float) -> Fact:
    """With mean lengths only: a sequence holds at least I + O/2 on average, so at most pool / that fit for long."""
    prompt, output = lengths.marginals(evidence)
    if prompt is None or output is None or prompt.mean is None or output.mean is None:
        return unknown(NO_OCCUPANCY)
    mean = prompt.mean + output.mean / 2
    if mean <= 0:
        return unknown("the length histograms hold no tokens")
    story = f"{pool:,.0f} / {mean:,.0f} tokens, mean lengths taken as independent: more cannot be sustained"
    return Fact(high=math.floor(pool / mean), n=round(prompt.n), source=story, basis="assumed")


def _guaranteed(evidence: Evidence, pool: Fact, known: Mapping[str, Fact]) -> Fact:
    present = present_limit(evidence)
    advised = known["recommended_max_model_len"].number
    if pool.number is None and pool.low is None:
        return unknown(_no_pool(pool))
    if advised is not None and (present is None or advised < present):
        limit, name = advised, "recommended_max_model_len"
    elif present is not None:
        limit, name = present, "max_model_len"
    else:
        return unknown(f"no length limit is known: give --set max_model_len=N, or {TELL_LENGTHS}")
    printed = evidence.reported_pool.max_concurrency if evidence.reported_pool else None
    if printed is not None and limit == present:
        return computed(math.floor(printed), source=f"{printed:g} x {limit:,.0f} tokens, as the engine prints")
    if shares_blocks(evidence):
        return kv_cache.sequences_of_length(evidence, limit)
    if pool.number is None:
        low, high = (None if bound is None else math.floor(bound / limit) for bound in (pool.low, pool.high))
        return computed(None, low=low, high=high, source=f"{pool.source}, by {limit:,.0f} tokens ({name})")
    value = math.floor(pool.number / limit)
    return computed(value, source=f"{pool.number:,.0f} tokens of cache / {limit:,.0f} ({name})")


def _no_pool(pool: Fact) -> str:
    return f"the KV pool is unknown: {pool.unknown or 'it is only known to lie between bounds'}"


def _per_sequence(estimates: list[Occupancy]) -> Fact:
    if not estimates:
        return unknown(NO_OCCUPANCY)
    believed = max(estimates, key=lambda o: o.mean)
    return computed(believed.mean, n=believed.n, source=believed.source)


def _joint(evidence: Evidence) -> JointCounts | None:
    joint = evidence.best_joint
    return joint if joint is not None and joint.n and (joint.prompt + joint.output).any() else None
