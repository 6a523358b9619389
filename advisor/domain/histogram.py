"""Distributions: exact counts of token lengths, their joint form, and the buckets that an engine exposes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SUM_SLACK = 0.005
"""Of a histogram's sum: it is scraped at the same moment as the buckets, but increases are extrapolated apart."""


@dataclass(frozen=True, eq=False, slots=True)
class TokenCounts:
    """How many requests had which length, exactly. `lengths` ascending and distinct, `counts` positive."""

    lengths: Ints
    counts: Ints

    @classmethod
    def of(cls, lengths: npt.ArrayLike, counts: npt.ArrayLike | None = None) -> TokenCounts:
        """Collect lengths (tokens), each seen once or `counts` times."""
        values = np.asarray(lengths, dtype=np.int64)
        weights = np.ones_like(values) if counts is None else np.asarray(counts, dtype=np.int64)
        distinct, place = np.unique(values, return_inverse=True)
        total = np.bincount(place, weights=weights, minlength=distinct.size).astype(np.int64)
        return cls(distinct[total > 0], total[total > 0])

    @classmethod
    def merge(cls, parts: Iterable[TokenCounts]) -> TokenCounts:
        """The counts of all parts together; exact and independent of their order."""
        listed = list(parts)
        if not listed:
            return cls.of([])
        return cls.of(np.concatenate([p.lengths for p in listed]), np.concatenate([p.counts for p in listed]))

    @property
    def n(self) -> int:
        """Number of requests."""
        return int(self.counts.sum())

    @property
    def largest(self) -> int:
        """The largest length seen; only of a non-empty distribution."""
        return int(self.lengths[-1])

    @property
    def mean(self) -> float:
        """Mean length in tokens; only of a non-empty distribution."""
        return float(np.average(self.lengths, weights=self.counts))

    def at_rank(self, rank: int) -> int:
        """The `rank`-th smallest length, counted from 1."""
        return int(self.lengths[np.searchsorted(np.cumsum(self.counts), rank)])

    def quantile(self, q: float) -> float:
        """The q-quantile, linear between order statistics (numpy's default); only of a non-empty distribution."""
        position = q * (self.n - 1)
        below = int(position)
        low, high = self.at_rank(below + 1), self.at_rank(min(below + 2, self.n))
        return low + (position - below) * (high - low)

    def above(self, length: float) -> int:
        """How many requests were longer than `length`."""
        return int(self.counts[self.lengths > length].sum())


@dataclass(frozen=True, eq=False, slots=True)
class JointCounts:
    """How many requests had which (prompt, output) pair, exactly; three arrays of one length, pairs distinct."""

    prompt: Ints
    output: Ints
    counts: Ints

    @classmethod
    def of(cls, prompt: npt.ArrayLike, output: npt.ArrayLike, counts: npt.ArrayLike | None = None) -> JointCounts:
        """Collect pairs (tokens), each seen once or `counts` times."""
        pairs = np.stack([np.asarray(prompt, np.int64), np.asarray(output, np.int64)])
        weights = np.ones(pairs.shape[1], np.int64) if counts is None else np.asarray(counts, np.int64)
        key = (pairs[0] << 32) | pairs[1]
        distinct, place = np.unique(key, return_inverse=True)
        total = np.bincount(place, weights=weights, minlength=distinct.size).astype(np.int64)
        return cls(distinct >> 32, distinct & 0xFFFFFFFF, total)

    @classmethod
    def merge(cls, parts: Iterable[JointCounts]) -> JointCounts:
        """The counts of all parts together; exact and independent of their order."""
        listed = list(parts)
        if not listed:
            return cls.of([], [])
        return cls.of(*(np.concatenate([getattr(p, f) for p in listed]) for f in ("prompt", "output", "counts")))

    @property
    def n(self) -> int:
        """Number of requests."""
        return int(self.counts.sum())

    def prompts(self) -> TokenCounts:
        """The marginal distribution of prompt tokens."""
        return TokenCounts.of(self.prompt, self.counts)

    def outputs(self) -> TokenCounts:
        """The marginal distribution of output tokens."""
        return TokenCounts.of(self.output, self.counts)

    def totals(self) -> TokenCounts:
        """The distribution of prompt + output tokens of one request."""
        return TokenCounts.of(self.prompt + self.output, self.counts)


@dataclass(frozen=True, eq=False, slots=True)
class Buckets:
    """A Prometheus histogram: `edges` are the finite upper bounds, `counts` has one more entry, for the mass in +Inf.

    `total` is the histogram's `_sum` in the unit of the edges, or None when it was not exposed.
    """

    edges: Floats
    counts: Floats
    total: float | None = None

    @classmethod
    def from_cumulative(cls, edges: npt.ArrayLike, cumulative: npt.ArrayLike, total: float | None = None) -> Buckets:
        """From `le` buckets: finite `edges`, and cumulative counts that end with the one of +Inf."""
        steps = np.diff(np.asarray(cumulative, float), prepend=0.0)
        return cls(np.asarray(edges, float), np.maximum(steps, 0.0), total)

    @property
    def n(self) -> float:
        """Number of observations (a float, because rates and extrapolated increases are)."""
        return float(self.counts.sum())

    @property
    def mean(self) -> float | None:
        """Exact mean from the sum, or None without one or without observations."""
        return self.total / self.n if self.total is not None and self.n > 0 else None

    def quantile_bounds(self, q: float) -> tuple[float, float]:
        """Between which edges the q-quantile lies: (lower, upper); upper is inf when it lies in +Inf."""
        cumulative = np.cumsum(self.counts)
        return self._span(int(np.searchsorted(cumulative, q * cumulative[-1], side="left")))

    def share_within(self, bound: float) -> tuple[float, float]:
        """The least and the greatest share of observations that are at most `bound`; equal where `bound` is an edge.

        Between two edges the sum narrows it: 1,000 observations between 25 and 50 ms with a mean of 33.5 ms are within
        30 ms at most (1,000 x 50 - 33,500) / (50 - 30) = 825 times, and beyond it at most 8,500 / (30 - 25) times.
        """
        within = float(self.counts[:-1][self.edges <= bound * (1 + 1e-9)].sum())
        place = int(np.searchsorted(self.edges, bound * (1 - 1e-9)))
        reach = float(self.counts[: place + 1].sum())
        if self.total is not None and reach > within:
            most_within, most_beyond = self._parted(place, bound)
            within, reach = max(within, reach - most_beyond), min(reach, within + most_within)
        return within / self.n, max(reach, within) / self.n

    def _parted(self, place: int, bound: float) -> tuple[float, float]:
        """Of the bucket at `place`: how many can lie within `bound`, and how many beyond it, at most, by the sum.

        All of them where the sum contradicts the buckets, as after a reset that only one of both shows.
        """
        held = float(self.counts[place])
        low, high = self._span(place)
        least, most = self._left_by_others(place)
        if most < held * low or least > held * high:
            return held, held
        most_within = (held * high - least) / (high - bound) if np.isfinite(high) else held
        most_beyond = (most - held * low) / (bound - low) if bound > low else held
        return float(np.clip(most_within, 0.0, held)), float(np.clip(most_beyond, 0.0, held))

    def _left_by_others(self, place: int) -> tuple[float, float]:
        """The least and the greatest sum that all other buckets leave to the one at `place`."""
        others = [(float(self.counts[k]), *self._span(k)) for k in map(int, np.flatnonzero(self.counts)) if k != place]
        total, slack = self.total or 0.0, SUM_SLACK * (self.total or 0.0)
        least = total - slack - sum(n * high for n, _, high in others)
        return max(least, 0.0), total + slack - sum(n * low for n, low, _ in others)

    def _span(self, place: int) -> tuple[float, float]:
        """Between which values the observations of a bucket lie."""
        low = float(self.edges[place - 1]) if place else 0.0
        return low, float(self.edges[place]) if place < self.edges.size else float("inf")

    @classmethod
    def merge(cls, parts: Iterable[Buckets]) -> Buckets | None:
        """Sum over histograms, on the edges that all share (others are merged upwards, so nothing is invented)."""
        listed = [p for p in parts if p.n > 0]
        if not listed:
            return None
        common = listed[0].edges
        for part in listed[1:]:
            common = np.intersect1d(common, part.edges)
        cumulative = np.zeros(common.size + 1)
        for part in listed:
            running = np.cumsum(part.counts)
            cumulative[:-1] += running[np.searchsorted(part.edges, common)]
            cumulative[-1] += running[-1]
        sums = [p.total for p in listed]
        total = None if any(s is None for s in sums) else float(sum(s for s in sums if s is not None))
        return cls.from_cumulative(common, cumulative, total)


@dataclass(frozen=True, eq=False, slots=True)
class BucketHours:
    """A Prometheus histogram hour by hour: `start` are UNIX seconds of hours, `counts` is hours x (edges + 1)."""

    start: Floats
    edges: Floats
    counts: Floats

    @classmethod
    def of(cls, end: Floats, edges: Floats, counts: Floats) -> BucketHours:
        """From windows that end at these moments (UNIX seconds), each with so many new observations a bucket."""
        hours, place = np.unique(np.ceil(end / 3600) - 1, return_inverse=True)
        summed = np.zeros((hours.size, edges.size + 1))
        np.add.at(summed, place, np.nan_to_num(counts))
        return cls(hours * 3600, edges, summed)
