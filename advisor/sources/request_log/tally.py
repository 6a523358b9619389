"""What the requests of one deployment add up to, in memory that grows with distinct lengths, not with requests."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from advisor.domain.evidence import LatencySample, RequestLog, Window
from advisor.domain.histogram import Floats, Ints, TokenCounts

from .batch import FAILED, REFUSED, SERVED, WITHOUT_USAGE, Batch
from .clients import Clients
from .history import History
from .pairs import Pairs

SLOT_SECONDS = 300
MAX_DURATION_SECONDS = 86_400.0


def known_durations(batch: Batch) -> Floats:
    """Seconds from arrival to completion; 0 where the log has none or one that cannot be (negative, over a day)."""
    known = (batch.duration > 0) & (batch.duration <= MAX_DURATION_SECONDS)
    return np.where(known, batch.duration, 0.0)


class Tally:
    """Adds up batches of one deployment's requests."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._pairs, self._history = Pairs(), History()
        self._declared, self._needs, self._cut = TokenCounts.of([]), TokenCounts.of([]), TokenCounts.of([])
        self._outcomes: Counter[int] = Counter()
        self._arrivals: Counter[int] = Counter()
        self._first, self._last = math.inf, -math.inf

    def add(self, batch: Batch, window: Window) -> None:
        """Add requests, at least one."""
        self._outcomes.update(dict(enumerate(np.bincount(batch.outcome).tolist())))
        self._first = min(self._first, float(batch.completed.min()))
        self._last = max(self._last, float(batch.completed.max()))
        served = batch.where(batch.outcome == SERVED)
        prompt, output = served.prompt, served.output
        self._pairs.add(prompt, output)
        self._history.add(served.completed, prompt + output, served.client, self._clients.hashes)
        declared = served.declared >= 0
        self._declared = _plus(self._declared, prompt[declared] + served.declared[declared])
        self._cut = _plus(self._cut, (prompt + output)[served.cut])
        self._needs = _plus(self._needs, batch.needed[batch.needed >= 0])
        self._add_arrivals(batch, window)

    def _add_arrivals(self, batch: Batch, window: Window) -> None:
        arrival = batch.completed - known_durations(batch)
        # Of what arrived before the window only the slowest are in the log: that is no rate.
        slots = (arrival[arrival >= window.start] // SLOT_SECONDS).astype(np.int64)
        first = int(window.start // SLOT_SECONDS)
        counts = np.bincount(slots - first)
        for slot in np.flatnonzero(counts).tolist():
            self._arrivals[(first + slot) * SLOT_SECONDS] += int(counts[slot])

    def log(self, *, replaced_failures: int, latency: LatencySample | None, source: str) -> RequestLog:
        """The sum. `replaced_failures` are failed attempts that a later line of the same request made good."""
        return RequestLog(
            served=self._pairs.joint(),
            declared=self._declared,
            refused_needs=self._needs,
            cut=self._cut,
            refused=self._outcomes[REFUSED],
            failed=self._outcomes[FAILED] - replaced_failures,
            without_usage=self._outcomes[WITHOUT_USAGE],
            first_seconds=self._first,
            last_seconds=self._last,
            arrivals=dict(sorted(self._arrivals.items())),
            latency=latency,
            source=source,
            history=self._history.lengths(self._clients.hashes),
        )


def _plus(counts: TokenCounts, lengths: Ints) -> TokenCounts:
    return TokenCounts.merge([counts, TokenCounts.of(lengths)]) if lengths.size else counts
