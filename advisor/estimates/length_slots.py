"""Lengths as a table of time by length: what tests of change and of clustering look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import numpy as np
import numpy.typing as npt

from advisor.domain.histogram import BucketHours, Floats, TokenCounts
from advisor.domain.length_history import LengthHistory, upper_edge

Mask = npt.NDArray[np.bool_]

HOUR_SECONDS = 3600
LONG_SECONDS = 2 * 86_400


@dataclass(frozen=True, eq=False)
class Slots:
    """Requests by slot of time and bin of length.

    start: UNIX seconds at which slots of `seconds` begin, ascending. counts: slots x bins. edges: the largest length of
    each bin, ascending.
    """

    seconds: float
    start: Floats
    counts: Floats
    edges: Floats

    @classmethod
    @lru_cache(maxsize=1)
    def of(cls, history: LengthHistory) -> Slots:
        """The table of a history, from two days on by the hour; the last is kept, as several estimates ask for it."""
        return cls.of_clients(history, np.ones(len(history.clients), np.bool_))

    @classmethod
    def of_clients(cls, history: LengthHistory, clients: Mask) -> Slots:
        """The table of those clients of a history for which the mask holds."""
        if history.start.size and history.start.max() - history.start.min() >= LONG_SECONDS:
            history = history.coarser(HOUR_SECONDS)
        rows = clients[history.client]
        starts, slot = np.unique(history.start[rows], return_inverse=True)
        bins, place = np.unique(history.bin[rows], return_inverse=True)
        counts = np.zeros((starts.size, bins.size))
        np.add.at(counts, (slot, place), history.counts[rows])
        return cls(float(history.seconds), starts.astype(np.float64), counts, upper_edge(bins))

    @classmethod
    def of_hours(cls, hours: Sequence[BucketHours]) -> Slots | None:
        """The table of all engines' histograms, on the edges that they share; None of none.

        What lies beyond the last edge is taken to be twice as long: how long, nobody knows.
        """
        told = [h for h in hours if h.counts.sum() > 0 and h.edges.size]
        if not told:
            return None
        edges = reduce(np.intersect1d, [h.edges for h in told])
        starts = np.unique(np.concatenate([h.start for h in told]))
        cumulative = np.zeros((starts.size, edges.size + 1))
        for one in told:
            row, running = np.searchsorted(starts, one.start), np.cumsum(one.counts, axis=1)
            cumulative[row] += running[:, [*np.searchsorted(one.edges, edges), -1]]
        if not edges.size:
            return None
        counts = np.maximum(np.diff(cumulative, axis=1, prepend=0.0), 0.0)
        return cls(float(HOUR_SECONDS), starts, counts, np.append(edges, 2 * edges[-1]))

    @property
    def n(self) -> int:
        """Number of requests."""
        return int(self.counts.sum())

    @property
    def span_seconds(self) -> float:
        """From the beginning of the first slot to the end of the last."""
        return float(self.start[-1] - self.start[0] + self.seconds) if self.start.size else 0.0

    @cached_property
    def arrived(self) -> Floats:
        """Requests up to and including each slot."""
        return np.asarray(np.cumsum(self.counts.sum(axis=1)))

    def totals(self) -> TokenCounts:
        """All lengths together, each taken for the largest of its bin."""
        return TokenCounts.of(self.edges, np.round(self.counts.sum(axis=0)))

    def where(self, mask: Mask) -> Slots:
        """The slots for which `mask` holds."""
        return Slots(self.seconds, self.start[mask], self.counts[mask], self.edges)

    def split(self, at: float) -> tuple[Slots, Slots]:
        """Before and since a moment, UNIX seconds."""
        return self.where(self.start < at), self.where(self.start >= at)

    def after_share(self, share: float) -> float:
        """When that share (0..1) of requests had come: the start of the slot after, UNIX seconds."""
        place = int(np.searchsorted(self.arrived, share * self.arrived[-1]))
        return float(self.start[min(place + 1, self.start.size - 1)])

    def above(self, level: float) -> Floats:
        """Requests longer than `level`, by slot."""
        return np.asarray(self.counts[:, self.edges > level].sum(axis=1))
