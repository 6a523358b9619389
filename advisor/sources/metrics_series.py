"""Series as they were read, and cumulative ones brought onto one grid: process lives, resets, increases, histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.domain.histogram import Buckets, Floats, Ints

Bools = npt.NDArray[np.bool_]
LOOKBACK_SECONDS = 300.0
"""How long Prometheus goes on giving the last value of a series, unless told otherwise."""

PartKey = tuple[str, str]
"""Name of a series and the value of the label that makes it a part (`le`, a reason, a source), or an empty string."""


@dataclass(frozen=True, eq=False, slots=True)
class RawSeries:
    """One series as read: times (UNIX seconds) ascend, values are finite."""

    name: str
    labels: Mapping[str, str]
    times: Floats
    values: Floats


@dataclass(frozen=True, eq=False, slots=True)
class Readings:
    """Counters of one engine on one grid of n times; `values` is n x columns, NaN where a counter was not there.

    `life` numbers, row by row, the process lives that the counters show: it rises where they began again from zero.
    """

    times: Floats
    values: Floats
    life: Ints
    columns: Mapping[PartKey, int]

    @classmethod
    def of(cls, parts: Mapping[PartKey, Sequence[RawSeries]], starts: Sequence[float]) -> Readings:
        """Bring `parts` onto one grid. `starts` are process starts (UNIX seconds): at each, every counter was zero."""
        grid = np.unique(np.concatenate([s.times for series in parts.values() for s in series] or [np.empty(0)]))
        values = np.full((grid.size, len(parts)), np.nan)
        for column, series in enumerate(parts.values()):
            values[:, column] = on_grid(grid, series)
        rows, born = _births(grid, _fell(values), starts)
        is_start = np.insert(np.zeros(grid.size, bool), rows, np.True_)
        times, values = np.insert(grid, rows, born), np.insert(values, rows, np.nan, axis=0)
        life = np.cumsum(is_start | _fell(values)).astype(np.int64)
        kept = _settle(values, life, is_start, _families(parts))
        return cls(times[kept], values[kept], life[kept], {key: i for i, key in enumerate(parts)})

    def since(self, time: float) -> Readings:
        """The rows of the last life, from `time` on."""
        if not self.times.size:
            return self
        rows = (self.life == self.life[-1]) & (self.times >= time)
        return Readings(self.times[rows], self.values[rows], self.life[rows], self.columns)

    def increases(self) -> Floats:
        """What each counter gained from row to row: (n - 1) x columns. After a reset the new value is the gain.

        What a process counted between its last reading and its end cannot be seen and is not in any gain.
        """
        gained = np.diff(self.values, axis=0)
        fresh = np.diff(self.life) > 0
        gained[fresh] = self.values[1:][fresh]
        return np.maximum(gained, 0.0)

    def last_reset(self) -> tuple[float, float] | None:
        """Between which two rows the last life began, or None when the readings show one life only."""
        fresh = np.flatnonzero(np.diff(self.life) > 0)
        return (float(self.times[fresh[-1]]), float(self.times[fresh[-1] + 1])) if fresh.size else None

    def histogram(self, name: str) -> Buckets | None:
        """All observations of histogram `name`, over all lives; edges may differ from life to life."""
        parts = [self._in_life(name, life) for life in np.unique(self.life)]
        return Buckets.merge(part for part in parts if part is not None)

    def _in_life(self, name: str, life: int) -> Buckets | None:
        rows = np.flatnonzero(self.life == life)
        span = slice(max(rows[0] - 1, 0), rows[-1] + 1)
        gained = Readings(self.times[span], self.values[span], self.life[span], self.columns).increases()
        edges = self.edges(name)
        there = [(edge, column) for edge, column in edges if np.isfinite(gained[:, column]).any()]
        if not there or there[-1][0] != np.inf:
            return None
        totals = [float(np.nansum(gained[:, column])) for _, column in there]
        total = self.columns.get((name + "_sum", ""))
        summed = None if total is None else float(np.nansum(gained[:, total]))
        return Buckets.from_cumulative([edge for edge, _ in there[:-1]], totals, summed)

    def edges(self, name: str) -> list[tuple[float, int]]:
        """Upper edges of the buckets of histogram `name`, ascending, each with its column."""
        return sorted((float(part), i) for (series, part), i in self.columns.items() if series == name + "_bucket")


def on_grid(grid: Floats, series: Sequence[RawSeries]) -> Floats:
    """Values at the grid's times, NaN where there is none; where several series show one thing, the largest."""
    merged = np.full(grid.size, np.nan)
    for one in series:
        place = np.searchsorted(grid, one.times)
        inside = (place < grid.size) & (grid[np.minimum(place, grid.size - 1)] == one.times)
        merged[place[inside]] = np.fmax(merged[place[inside]], one.values[inside])
    return merged


def _fell(values: Floats) -> Bools:
    """Rows at which most counters that had counted stand lower: one alone may waver between redundant servers."""
    step = np.diff(values, axis=0)
    counted = np.isfinite(step) & (values[:-1] > 0)
    fell = (counted & (step < 0)).sum(axis=1) * 2 > counted.sum(axis=1)
    return np.asarray(np.concatenate([np.zeros(min(1, values.shape[0]), bool), fell]))


def _births(grid: Floats, fell: Bools, starts: Sequence[float]) -> tuple[Ints, Floats]:
    """Before which rows a process began, and when.

    A server repeats the last value of a series for some minutes, so the first rows after a start may still show the
    process before it: a start belongs to the row where the counters fell, if they did so soon after.
    """
    born = np.sort([s for s in starts if grid.size and s <= grid[-1]])
    rows = np.searchsorted(grid, born, side="right")
    for i, (start, row) in enumerate(zip(born, rows, strict=True)):
        next_row = rows[i + 1] if i + 1 < rows.size else grid.size
        late = np.flatnonzero(fell[row:next_row])
        if row and late.size and grid[row + late[0] - 1] < start + LOOKBACK_SECONDS:
            rows[i] = row + late[0]
    before = np.where(rows > 0, grid[rows - 1], -np.inf) if grid.size else born
    return rows.astype(np.int64), np.maximum(born, before)


def _families(parts: Mapping[PartKey, object]) -> Ints:
    """For every column a number that parts of one series name share."""
    names = {name: i for i, name in enumerate(dict.fromkeys(name for name, _ in parts))}
    return np.asarray([names[name] for name, _ in parts], np.int64)


def _settle(values: Floats, life: Ints, is_start: Bools, family: Ints) -> Bools:
    """Fill in the zeros that are certain, in place; returns the rows to keep, those without a hole in a counter.

    A process starts at zero. A label value that appears after its siblings (a reason, a status) stood at zero before;
    a whole metric that appears later may have counted unseen, so its first reading is only where counting begins.
    """
    kept = np.ones(life.size, bool)
    for rows in (np.flatnonzero(life == one) for one in np.unique(life)):
        block = values[rows]
        known = np.isfinite(block)
        place = np.arange(rows.size)[:, None]
        first = np.where(known.any(axis=0), known.argmax(axis=0), 0)
        last = rows.size - 1 - known[::-1].argmax(axis=0)
        family_first = np.full(family.size, rows.size)
        np.minimum.at(family_first, family, np.where(known.any(axis=0), first, rows.size))
        since = np.zeros(family.size, int) if is_start[rows[0]] else family_first[family]
        block[(place >= since) & (place < first)] = 0.0
        values[rows] = block
        kept[rows] = ~(~known & (place > first) & (place < last) & known.any(axis=0)).any(axis=1)
    return kept
