"""How lengths go with time and with clients: counts in slots of time and in bins of length, bounded in size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .histogram import Floats, Ints, TokenCounts

SLOTS_SECONDS = (300, 900, 3600, 14_400, 86_400)
MOST_ROWS = 1 << 18
MOST_CLIENTS = 16
NOBODY = ""
_BINS_AN_OCTAVE = 16
BIN_RATIO = 2 ** (1 / _BINS_AN_OCTAVE)


def bin_of(lengths: Ints) -> Ints:
    """The bin of each length: sixteen an octave, 4.4 % wide. 1 is in bin 0, 2 in bin 16, 1,024 in bin 160."""
    return np.asarray(np.ceil(_BINS_AN_OCTAVE * np.log2(np.maximum(lengths, 1))), np.int64)


def upper_edge(bins: Ints) -> Floats:
    """The largest length that is in each bin, in tokens."""
    return np.asarray(np.floor(np.exp2(bins / _BINS_AN_OCTAVE) + 1e-6))


@dataclass(frozen=True, eq=False, slots=True)
class LengthHistory:
    """Total tokens of served requests by time of completion and client: parallel arrays, one row a distinct triple.

    seconds: width of a slot. start: UNIX seconds at which a row's slot begins. bin: see `bin_of`. client: place in
    `clients`, whose names are salted hashes; 0 stands for all whom the log does not name or who ask too little to be
    told apart.
    """

    seconds: int
    start: Ints
    client: Ints
    bin: Ints
    counts: Ints
    clients: tuple[str, ...] = (NOBODY,)

    @property
    def n(self) -> int:
        """Number of requests."""
        return int(self.counts.sum())

    def totals(self) -> TokenCounts:
        """All lengths together, each taken for the largest of its bin: up to 4.4 % too long, never too short."""
        return TokenCounts.of(upper_edge(self.bin), self.counts)

    def coarser(self, seconds: int) -> LengthHistory:
        """The same in slots of at least so many seconds, one of SLOTS_SECONDS."""
        if seconds <= self.seconds:
            return self
        return _summed(seconds, self.start // seconds * seconds, self.client, self.bin, self.counts, self.clients)

    def bounded(self, most_rows: int = MOST_ROWS) -> LengthHistory:
        """The 16 clients who ask most keep their names; then slots are widened until the rows are few enough."""
        history = self._of_the_largest_clients()
        for seconds in SLOTS_SECONDS:
            if history.counts.size <= most_rows:
                break
            history = history.coarser(seconds)
        return history

    def _of_the_largest_clients(self) -> LengthHistory:
        asked = np.bincount(self.client, self.counts, minlength=len(self.clients))
        asked[0] = 0
        kept = sorted(np.argsort(asked, kind="stable")[::-1][:MOST_CLIENTS].tolist())
        kept = [place for place in kept if asked[place] > 0]
        if len(kept) == len(self.clients) - 1:
            return self
        place = np.zeros(len(self.clients), np.int64)
        place[kept] = np.arange(1, len(kept) + 1)
        names = NOBODY, *(self.clients[k] for k in kept)
        return _summed(self.seconds, self.start, place[self.client], self.bin, self.counts, names)

    @classmethod
    def merge(cls, parts: Sequence[LengthHistory]) -> LengthHistory | None:
        """All parts together, in slots of the widest of them; None of none."""
        if not parts:
            return None
        seconds = max(part.seconds for part in parts)
        places = {NOBODY: 0}
        for part in parts:
            for name in part.clients:
                places.setdefault(name, len(places))
        client = [np.array([places[name] for name in part.clients])[part.client] for part in parts]
        start, bins, counts = (np.concatenate([getattr(p, name) for p in parts]) for name in ("start", "bin", "counts"))
        start = start // seconds * seconds
        return _summed(seconds, start, np.concatenate(client), bins, counts, tuple(places)).bounded()


def _summed(
    seconds: int, start: Ints, client: Ints, bins: Ints, counts: Ints, clients: tuple[str, ...]
) -> LengthHistory:
    order = np.lexsort((bins, client, start))
    columns = start[order], client[order], bins[order]
    changed = np.ones(order.size, np.bool_)
    if order.size:
        changed[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    first = np.flatnonzero(changed)
    sums = np.add.reduceat(counts[order], first) if first.size else counts
    start, client, bins = (column[first] for column in columns)
    return LengthHistory(seconds, start, client, bins, sums, clients)
