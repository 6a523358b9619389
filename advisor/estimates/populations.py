"""Two populations on one deployment, many short requests and few long ones, and what a pool for each would save.

Where both share a replica, its seats must leave room for the chance that several long ones meet: the cap for the mix is
far below what the mean would allow. Apart, each pool holds what its own spread allows at the same overflow risk. With S
sequences demanded, a share a of them short, and expected memory ceilings N of the mix and of each pool (none above the
latency ceiling):

    together = ceil(S / N)    apart = ceil(a S / N_short) + ceil((1 - a) S / N_long)    gain = 1 - apart / together

Worked: S = 90 and a = 0.9 with ceilings of 12, 60 and 3 need 8 replicas together and 2 + 3 apart: a gain of 37.5 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.histogram import Floats, JointCounts
from advisor.domain.length_history import BIN_RATIO
from advisor.domain.policy import Policy

from . import memory_ceiling
from .context_limit import round_up
from .length_sample import TELL_PAIRS
from .token_budget import step_budget

MOST_LONG = 0.25
LEAST_LONG_KV = 0.4
LEAST_APART = 8.0
VALLEY = 1.25
MOST_IN_VALLEY = 0.1
LEAST_LONG_REQUESTS = 100
FACTS = (
    "split_cut_tokens",
    "split_long_share",
    "split_long_kv_share",
    "split_short_ceiling",
    "split_long_ceiling",
    "split_short_replicas",
    "split_long_replicas",
    "split_gain",
)


@dataclass(frozen=True, eq=False, slots=True)
class Cut:
    """Where requests part, by total tokens, and the long ones' share of requests, of cache and of seats."""

    tokens: int
    long_share: float
    long_kv_share: float
    long_seats_share: float
    short: JointCounts
    long: JointCounts


def cut_of(evidence: Evidence) -> Cut | None:
    """The cut between two populations of the logged or given requests; None where there is one, or no requests."""
    joint = evidence.best_joint
    if joint is None or not joint.n:
        return None
    return populations(joint, step_budget(evidence) or memory_ceiling.DEFAULT_BUDGET)


def facts(evidence: Evidence, policy: Policy, cut: Cut | None, known: Mapping[str, Fact]) -> Mapping[str, Fact]:
    """Whether there are two populations, and the pools that they would need."""
    joint = evidence.best_joint
    if joint is None or not joint.n:
        return dict.fromkeys(FACTS, unknown(f"needs prompt and output of single requests: {TELL_PAIRS}"))
    if cut is None:
        alone = "one population: no gap in the lengths with few requests and much of the cache beyond it"
        return dict.fromkeys(FACTS, unknown(alone)) | {"split_gain": computed(0.0, n=joint.n, source=alone)}
    story = f"of {joint.n:,} requests, those of more than {cut.tokens:,} tokens"
    found = {
        "split_cut_tokens": computed(round_up(cut.tokens), n=joint.n, source=f"the gap in the lengths {story}"),
        "split_long_share": computed(cut.long_share, n=joint.n, source=story),
        "split_long_kv_share": computed(cut.long_kv_share, n=joint.n, source=f"tokens of cache x time, {story}"),
    }
    return found | _pools(evidence, policy, known, cut)


def populations(joint: JointCounts, budget: int) -> Cut | None:
    """The cut in the middle of the emptiest gap of total tokens beyond which few requests hold much of the cache.

    None where there is no such gap.

    Few: at most a quarter of requests, a hundred at least. Much: 40 % of tokens x time, each with eight times the cache
    of a short one. A gap: within 25 % of the cut lie at most a tenth as many requests as beyond it.
    """
    order = np.argsort(joint.prompt + joint.output, kind="stable")
    i, o, w = (getattr(joint, name)[order].astype(np.float64) for name in ("prompt", "output", "counts"))
    prefill = np.ceil(i / budget)
    seats, cache = np.cumsum(w * (prefill + o)), np.cumsum(w * (prefill * i / 2 + o * (i + o / 2)))
    total, arrived = i + o, np.cumsum(w)
    cuts = _candidates(total, arrived)
    place = np.searchsorted(total, cuts, side="right") - 1
    beyond = arrived[-1] - arrived[place]
    near = _at(arrived, total, cuts * VALLEY) - _at(arrived, total, cuts / VALLEY)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = (cache[-1] - cache[place]) / (seats[-1] - seats[place]) / (cache[place] / seats[place])
        fits = (
            (beyond >= LEAST_LONG_REQUESTS)
            & (beyond <= MOST_LONG * arrived[-1])
            & (cache[-1] - cache[place] >= LEAST_LONG_KV * cache[-1])
            & (apart >= LEAST_APART)
            & (near <= MOST_IN_VALLEY * beyond)
        )
    if not fits.any():
        return None
    emptiest = np.flatnonzero(fits & (near == near[fits].min()))
    best = int(emptiest[emptiest.size // 2])
    at = int(place[best])
    long = np.isin(np.arange(order.size), order[at + 1 :])
    return Cut(
        tokens=int(cuts[best]),
        long_share=float(beyond[best] / arrived[-1]),
        long_kv_share=float(1 - cache[at] / cache[-1]),
        long_seats_share=float(1 - seats[at] / seats[-1]),
        short=_where(joint, ~long),
        long=_where(joint, long),
    )


def _candidates(total: Floats, arrived: Floats) -> Floats:
    """Lengths between which to look, 4.4 % apart, from where a quarter at most lies beyond."""
    low = max(float(total[np.searchsorted(arrived, (1 - MOST_LONG) * arrived[-1])]), 1.0)
    steps = math.ceil(math.log(max(float(total[-1]), low) / low) / math.log(BIN_RATIO))
    return np.asarray(low * BIN_RATIO ** np.arange(steps + 1))


def _at(arrived: Floats, total: Floats, lengths: Floats) -> Floats:
    """Requests of at most these lengths."""
    return np.asarray(np.concatenate([[0.0], arrived])[np.searchsorted(total, lengths, side="right")])


def _where(joint: JointCounts, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> JointCounts:
    return JointCounts(joint.prompt[mask], joint.output[mask], joint.counts[mask])


def _pools(evidence: Evidence, policy: Policy, known: Mapping[str, Fact], cut: Cut) -> dict[str, Fact]:
    names = FACTS[FACTS.index("split_short_ceiling") :]
    joint = evidence.best_joint
    parts = [_ceiling(evidence, policy, known, part) for part in (joint, cut.short, cut.long)]
    together, short, long = (part.number for part in parts)
    if not together or not short or not long:
        why = next((p.unknown for p in parts if p.unknown), None) or "not one of the long requests fits the cache"
        return dict.fromkeys(names, unknown(f"the seats of each pool cannot be told: {why}"))
    found = {
        "split_short_ceiling": computed(short, source=f"{parts[1].source}; {cut.tokens:,} tokens and less"),
        "split_long_ceiling": computed(long, source=f"{parts[2].source}; more than {cut.tokens:,} tokens"),
    }
    seats, why = _demanded(known)
    if seats is None:
        return found | dict.fromkeys(names[2:], unknown(why))
    of_short = math.ceil(seats * (1 - cut.long_seats_share) / short)
    of_long = math.ceil(seats * cut.long_seats_share / long)
    all_together = math.ceil(seats / together)
    story = f"{seats:,.0f} sequences demanded, {cut.long_seats_share:.1%} of them long ({why})"
    gain = 1 - (of_short + of_long) / all_together
    compared = f"{of_short} + {of_long} replicas apart against {all_together} together, {together:,.0f} sequences each"
    return found | {
        "split_short_replicas": computed(of_short, source=f"{story}, {short:,.0f} a replica"),
        "split_long_replicas": computed(of_long, source=f"{story}, {long:,.0f} a replica"),
        "split_gain": computed(gain, source=f"{compared}; {story}"),
    }


def _ceiling(evidence: Evidence, policy: Policy, known: Mapping[str, Fact], joint: JointCounts | None) -> Fact:
    """Sequences of such lengths that one replica holds at the accepted risk, within the latency ceiling."""
    alone = replace(evidence, log=None, joint=joint, engines=())
    memory = memory_ceiling.facts(alone, policy, known)["memory_ceiling_expected"]
    latency = known["latency_ceiling"].number
    if memory.number is None or latency is None or latency >= memory.number:
        return memory
    return computed(latency, source="the latency ceiling")


def _demanded(known: Mapping[str, Fact]) -> tuple[float | None, str]:
    """Sequences in service that demand asks of all replicas together, and what told it; or why nobody can."""
    replicas, each = known["replicas"].number, known["sequences_demanded"].number
    if replicas is None or replicas < 2:
        return None, "a deployment of one replica cannot be split"
    if each is None:
        return None, f"the demand is not known: {known['sequences_demanded'].unknown or 'only bounds of it'}"
    return each * replicas, "Little's law"
