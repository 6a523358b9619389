"""The facts that move with the load, hour by hour, from the same gauges and counters as those of the whole window.

An hour is told when every engine that served in it was read for at least 95 % of it, and no engine that serves now
began later: where one did, another epoch of it may have served then, and its requests would be missing.

Demand is what arrived, not what was served: finished requests plus what running and waiting grew by. A cap that
throttles changes the second at once and the first not at all. Worked: 7,000 finished and 200 more in flight at the end
of the hour than at its beginning are 7,200 arrivals, 2 a second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, FlagValue, Slo, as_floats
from advisor.domain.histogram import Floats, Ints
from advisor.domain.hours import DEMAND, ENGINES, HOUR_SECONDS, OUTPUT, PROMPT, HourFacts

from .latency import LEAST_REQUESTS
from .load import sequence_cap

SETTINGS = (
    "max_num_seqs",
    "max_num_active_seqs",
    "max_model_len",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "kv_cache_dtype",
    "tensor_parallel_size",
    "enable_prefix_caching",
)
FULLY_READ = 0.95
LEAST_SCRAPES = 10
ALIVE_SECONDS = 900.0
NARROW = 0.005
_GUESSED = ("inferred", "default")
_RATIOS = {
    PROMPT: ("prompt_tokens", "finished"),
    OUTPUT: ("generation_tokens", "finished"),
    "preempted_share": ("preemptions", "finished"),
    "itl_mean": ("itl_sum", "itl_count"),
    "queue_share_of_ttft": ("queue_sum", "ttft_sum"),
}
_COUNTED = tuple(dict.fromkeys(counter for pair in _RATIOS.values() for counter in pair))


def hourly_facts(evidence: Evidence, since: float = -math.inf) -> tuple[HourFacts, ...]:
    """The whole hours of the present epoch that begin at `since` (UNIX seconds) or later; oldest first."""
    engines = [e for e in evidence.engines if not e.lifetime and e.windows.end.size and e.samples.time.size]
    grid = _grid(engines, max(since, evidence.window.start))
    if grid.size < 2:
        return ()
    counters = [_Hourly.of(e.windows, grid) for e in engines]
    read = np.array([hourly.read for hourly in counters])
    whole = read >= FULLY_READ
    told = np.flatnonzero((whole | (read <= 0.0)).all(axis=0) & whole.any(axis=0))
    counts = _counts(counters)
    figures = {
        DEMAND: _arrivals(engines, counts.pop("finished", None), grid),
        ENGINES: whole.sum(axis=0).astype(float),
        **_loads(engines, grid, sequence_cap(evidence)),
        **counts,
        **_latencies(counters, evidence.slo),
    }
    epoch, settings = float(max(e.epoch_start for e in engines)), _settings(evidence)
    return tuple(HourFacts(float(grid[hour]), epoch, settings, _known(figures, hour)) for hour in told.tolist())


def _known(figures: Mapping[str, Floats], hour: int) -> dict[str, float]:
    return {name: float(values[hour]) for name, values in figures.items() if np.isfinite(values[hour])}


def _grid(engines: list[EngineSeries], since: float) -> Floats:
    """Borders of the hours for which no engine that serves now is too young."""
    if not engines:
        return np.empty(0)
    ends = [float(e.windows.end[-1]) for e in engines]
    serving = [e for e, end in zip(engines, ends, strict=True) if end >= max(ends) - ALIVE_SECONDS]
    first = math.ceil(max(since, *(e.epoch_start for e in serving)) / HOUR_SECONDS)
    last = math.floor((max(ends) + (1 - FULLY_READ) * HOUR_SECONDS) / HOUR_SECONDS)
    return as_floats(np.arange(first, last + 1) * HOUR_SECONDS)


@dataclass(frozen=True, eq=False, slots=True)
class _Hourly:
    """Windows of one engine on the grid of hours: each is spread evenly over its time, a hole over an hour is none.

    row, part: for every border the window that it lies in, and how much of it lies before.
    """

    windows: CounterWindows
    rows: slice
    row: Ints
    part: Floats
    read: Floats

    @classmethod
    def of(cls, windows: CounterWindows, grid: Floats) -> _Hourly:
        rows = slice(int(np.searchsorted(windows.end, grid[0])), int(np.searchsorted(windows.start, grid[-1])))
        start, end = windows.start[rows], windows.end[rows]
        row = np.searchsorted(end, grid, side="right")
        inside = np.minimum(row, max(end.size - 1, 0))
        length = np.maximum(end - start, 1e-9)
        part = np.clip((grid - start[inside]) / length[inside], 0.0, 1.0) if end.size else np.zeros(grid.size)
        bare = cls(windows, rows, row, part, np.zeros(grid.size - 1))
        return replace(bare, read=bare._summed(np.where(bare._short, end - start, 0.0)[:, None])[:, 0] / HOUR_SECONDS)

    @property
    def _short(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.windows.end[self.rows] - self.windows.start[self.rows] <= HOUR_SECONDS)

    def sums(self, amounts: Floats) -> Floats:
        """Hours x columns from (own rows of) windows x columns; NaN where a window of the hour has no reading."""
        unread = np.isnan(amounts)
        sums = self._summed(np.where(unread, 0.0, amounts) * self._short[:, None])
        return np.where(self._summed(unread.astype(float)) > 0.0, np.nan, sums) if unread.any() else sums

    def _summed(self, amounts: Floats) -> Floats:
        padded = np.concatenate([amounts, np.zeros((1, amounts.shape[1]))])
        before = np.cumsum(padded, axis=0) - padded
        return np.diff(before[self.row] + self.part[:, None] * padded[self.row], axis=0)


def _loads(engines: list[EngineSeries], grid: Floats, cap: int | None) -> dict[str, Floats]:
    """Shares and percentiles of the gauges, over (engine, scrape) pairs of each hour."""
    rows = [e.samples for e in engines]
    time, running, waiting = (np.concatenate([getattr(s, n) for s in rows]) for n in ("time", "running", "waiting"))
    usage = np.concatenate([np.full(s.time.size, np.nan) if s.kv_usage is None else s.kv_usage for s in rows])
    kept = (time >= grid[0]) & (time < grid[-1]) & np.isfinite(running) & np.isfinite(waiting)
    running, waiting, usage = running[kept], waiting[kept], usage[kept]
    hour, hours = ((time[kept] - grid[0]) // HOUR_SECONDS).astype(np.int64), grid.size - 1
    out = {
        "waiting_share": _share(waiting > 0, hour, hours),
        "running_p95": _p95(running, hour, hours),
        "waiting_p95": _p95(waiting, hour, hours),
        "kv_usage_p95": _p95(usage, hour, hours),
    }
    pinned = {} if cap is None else {"time_at_sequence_cap": _share((running >= cap) & (waiting > 0), hour, hours)}
    return out | pinned


def _share(hits: npt.NDArray[np.bool_], hour: Ints, hours: int) -> Floats:
    pairs = np.bincount(hour, minlength=hours)
    return np.where(pairs >= LEAST_SCRAPES, np.bincount(hour, hits, hours) / np.maximum(pairs, 1), np.nan)


def _p95(values: Floats, hour: Ints, hours: int) -> Floats:
    """The 95th percentile of each hour, linear between order statistics."""
    known = np.isfinite(values)
    values, hour = values[known], hour[known]
    ordered = values[np.lexsort((values, hour))]
    pairs = np.bincount(hour, minlength=hours)
    out, enough = np.full(hours, np.nan), pairs >= LEAST_SCRAPES
    position = (np.cumsum(pairs) - pairs + 0.95 * (pairs - 1))[enough]
    below, above = np.floor(position).astype(np.int64), np.ceil(position).astype(np.int64)
    out[enough] = ordered[below] + (position - below) * (ordered[above] - ordered[below])
    return out


def _counts(counters: list[_Hourly]) -> dict[str, Floats]:
    """Requests finished an hour, and ratios of counters that all engines of an hour tell, each summed over them."""
    names = [n for n in _COUNTED if all(n in h.windows.deltas for h in counters)]
    if not names:
        return {}
    columns = sum(h.sums(np.stack([h.windows.deltas[n][h.rows] for n in names], axis=1)) for h in counters)
    totals = dict(zip(names, np.asarray(columns).T, strict=True))
    out = {"finished": totals["finished"]} if "finished" in totals else {}
    for name, (above, below) in _RATIOS.items():
        if above in totals and below in totals:
            moved = totals[below] > 0
            out[name] = np.where(moved, totals[above] / np.where(moved, totals[below], 1.0), np.nan)
    return out


def _arrivals(engines: list[EngineSeries], finished: Floats | None, grid: Floats) -> Floats:
    """Requests per second that arrived: finished ones, and by how much those in flight grew."""
    if finished is None:
        return np.full(grid.size - 1, np.nan)
    grown = np.zeros(grid.size - 1)
    for samples in (e.samples for e in engines):
        held = samples.running + samples.waiting
        known = np.isfinite(held)
        if known.any():
            grown += np.diff(np.interp(grid, samples.time[known], held[known]))
    return np.maximum(finished + grown, 0.0) / HOUR_SECONDS


def _latencies(counters: list[_Hourly], slo: Slo) -> dict[str, Floats]:
    ttft, tpot = _upto(counters, "ttft"), _upto(counters, "tpot")
    met = {
        "slo_attainment_ttft": _within(ttft, slo.ttft_seconds),
        "slo_attainment_tpot": _within(tpot, slo.tpot_seconds),
    }
    out = {name: share for name, share in met.items() if share is not None}
    if len(out) == 1 and (slo.ttft_seconds is None or slo.tpot_seconds is None):
        out["slo_attainment"] = next(iter(out.values()))
    return out if ttft is None else out | {"ttft_p99": _p99(*ttft)}


def _upto(counters: list[_Hourly], kind: str) -> tuple[Floats, Floats] | None:
    """Finite edges, and per hour the observations up to each of them and in all; None where engines differ in edges."""
    edges, parts = getattr(counters[0].windows, f"{kind}_edges"), []
    for hourly in counters:
        counts = getattr(hourly.windows, kind)
        if counts is None or not np.array_equal(getattr(hourly.windows, f"{kind}_edges"), edges):
            return None
        parts.append(hourly.sums(counts[hourly.rows]))
    return edges, np.cumsum(sum(parts), axis=1)


def _within(histogram: tuple[Floats, Floats] | None, target: float | None) -> Floats | None:
    """The share within a target, where the edges around it tell it to half a percent."""
    if histogram is None or target is None:
        return None
    edges, upto = histogram
    below = int(np.searchsorted(edges, target * (1 + 1e-9), side="right"))
    above = min(int(np.searchsorted(edges, target * (1 - 1e-9))), edges.size)
    counts = np.where(upto[:, -1] >= LEAST_REQUESTS, upto[:, -1], np.nan)
    low = (upto[:, below - 1] if below else np.zeros(counts.size)) / counts
    high = upto[:, above] / counts
    return np.where(high - low <= NARROW, (low + high) / 2, np.nan)


def _p99(edges: Floats, upto: Floats) -> Floats:
    """The 99th percentile of each hour, linear between bucket edges: an estimate that is fair to both sides.

    Unknown with fewer than 100 observations, and where it lies beyond the last edge.
    """
    wanted = 0.99 * upto[:, -1]
    place = (upto < wanted[:, None]).sum(axis=1)
    told = (upto[:, -1] >= LEAST_REQUESTS) & (place < edges.size)
    place, rows = np.minimum(place, edges.size - 1), np.arange(place.size)
    under = np.where(place > 0, upto[rows, place - 1], 0.0)
    lower = np.where(place > 0, edges[place - 1], 0.0)
    inside = np.where(told, upto[rows, place] - under, 1.0)
    return np.where(told, lower + (wanted - under) / inside * (edges[place] - lower), np.nan)


def _settings(evidence: Evidence) -> Mapping[str, FlagValue]:
    flags = {n: f.value for n in SETTINGS if (f := evidence.flags.get(n)) is not None and f.source not in _GUESSED}
    return flags | ({"version": evidence.engine_version} if evidence.engine_version else {})
