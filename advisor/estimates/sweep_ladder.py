"""The sweep to run: which concurrencies, how many requests at each, and how long those are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact
from advisor.domain.histogram import Buckets, Floats, Ints, JointCounts

from .length_sample import TELL_PAIRS
from .load import engines_per_instance, sequence_cap
from .log_origin import believed

LEVELS = 6
LEAST_REQUESTS, MOST_REQUESTS = 200, 4_000
REQUESTS_PER_STREAM = 10
MOST_PROMPT_TOKENS = 8_000_000
TEMPLATE_TOKENS = 8
DEFAULT_TOP = 128


@dataclass(frozen=True, eq=False, slots=True)
class Level:
    """One load level: requests in flight at one address, and (prompt, output) tokens of every request that it sends."""

    concurrency: int
    prompt: Ints
    output: Ints


@dataclass(frozen=True, slots=True)
class Ladder:
    """The levels by rising concurrency; where the lengths come from; why the concurrencies are these.

    seats: the max_num_seqs that the tested engine needs for the highest level; None while today's is not known.
    """

    levels: tuple[Level, ...]
    lengths: str
    reason: str
    seats: int | None


def ladder(evidence: Evidence, facts: Mapping[str, Fact]) -> Ladder | str:
    """The sweep that brackets the latency ceiling with the deployment's own lengths, or why there is none.

    A level sends ten requests a stream, so that the ramps at both ends are a tenth of it, and at least 200: with fewer
    a p99 is hardly more than the slowest request. The lengths are drawn at even steps through the distribution, so that
    every level has its tail. Prompt and output are kept within the length limit.
    """
    drawn = _source(believed(evidence, facts))
    if isinstance(drawn, str):
        return drawn
    joint, lengths = drawn
    low, high, reason = _span(evidence, facts)
    counts, engines, cap = _geometric(low, high), engines_per_instance(evidence), sequence_cap(evidence)
    limit = evidence.count_flag("max_model_len")
    levels = tuple(_level(joint, round(n * engines), limit, seed) for seed, n in enumerate(counts))
    return Ladder(levels, lengths, reason, None if cap is None else max(cap, counts[-1]))


def _span(evidence: Evidence, facts: Mapping[str, Fact]) -> tuple[float, float, str]:
    """(lowest, highest, why): around what is known of the latency ceiling, else around what was observed."""
    ceiling, cap = facts["latency_ceiling"], sequence_cap(evidence)
    passes, fails = ceiling.floor or None, ceiling.high
    if passes is not None and fails is not None:
        return passes / 2, fails * 1.5, f"the latency ceiling lies between {passes:,.0f} and {fails:,.0f}"
    if fails is not None:
        return max(fails / 16, 1), fails, f"the objective fails at {fails:,.0f} already"
    memory = facts["memory_ceiling_expected"].number or facts["memory_ceiling_guaranteed"].number
    room = memory if memory is not None and memory >= 2 else math.inf
    if passes is not None:
        return (
            passes / 1.5,
            max(min(4 * passes, room), 1.5 * passes),
            f"the objective held at {passes:,.0f}, the most seen",
        )
    seen = facts["running_p95"].number or facts["running_max"].number
    if seen is not None and seen >= 1:
        return max(seen / 4, 1), max(min(4 * seen, room), seen, 8), f"{seen:,.0f} run together now"
    top = min(room, 2 * cap if cap else DEFAULT_TOP)
    return max(top / 32, 1), max(top, 8), "nothing was observed yet"


def _geometric(low: float, high: float) -> list[int]:
    """Six whole steps of equal ratio: from 8 to 96 they are 8, 13, 22, 35, 58, 96."""
    low = max(low, 1.0)
    return sorted({max(round(level), 1) for level in np.geomspace(low, max(high, 2 * low), LEVELS)})


def _level(joint: JointCounts, concurrency: int, limit: int | None, seed: int) -> Level:
    wanted = min(max(LEAST_REQUESTS, REQUESTS_PER_STREAM * concurrency), MOST_REQUESTS)
    mean = float(np.average(joint.prompt, weights=joint.counts)) if joint.n else 1.0
    requests = max(min(wanted, int(MOST_PROMPT_TOKENS / max(mean, 1.0))), concurrency)
    prompt, output = _drawn(joint, requests, seed)
    if limit is not None:
        output = np.minimum(output, max(limit - TEMPLATE_TOKENS - 1, 1))
        prompt = np.minimum(prompt, limit - TEMPLATE_TOKENS - output)
    return Level(concurrency, np.maximum(prompt, 1), np.maximum(output, 1))


def _drawn(joint: JointCounts, requests: int, seed: int) -> tuple[Ints, Ints]:
    """Requests at even steps through the distribution by total length, shuffled; another offset for every seed."""
    random = np.random.default_rng(seed)
    order = np.lexsort((joint.output, joint.prompt + joint.output))
    reach = np.cumsum(joint.counts[order])
    places = (np.arange(requests) + random.uniform()) / requests * reach[-1]
    picked = order[np.searchsorted(reach, places, side="right")]
    random.shuffle(picked)
    return joint.prompt[picked], joint.output[picked]


def _source(evidence: Evidence) -> tuple[JointCounts, str] | str:
    """Lengths to draw from and what they are, or what is missing."""
    joint = evidence.best_joint
    if joint is not None and joint.n:
        told = evidence.log.source if evidence.log and evidence.log.served.n else "requests as stated"
        return joint, f"{told}: prompt and output of {joint.n:,} requests together"
    merged = [Buckets.merge([e.lengths[kind] for e in evidence.engines if kind in e.lengths]) for kind in _KINDS]
    prompt, output = merged
    if prompt is None or output is None:
        return (
            f"no lengths of requests are known: give {TELL_PAIRS}, engine metrics (--prometheus), or an "
            "evidence file with requests: {joint: [[prompt, output, count], ...]}"
        )
    pairs = np.random.default_rng(0).permutation(MOST_REQUESTS)
    lengths = JointCounts.of(_within(prompt), _within(output)[pairs])
    return lengths, "engine histograms: prompt and output drawn apart, as only a request log knows which go together"


_KINDS = ("prompt_tokens", "output_tokens")


def _within(buckets: Buckets) -> Floats:
    """Lengths at even steps through a histogram, linear within a bucket; beyond the last edge, that edge."""
    edges = np.concatenate(([0.0], buckets.edges, buckets.edges[-1:]))
    shares = (np.arange(MOST_REQUESTS) + 0.5) / MOST_REQUESTS
    return np.maximum(
        np.ceil(np.interp(shares, np.concatenate(([0.0], np.cumsum(buckets.counts))) / buckets.n, edges)), 1
    )
