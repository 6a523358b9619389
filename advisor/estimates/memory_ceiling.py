"""How many sequences fit the KV cache: guaranteed (all at the limit) and expected (as long as they really are).

A slot that is looked at in a random step holds a request with a probability proportional to its residence R, the steps
it needs: s = ceil(I / C) for its prompt and O for its output. Its mean cache and second moment follow by averaging a
linear growth over that residence (length-biased sampling):

    mu = E[s I/2 + O (I + O/2)] / E[R]        m2 = E[s I^2/3 + O (I^2 + I O + O^2/3)] / E[R]        sd^2 = m2 - mu^2

Worked: every request 1,000 in and 200 out with C = 2,048 has s = 1, R = 201, mu = (500 + 200 x 1,100) / 201 = 1,097.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.histogram import Floats, JointCounts
from advisor.domain.policy import Policy

from . import lengths
from .context_limit import present_limit
from .token_budget import step_budget

LEAST_SCRAPES = 500
LEAST_RUNNING = 3
TRIALS = 5_000
LEAST_RISK = 1e-9
MOST_DRAWN = 256
DEFAULT_BUDGET = 2048


@dataclass(frozen=True, slots=True)
class Occupancy:
    """KV tokens that one sequence in service holds, mean and standard deviation, and what told it."""

    mean: float
    sd: float
    n: int
    source: str


def facts(evidence: Evidence, policy: Policy, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Both memory ceilings and the mean cache of a sequence."""
    pool = known["kv_pool_tokens"] if known["kv_pool_tokens"].number else known["kv_pool_tokens_predicted"]
    estimates = [o for o in (from_joint(evidence), from_gauges(evidence, pool)) if o is not None]
    out = {"memory_ceiling_guaranteed": _guaranteed(evidence, pool, known)}
    if pool.number is None:
        out["memory_ceiling_expected"] = unknown(f"the KV pool is unknown: {pool.unknown}")
    elif not estimates:
        out["memory_ceiling_expected"] = _from_means(evidence, pool.number)
    else:
        out["memory_ceiling_expected"] = _expected(evidence, estimates, pool.number, policy.kv_overflow_risk)
    out["kv_tokens_per_sequence"] = _per_sequence(estimates)
    return out


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


def from_gauges(evidence: Evidence, pool: Fact) -> Occupancy | None:
    """Occupancy from running n and cache use y at one scrape: mu = sum y / sum n, sd^2 = mean((y - mu n)^2 / n)."""
    parts = [_pairs(e.samples.running, e.samples.kv_usage) for e in evidence.engines if e.samples.kv_usage is not None]
    if pool.number is None or not parts:
        return None
    n = np.concatenate([p[0] for p in parts])
    y = np.concatenate([p[1] for p in parts]) * pool.number
    if n.size < LEAST_SCRAPES or not n.sum():
        return None
    mean = float(y.sum() / n.sum())
    sd = math.sqrt(float(np.mean((y - mean * n) ** 2 / n)))
    return Occupancy(mean, sd, int(n.size), "running and cache usage at the same scrape") if mean > 0 else None


def normal_ceiling(mean: float, sd: float, pool: float, risk: float) -> int:
    """Largest N with P(sum of N occupancies > pool) <= risk, by the central limit theorem.

    [(-z sd + sqrt(z^2 sd^2 + 4 mean pool)) / (2 mean)]^2: mean 1,232, sd 715, pool 400,000, risk 1 % give 301.
    """
    z = float(ndtri(1 - min(max(risk, LEAST_RISK), 1 - LEAST_RISK)))
    root = (-z * sd + math.sqrt(z * z * sd * sd + 4 * mean * pool)) / (2 * mean)
    return math.floor(root * root + 1e-9)


def simulated_ceiling(joint: JointCounts, budget: int, pool: float, risk: float) -> int:
    """The same by drawing from the joint counts: for few or very unequal sequences, where the normal form fails."""
    random = np.random.default_rng(20260101)
    i, o = joint.prompt.astype(float), joint.output.astype(float)
    s = np.ceil(i / budget)
    weight = joint.counts * (s + o)
    most = max(2, min(MOST_DRAWN, math.ceil(3 * pool / max(float(np.average(i + o / 2, weights=weight)), 1.0))))
    place = random.choice(i.size, size=(TRIALS, most), p=weight / weight.sum())
    age = random.random((TRIALS, most)) * (s + o)[place]
    held = np.where(age < s[place], i[place] * age / np.maximum(s[place], 1), i[place] + age - s[place])
    overflow = (np.cumsum(np.ceil(held), axis=1) > pool).mean(axis=0)
    return int(np.searchsorted(overflow, risk, side="right"))


def _expected(evidence: Evidence, estimates: list[Occupancy], pool: float, risk: float) -> Fact:
    """Of two estimates the lower one is believed: an overfull cache costs more than an idle seat."""
    ceilings = [(_ceiling(evidence, o, pool, risk), o) for o in estimates]
    value, believed = min(ceilings, key=lambda pair: pair[0])
    held = f"{believed.mean:,.0f} +- {believed.sd:,.0f} tokens a sequence ({believed.source})"
    story = f"{risk * 100:g} % overflow risk; {held}"
    story += "".join(f"; {other} from {o.source}" for other, o in ceilings if o is not believed)
    return computed(value, n=believed.n, source=story)


def _ceiling(evidence: Evidence, occupancy: Occupancy, pool: float, risk: float) -> int:
    value = normal_ceiling(occupancy.mean, occupancy.sd, pool, risk)
    joint = _joint(evidence)
    # Hundreds of sequences are normal enough, and more than MOST_DRAWN were never drawn.
    few = value < 30 or (occupancy.sd > occupancy.mean and value < MOST_DRAWN / 2)
    if joint is not None and few:
        budget = step_budget(evidence) or DEFAULT_BUDGET
        return simulated_ceiling(joint, budget, pool, risk)
    return value


def _from_means(evidence: Evidence, pool: float) -> Fact:
    """With mean lengths only: a sequence holds at least I + O/2 on average, so at most pool / that fit for long."""
    prompt, output = lengths.marginals(evidence)
    if prompt is None or output is None or prompt.mean is None or output.mean is None:
        return unknown("needs prompt and output of single requests (--logs), or 500 scrapes of running and cache usage")
    mean = prompt.mean + output.mean / 2
    if mean <= 0:
        return unknown("the length histograms hold no tokens")
    story = f"{pool:,.0f} / {mean:,.0f} tokens, mean lengths taken as independent: more cannot be sustained"
    return Fact(high=math.floor(pool / mean), n=round(prompt.n), source=story, basis="assumed")


def _guaranteed(evidence: Evidence, pool: Fact, known: Mapping[str, Fact]) -> Fact:
    present = present_limit(evidence)
    advised = known["recommended_max_model_len"].number
    if pool.number is None:
        return unknown(f"the KV pool is unknown: {pool.unknown}")
    if advised is not None and (present is None or advised < present):
        limit, name = advised, "recommended_max_model_len"
    elif present is not None:
        limit, name = present, "max_model_len"
    else:
        return unknown("no length limit is known: give --set max_model_len=N or request lengths (--logs)")
    value = math.floor(pool.number / limit)
    return computed(value, source=f"{pool.number:,.0f} tokens of cache / {limit:,.0f} ({name})")


def _per_sequence(estimates: list[Occupancy]) -> Fact:
    if not estimates:
        return unknown("needs prompt and output of single requests (--logs), or 500 scrapes of running and cache usage")
    believed = max(estimates, key=lambda o: o.mean)
    return computed(believed.mean, n=believed.n, source=believed.source)


def _joint(evidence: Evidence) -> JointCounts | None:
    joint = evidence.best_joint
    return joint if joint is not None and joint.n and (joint.prompt + joint.output).any() else None


def _pairs(running: Floats, usage: Floats | None) -> tuple[Floats, Floats]:
    if usage is None:
        return np.empty(0), np.empty(0)
    use = (running >= LEAST_RUNNING) & np.isfinite(usage)
    return running[use], usage[use]
