"""How many requests miss their time per token because the prompts of others are computed in their steps.

A step takes d seconds for those who decode and p for every prompt token computed in it, at most the budget. A request
of n gaps keeps a mean gap of t seconds only while at most n (t - d) / p prompt tokens are computed in its steps.
Prompts come at random, so these tokens are a compound Poisson sum; its tail is had by Fourier inversion, tilted against
aliasing (Embrechts and Frei, 2009). Prompts that come while the request's own one is computed wait behind it and count.
Of those that come in its last steps only a part is computed in time: half of the full steps that a miss takes is left
out.

Worked: every prompt 1,000 tokens at 0.1 ms, d = 20 ms, 10 gaps, t = 40 ms: 2,000 tokens fit, so two prompts do and
three do not. Where one is expected, 1 - (1 + 1 + 1/2) / e = 8.0 % miss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import Evidence, as_floats
from advisor.domain.fact import Fact
from advisor.domain.histogram import Buckets, Floats, Ints

from .full_step import FullStep
from .length_change import mean_lengths_now
from .lengths import marginals
from .token_budget import step_budget

CELLS, CELLS_TO_LIMIT, TILT = 1024, 256, 0.02
BY_LIMIT, BY_EXPECTED = 16, 4
PROMPT_BINS, GAP_BINS = 200, 50
LATE = 0.5


@dataclass(frozen=True, eq=False, slots=True)
class SharedSteps:
    """Kinds of requests, what a step costs, and the token budget of a step.

    prompt: tokens to compute; gaps: steps from the first token to the last, 0 where there is only one; share: of all
    requests.
    """

    prompt: Floats
    gaps: Floats
    share: Floats
    work: FullStep
    budget: int

    def missed_beside(self, sequences: float, tpot_seconds: float) -> float:
        """Share that misses the objective while so many seats of one engine are taken: a prompt for every answer."""
        prompt, gaps = float(self.share @ self.prompt), max(float(self.share @ self.gaps), 1.0)
        own = np.ceil(self.prompt / self.budget)
        decoding = sequences / (1 + float(self.share @ own) / gaps)
        decoding = min(decoding, self.budget * gaps / (prompt + gaps))
        limit, late = self._limits(decoding, tpot_seconds)
        return self._share_above(decoding, limit, decoding / gaps * (self.gaps - late + own))

    def missed_at(self, requests_per_second: float, tpot_seconds: float) -> float:
        """Share that misses it where so many a second come to one engine with seats to spare; all under overload."""
        work, rate = self.work, requests_per_second
        prompt, gaps = float(self.share @ self.prompt), float(self.share @ self.gaps)
        idle = 1 - rate * (prompt * work.per_prompt_token + gaps * work.per_sequence)
        if idle <= 0:
            return 1.0
        # Little's law: the decoding ones are rate x gaps x (base + per_sequence x decoding + prompts of a step).
        decoding = rate * gaps * work.base / idle
        limit, late = self._limits(decoding, tpot_seconds)
        alone, room = work.decoding(decoding), max(self.budget - decoding, 1.0)
        own = self.prompt * work.per_prompt_token + np.ceil(self.prompt / room) * alone
        time = self.gaps * tpot_seconds * work.tokens_per_gap - late * (alone + room * work.per_prompt_token)
        return self._share_above(decoding, limit, rate * (np.maximum(time, 0) + own))

    def sequences_within(self, tpot_seconds: float, share: float, most: int) -> int:
        """The most seats, up to `most`, with which `share` of requests meets the objective; 0 where one is too many."""
        low, high = 0, most + 1
        while high - low > 1:
            middle = (low + high) // 2
            holds = self.missed_beside(middle, tpot_seconds) <= 1 - share
            low, high = (middle, high) if holds else (low, middle)
        return low

    def _limits(self, decoding: float, tpot_seconds: float) -> tuple[Floats, Floats]:
        """Prompt tokens that may be computed in a request's steps, and for how many of these prompts come too late."""
        slack = tpot_seconds * self.work.tokens_per_gap - self.work.decoding(decoding)
        limit = self.gaps * slack / self.work.per_prompt_token
        return limit, LATE * np.maximum(limit / max(self.budget - decoding, 1.0), 1.0)

    def _share_above(self, decoding: float, limit: Floats, expected: Floats) -> float:
        """Share of requests in whose steps more than `limit` tokens are computed, with so many prompts expected."""
        several = self.gaps > 0
        surely = several & (limit < 0)
        risky = several & ~surely & (limit < self.gaps * (self.budget - decoding))
        share, limit, expected = _grouped(self.share[risky], limit[risky], np.maximum(expected[risky], 0.0))
        return float(self.share[surely].sum() + share @ exceeded(self.prompt, self.share, expected, limit))


def of(evidence: Evidence, work: FullStep | str, known: Mapping[str, Fact]) -> SharedSteps | None:
    """From a request log, else from length histograms taken as independent; None where a part is not known."""
    budget, kinds = step_budget(evidence), kinds_of_requests(evidence)
    if isinstance(work, str) or budget is None or kinds is None:
        return None
    prompt, output, counts = _as_long_as_now(evidence, *kinds)
    hits = min(max(known["prefix_cache_hit_rate"].number or 0.0, 0.0), 1.0)
    gaps = np.maximum(output - 1, 0.0) / work.tokens_per_gap
    return SharedSteps(*_alike(prompt * (1 - hits), gaps, counts / counts.sum()), work, budget)


def _as_long_as_now(
    evidence: Evidence, prompt: Floats, output: Floats, counts: Floats
) -> tuple[Floats, Floats, Floats]:
    """The same kinds, stretched to the mean lengths of requests since these changed: those told are of the whole time.

    Worked: of 1,000 and 3,000 tokens, one each, with a mean of 4,000 now there are 2,000 and 6,000.
    """
    means = mean_lengths_now(evidence)
    if means is None:
        return prompt, output, counts
    of_all = (float(np.average(lengths, weights=counts)) for lengths in (prompt, output))
    longer = [now / max(told, 1.0) for now, told in zip(means, of_all, strict=True)]
    return prompt * longer[0], output * longer[1], counts


def exceeded(prompt: Floats, share: Floats, expected: Floats, limit: Floats) -> Floats:
    """P(tokens of a Poisson number of prompts > limit), for each expected number and limit."""
    scale = CELLS_TO_LIMIT / np.maximum(limit, 1e-9)
    lengths, weights = _means(_bins(prompt, PROMPT_BINS), share, prompt)
    place = np.minimum(lengths * scale[:, None], CELLS - 2.0)
    cell = place.astype(np.int64)
    above, flat = place - cell, cell + CELLS * np.arange(limit.size)[:, None]
    # Between two cells a prompt is split so that its mean stays: rounded, a short one would be none, or twice itself.
    single = np.bincount(flat.ravel(), (weights * (1 - above)).ravel(), CELLS * limit.size)
    single += np.bincount(flat.ravel() + 1, (weights * above).ravel(), CELLS * limit.size)
    single = single.reshape(-1, CELLS)
    tilt = np.exp(-TILT * np.arange(CELLS))
    total = np.fft.irfft(np.exp(expected[:, None] * (np.fft.rfft(single * tilt) - 1)), CELLS) / tilt
    return as_floats(1 - np.clip(total[:, : CELLS_TO_LIMIT + 1].sum(axis=1), 0.0, 1.0))


def _alike(prompt: Floats, gaps: Floats, share: Floats) -> tuple[Floats, Floats, Floats]:
    """Requests of like lengths together, so that a million of them cost no more than a few thousand."""
    kind = (GAP_BINS + 1) * _bins(prompt, PROMPT_BINS) + _bins(gaps, GAP_BINS)
    means, shares = _means(kind, share, prompt)
    return means, _means(kind, share, gaps)[0], shares


def _bins(lengths: Floats, bins: int) -> Ints:
    """Numbers of bins, in steps of a percentage, up to the one of the longest."""
    longest = max(float(lengths.max(initial=0.0)), 1.0)
    numbers: Ints = np.rint(np.log1p(lengths) * (bins / np.log1p(longest))).astype(np.int64)
    return numbers


def _grouped(share: Floats, limit: Floats, expected: Floats) -> tuple[Floats, Floats, Floats]:
    """Share, limit and expectation of requests that are alike in both, each group at its means."""
    group = BY_EXPECTED * _place(share, limit, BY_LIMIT) + _place(share, expected, BY_EXPECTED)
    limits, shares = _means(group, share, limit)
    return shares, limits, _means(group, share, expected)[0]


def _means(group: Ints, share: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Mean and share of each group that has any."""
    shares, sums = as_floats(np.bincount(group, share)), as_floats(np.bincount(group, share * values))
    return sums[shares > 0] / shares[shares > 0], shares[shares > 0]


def _place(share: Floats, values: Floats, groups: int) -> Ints:
    """In which of so many groups of equal share each value lies."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(values.size)
    rank[order] = np.cumsum(share[order]) - share[order] / 2
    return (rank / max(float(share.sum()), 1e-12) * groups).astype(np.int64)


def kinds_of_requests(evidence: Evidence) -> tuple[Floats, Floats, Floats] | None:
    """Prompt tokens, output tokens and number of requests of each kind; None where lengths are not known."""
    joint = evidence.best_joint
    if joint is not None and joint.n:
        return as_floats(joint.prompt), as_floats(joint.output), as_floats(joint.counts)
    prompts, outputs = (_points(buckets) for buckets in marginals(evidence))
    if prompts is None or outputs is None:
        return None
    prompt, output = (grid.ravel() for grid in np.meshgrid(prompts[0], outputs[0], indexing="ij"))
    return prompt, output, np.outer(prompts[1], outputs[1]).ravel()


def _points(buckets: Buckets | None) -> tuple[Floats, Floats] | None:
    """Two lengths for each bucket, between its edges where they make the mean the measured one."""
    if buckets is None or buckets.mean is None or not buckets.edges.size:
        return None
    lower, upper = np.concatenate([[0.0], buckets.edges]), np.concatenate([buckets.edges, buckets.edges[-1:]])
    least, most = (float(np.average(edges, weights=buckets.counts)) for edges in (lower, upper))
    part = min(max((buckets.mean - least) / (most - least), 0.0), 1.0) if most > least else 1.0
    aside, used = min(part, 1 - part) / 2, buckets.counts > 0
    places = [(lower + (part + side) * (upper - lower))[used] for side in (-aside, aside)]
    return np.concatenate(places), np.tile(buckets.counts[used] / 2, 2)
