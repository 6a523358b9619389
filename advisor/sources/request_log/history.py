"""Lengths by time and client, added up as batches come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.domain.histogram import Floats, Ints
from advisor.domain.length_history import MOST_ROWS, SLOTS_SECONDS, LengthHistory, bin_of

_BIN_BITS, _CLIENT_BITS = 10, 17
_ROOM = 4


class History:
    """Counts of (slot, client, bin), one number a triple."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Ints]] = []
        self._folded: LengthHistory | None = None
        self._rows = 0

    def add(
        self, completed: Floats, total: Ints, client: Ints, names: Sequence[str], counts: Ints | None = None
    ) -> None:
        """Add requests: UNIX seconds of completion, tokens, and the number of the client among `names`.

        counts: how many each of them stands for, one unless given.
        """
        slot = (completed // SLOTS_SECONDS[0]).astype(np.int64)
        keys, place = np.unique((slot << _CLIENT_BITS | client) << _BIN_BITS | bin_of(total), return_inverse=True)
        self._parts.append((keys, np.bincount(place, counts, keys.size).astype(np.int64)))
        self._rows += keys.size
        if self._rows > _ROOM * MOST_ROWS:
            self._folded, self._rows = self.lengths(names), 0
            self._parts.clear()

    def lengths(self, names: Sequence[str]) -> LengthHistory | None:
        """The sum; None of nothing."""
        fresh = [_history(keys, counts, tuple(names)) for keys, counts in self._parts]
        return LengthHistory.merge([*([self._folded] if self._folded else []), *fresh])


def _history(keys: Ints, counts: Ints, names: tuple[str, ...]) -> LengthHistory:
    client = keys >> _BIN_BITS & (1 << _CLIENT_BITS) - 1
    return LengthHistory(
        seconds=SLOTS_SECONDS[0],
        start=(keys >> _BIN_BITS + _CLIENT_BITS) * SLOTS_SECONDS[0],
        client=client,
        bin=keys & (1 << _BIN_BITS) - 1,
        counts=counts.astype(np.int64),
        clients=names,
    )
