"""How many requests a replica worked on while it worked on a given one: a running integral on a grid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from advisor.domain.evidence import Window
from advisor.domain.histogram import Floats, Ints

_MOST_CELLS = 1 << 19
_TICKS = 1 << 10


class SpanGrid:
    """Counts of overlapping spans by replica, on a grid over the window.

    The edge of a span is split between the two grid points around it, nearer point more, so that the integral of the
    count is exact at every grid point and linear in between. A week on up to 16 replicas has cells of 1.15 s; each
    doubling of replicas beyond that doubles the cell, so that memory stays under 32 MiB whatever the fleet.
    """

    def __init__(self, window: Window, budget_cells: int = 1 << 23) -> None:
        self._start, self._seconds, self._budget = window.start, max(window.seconds, 1.0), budget_cells
        self._edges: npt.NDArray[np.int32] = np.zeros((1, min(_MOST_CELLS, budget_cells) + 1), np.int32)

    @property
    def cells(self) -> int:
        """Cells of one replica."""
        return int(self._edges.shape[1]) - 1

    def add(self, replica: Ints, start: Floats, end: Floats) -> None:
        """Add spans (UNIX seconds, start <= end) on replicas numbered from 0; what lies outside the window is cut."""
        if replica.size:
            self._make_room(int(replica.max()) + 1)
            self._mark(replica, start, +1)
            self._mark(replica, end, -1)

    def mean(self, replica: int, start: Floats, end: Floats) -> Floats:
        """Time averages of the count over spans of one replica; of a span without length, the count there.

        Two spans, 0-10 s and 5-15 s: over 0-10 s the mean is 1.5.
        """
        level = np.cumsum(self._edges[replica], dtype=np.int64)
        before = np.concatenate([[0], np.cumsum(level)[:-1]])
        first = self._ticks(start)
        last = np.maximum(self._ticks(end), first + 1)
        area = [before[t // _TICKS] + level[t // _TICKS] * (t % _TICKS) / _TICKS for t in (first, last)]
        return np.asarray((area[1] - area[0]) / (last - first))

    def _ticks(self, moment: Floats) -> Ints:
        scaled = (moment - self._start) / self._seconds * (self.cells * _TICKS)
        return np.clip(scaled, 0, self.cells * _TICKS - 1).astype(np.int64)

    def _mark(self, replica: Ints, moment: Floats, sign: int) -> None:
        ticks = self._ticks(moment)
        point, beyond = replica * (self.cells + 1) + ticks // _TICKS, ticks % _TICKS
        flat = self._edges.reshape(-1)
        np.add.at(flat, point, (sign * (_TICKS - beyond)).astype(np.int32))
        np.add.at(flat, point + 1, (sign * beyond).astype(np.int32))

    def _make_room(self, replicas: int) -> None:
        capacity = 1 << (replicas - 1).bit_length()
        if capacity <= len(self._edges):
            return
        while capacity * self.cells > self._budget and self.cells > 1:
            self._edges = _coarser(self._edges)
        grown = np.zeros((capacity, self.cells + 1), np.int32)
        grown[: len(self._edges)] = self._edges
        self._edges = grown


def _coarser(edges: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Cells of twice the width: a point that goes is split between its neighbours, so sums are kept exactly."""
    gone = edges[:, 1::2]
    lower = gone >> 1
    kept = edges[:, ::2].copy()
    kept[:, :-1] += lower
    kept[:, 1:] += gone - lower
    return kept
