"""One engine from its raw series: its present epoch, what was sampled and counted in it, lengths over all epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from advisor.domain.evidence import CounterWindows, EngineSeries, EpochCause, Samples
from advisor.domain.histogram import BucketHours, Buckets, Floats
from advisor.engines.metrics import EngineMetrics, Series, Settings

from .metrics_series import LOOKBACK_SECONDS, PartKey, RawSeries, Readings, on_grid

_NO_TIMES = np.empty(0)
NO_SAMPLES = Samples(_NO_TIMES, _NO_TIMES, _NO_TIMES, None)
NO_WINDOWS = CounterWindows(_NO_TIMES, _NO_TIMES, {})


@dataclass(slots=True)
class EngineParts:
    """Everything read of one engine, before it is understood. `starts`: process starts within the time read."""

    instance: str
    engine: str
    metrics: EngineMetrics
    gauges: list[RawSeries] = field(default_factory=list)
    windows: list[RawSeries] = field(default_factory=list)
    whole: list[RawSeries] = field(default_factory=list)
    configs: Sequence[RawSeries] = ()
    starts: Sequence[float] = ()
    last_start: float | None = None

    @property
    def first_seen(self) -> float:
        """When its gauges were first read."""
        return float(min(series.times[0] for series in self.gauges))

    @property
    def last_seen(self) -> float:
        """When its gauges were last read."""
        return float(max(series.times[-1] for series in self.gauges))

    @property
    def config(self) -> Settings:
        """What the newest of its config series say, or nothing."""
        newest: dict[str, RawSeries] = {}
        for series in self.configs:
            if series.name not in newest or series.times[-1] >= newest[series.name].times[-1]:
                newest[series.name] = series
        return {name: value for series in newest.values() for name, value in series.labels.items()}


def understand(parts: EngineParts, *, lifetime: bool) -> EngineSeries:
    """What the raw series say of the engine, in its present epoch (lengths: over everything read)."""
    metrics = parts.metrics
    windows = Readings.of(_columns(parts.windows, metrics), parts.starts)
    whole = Readings.of(_columns(parts.whole, metrics), parts.starts)
    start, cause = epoch_start(parts, windows.last_reset())
    present, present_whole = windows.since(start), whole.since(start)
    latencies = {
        "ttft": _histogram(present, metrics, "ttft"),
        "tpot": _histogram(present, metrics, "tpot"),
        "itl": _histogram(present_whole, metrics, "itl"),
        "queue": _histogram(present_whole, metrics, "queue"),
        "block_reuse_gap": _histogram(present_whole, metrics, "block_reuse_gap"),
        "block_idle_before_evict": _histogram(present_whole, metrics, "block_idle_before_evict"),
    }
    lengths = {kind: _histogram(whole, metrics, kind) for kind in ("prompt_tokens", "output_tokens")}
    return EngineSeries(
        instance=parts.instance,
        engine=parts.engine,
        epoch_start=start,
        samples=_samples(parts, _first_own_sample(start, windows.last_reset()) if start == parts.last_start else start),
        windows=_windows(present, metrics),
        lengths={kind: found for kind, found in lengths.items() if found},
        latencies={kind: found for kind, found in latencies.items() if found},
        lifetime=lifetime,
        length_hours=_length_hours(whole, metrics),
        epoch_cause=cause,
    )


Span = tuple[float, float]


def epoch_start(parts: EngineParts, reset: Span | None) -> tuple[float, EpochCause]:
    """Since when nothing is known to have changed, and what began it.

    The last of: the process start, a reset of the counters and a change of the config series that no start explains. A
    change that a start explains is why it was restarted.
    """
    process, changes = parts.last_start, [span for span in _config_changes(parts) if span is not None]
    causes: list[tuple[Span, EpochCause]] = [(span, "changed") for span in changes]
    if reset is not None:
        causes.append((reset, "counters_reset"))
    unexplained = [(new, why) for (old, new), why in causes if process is None or process < old - LOOKBACK_SECONDS]
    if unexplained:
        return max(unexplained)
    if process is None:
        return parts.first_seen, "first_seen"
    return process, "changed" if any(process <= new for _, new in changes) else "restarted"


def _first_own_sample(process_start: float, reset: Span | None) -> float:
    """After which time gauges are of the process that began: a server repeats the last reading of the one before.

    Until its counters were seen to fall, what is read may still be the old process.
    """
    seen = reset[1] if reset is not None and reset[1] < process_start + LOOKBACK_SECONDS else process_start
    return float(np.nextafter(max(process_start, seen), np.inf))


def _config_changes(parts: EngineParts) -> list[Span | None]:
    """When each config series last showed other values than now, and when it first showed these after that."""
    by_name: dict[str, list[RawSeries]] = {}
    for series in parts.configs:
        by_name.setdefault(series.name, []).append(series)
    return [_config_change(configs, parts.metrics.epoch_settings) for configs in by_name.values()]


def _config_change(configs: Sequence[RawSeries], settings: Sequence[str]) -> Span | None:
    def values(series: RawSeries) -> tuple[str | None, ...]:
        return tuple(series.labels.get(name) for name in settings)

    now = values(max(configs, key=lambda s: s.times[-1]))
    before = max((float(s.times[-1]) for s in configs if values(s) != now), default=np.inf)
    since = [float(t) for s in configs if values(s) == now for t in s.times if t > before]
    return (before, min(since)) if since else None


def _part(series: RawSeries, parts: Sequence[str]) -> str | None:
    """Which part of a reading a series is; bucket edges are compared as numbers (`1` and `1.0` are one edge)."""
    for label in parts:
        if label in series.labels:
            value = series.labels[label]
            if label != "le":
                return value
            try:
                return None if np.isnan(float(value)) else repr(float(value))
            except ValueError:
                return None
    return ""


def _columns(series: Iterable[RawSeries], metrics: EngineMetrics) -> dict[PartKey, list[RawSeries]]:
    columns: dict[PartKey, list[RawSeries]] = {}
    for one in series:
        part = _part(one, metrics.parts)
        if part is not None:
            columns.setdefault((one.name, part), []).append(one)
    return columns


def _samples(parts: EngineParts, start: float) -> Samples:
    """The gauges scrape by scrape. Of two names for one gauge the newer counts; of several processes the largest."""
    gauges, metrics = parts.gauges, parts.metrics

    def reading(kind: str, grid: Floats) -> Floats | None:
        for name in metrics.gauges.get(kind, ()):
            found = [s for s in gauges if s.name == name]
            if found:
                return on_grid(grid, found)
        return None

    grid = np.unique(np.concatenate([s.times for s in gauges if s.name == metrics.marker] or [_NO_TIMES]))
    grid = grid[grid >= start]
    running, waiting = (_or_nan(reading(kind, grid), grid) for kind in ("running", "waiting"))
    usage, pool = reading("kv_usage", grid), metrics.pool(parts.config, 1)
    held = reading("kv_tokens", grid)
    if usage is None and held is not None and pool is not None:
        usage = held / pool[0]
    return Samples(grid, running, waiting, usage)


def _or_nan(values: Floats | None, grid: Floats) -> Floats:
    return np.full(grid.size, np.nan) if values is None else values


def _windows(present: Readings, metrics: EngineMetrics) -> CounterWindows:
    """Increases between successive readings of the present epoch."""
    gained = present.increases()
    deltas = {}
    for counter, listed in metrics.counters.items():
        columns = _columns_of(_newest_series(listed, present), present)
        if columns and np.isfinite(gained[:, columns]).any():
            deltas[counter] = _total(gained[:, columns])
    if "prompt_tokens_computed" not in deltas:
        deltas |= _computed_by_difference(deltas, present, metrics.exact_prefix_hits)
    if "prefix_queries" not in deltas and {"prefix_hits", "prompt_tokens_computed"} <= deltas.keys():
        deltas["prefix_queries"] = deltas["prefix_hits"] + deltas["prompt_tokens_computed"]
    ttft, tpot = (_bucket_increases(present, gained, metrics.histograms.get(kind, ())) for kind in ("ttft", "tpot"))
    return CounterWindows(present.times[:-1], present.times[1:], deltas, *tpot, *ttft)


def _columns_of(series: Series | None, readings: Readings) -> list[int]:
    if series is None:
        return []
    return [i for (name, part), i in readings.columns.items() if name == series.name and series.accepts(part)]


def _newest_series(listed: Sequence[Series], readings: Readings) -> Series | None:
    """Of several series for one thing the newest that has readings there."""
    return next((series for series in listed if _newest([series.name], readings)), None)


def _total(columns: Floats) -> Floats:
    """Row sums; NaN only where nothing in the row is known."""
    return np.where(np.isfinite(columns).any(axis=1), np.nansum(columns, axis=1), np.nan)


def _computed_by_difference(
    deltas: Mapping[str, Floats], present: Readings, token_hits: str | None
) -> dict[str, Floats]:
    """Prompt tokens computed = all less prefix hits, where the release counts hits in tokens."""
    if token_hits is None or _newest([token_hits], present) is None:
        return {}
    if not {"prompt_tokens", "prefix_hits"} <= deltas.keys():
        return {}
    return {"prompt_tokens_computed": np.maximum(deltas["prompt_tokens"] - deltas["prefix_hits"], 0.0)}


def _newest(names: Sequence[str], readings: Readings) -> str | None:
    """Of several names for one thing the newest that has readings there."""
    for name in names:
        columns = [i for (series, _), i in readings.columns.items() if series == name]
        if columns and np.isfinite(readings.values[:, columns]).any():
            return name
    return None


def _histogram(readings: Readings, metrics: EngineMetrics, kind: str) -> Buckets | None:
    name = _newest([n + "_bucket" for n in metrics.histograms.get(kind, ())], readings)
    return readings.histogram(name.removesuffix("_bucket")) if name else None


def _length_hours(whole: Readings, metrics: EngineMetrics) -> dict[str, BucketHours]:
    gained, hours = whole.increases(), {}
    for kind in ("prompt_tokens", "output_tokens"):
        edges, counts = _bucket_increases(whole, gained, metrics.histograms.get(kind, ()))
        if edges is not None and counts is not None and len(counts):
            hours[kind] = BucketHours.of(whole.times[1:], edges, counts)
    return hours


def _bucket_increases(
    present: Readings, gained: Floats, histograms: Sequence[str]
) -> tuple[Floats, Floats] | tuple[None, None]:
    """Finite edges and new observations a window, or nothing."""
    name = _newest([n + "_bucket" for n in histograms], present)
    edges = present.edges(name.removesuffix("_bucket")) if name else []
    edges = [(edge, column) for edge, column in edges if np.isfinite(gained[:, column]).any()]
    if not edges or edges[-1][0] != np.inf:
        return None, None
    cumulative = gained[:, [column for _, column in edges]]
    counts = np.maximum(np.diff(cumulative, axis=1, prepend=0.0), 0.0)
    return np.asarray([edge for edge, _ in edges[:-1]], float), counts
