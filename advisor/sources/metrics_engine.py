"""One engine from its raw series: its present epoch, what was sampled and counted in it, lengths over all epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from advisor.domain.evidence import CounterWindows, EngineSeries, Samples
from advisor.domain.histogram import Buckets, Floats
from advisor.engines.vllm import metrics as vllm

from .metrics_series import LOOKBACK_SECONDS, PartKey, RawSeries, Readings, on_grid

_NO_TIMES = np.empty(0)
NO_SAMPLES = Samples(_NO_TIMES, _NO_TIMES, _NO_TIMES, None)
NO_WINDOWS = CounterWindows(_NO_TIMES, _NO_TIMES, {})


@dataclass(slots=True)
class EngineParts:
    """Everything read of one engine, before it is understood. `starts`: process starts within the time read."""

    instance: str
    engine: str
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
    def config(self) -> Mapping[str, str]:
        """The labels of the newest config series, or none."""
        return max(self.configs, key=lambda s: s.times[-1]).labels if self.configs else {}


def understand(parts: EngineParts, *, lifetime: bool) -> EngineSeries:
    """What the raw series say of the engine, in its present epoch (lengths: over everything read)."""
    windows = Readings.of(_columns(parts.windows), parts.starts)
    whole = Readings.of(_columns(parts.whole), parts.starts)
    start, is_process_start = epoch_start(parts, windows.last_reset())
    present, present_whole = windows.since(start), whole.since(start)
    latencies = {
        "ttft": _histogram(present, "ttft"),
        "tpot": _histogram(present, "tpot"),
        "itl": _histogram(present_whole, "itl"),
        "queue": _histogram(present_whole, "queue"),
    }
    lengths = {kind: _histogram(whole, kind) for kind in ("prompt_tokens", "output_tokens")}
    return EngineSeries(
        instance=parts.instance,
        engine=parts.engine,
        epoch_start=start,
        samples=_samples(parts.gauges, np.nextafter(start, np.inf) if is_process_start else start),
        windows=_windows(present),
        lengths={kind: found for kind, found in lengths.items() if found},
        latencies={kind: found for kind, found in latencies.items() if found},
        lifetime=lifetime,
    )


Span = tuple[float, float]


def epoch_start(parts: EngineParts, reset: Span | None) -> tuple[float, bool]:
    """Since when nothing is known to have changed, and whether that is the start of the process.

    The last of: the process start, a reset of the counters and a change of the config series that no start explains.
    """
    process = parts.last_start
    changes = [span for span in (reset, _config_change(parts.configs)) if span is not None]
    unexplained = [new for old, new in changes if process is None or process < old - LOOKBACK_SECONDS]
    if unexplained:
        return max(unexplained), False
    return (process, True) if process is not None else (parts.first_seen, False)


def _config_change(configs: Sequence[RawSeries]) -> Span | None:
    """When the config series last showed other values than now, and when it first showed these after that."""

    def values(series: RawSeries) -> tuple[str | None, ...]:
        return tuple(series.labels.get(label) for label in vllm.EPOCH_LABELS)

    if not configs:
        return None
    now = values(max(configs, key=lambda s: s.times[-1]))
    before = max((float(s.times[-1]) for s in configs if values(s) != now), default=np.inf)
    since = [float(t) for s in configs if values(s) == now for t in s.times if t > before]
    return (before, min(since)) if since else None


def _part(series: RawSeries) -> str | None:
    """Which part of a reading a series is; bucket edges are compared as numbers (`1` and `1.0` are one edge)."""
    for label in vllm.PART_LABELS:
        if label in series.labels:
            value = series.labels[label]
            if label != "le":
                return value
            try:
                return None if np.isnan(float(value)) else repr(float(value))
            except ValueError:
                return None
    return ""


def _columns(series: Iterable[RawSeries]) -> dict[PartKey, list[RawSeries]]:
    columns: dict[PartKey, list[RawSeries]] = {}
    for one in series:
        part = _part(one)
        if part is not None:
            columns.setdefault((one.name, part), []).append(one)
    return columns


def _samples(gauges: Sequence[RawSeries], start: float) -> Samples:
    """The gauges scrape by scrape. Of two names for one gauge the newer counts; of several processes the largest."""

    def reading(kind: str, grid: Floats) -> Floats | None:
        for name in vllm.GAUGES[kind].names:
            found = [s for s in gauges if s.name == name]
            if found:
                return on_grid(grid, found)
        return None

    grid = np.unique(np.concatenate([s.times for s in gauges if s.name == vllm.RUNNING] or [_NO_TIMES]))
    grid = grid[grid >= start]
    running, waiting = (_or_nan(reading(kind, grid), grid) for kind in ("running", "waiting"))
    return Samples(grid, running, waiting, reading("kv_usage", grid))


def _or_nan(values: Floats | None, grid: Floats) -> Floats:
    return np.full(grid.size, np.nan) if values is None else values


def _windows(present: Readings) -> CounterWindows:
    """Increases between successive readings of the present epoch."""
    gained = present.increases()
    deltas = {}
    for counter, metric in vllm.COUNTERS.items():
        name = _newest(metric.names, present)
        columns = [i for (series, part), i in present.columns.items() if series == name and _accepts(metric, part)]
        if columns and np.isfinite(gained[:, columns]).any():
            deltas[counter] = _total(gained[:, columns])
    if "prompt_tokens_computed" not in deltas:
        deltas |= _computed_by_difference(deltas, present)
    ttft, tpot = (_bucket_increases(present, gained, kind) for kind in ("ttft", "tpot"))
    return CounterWindows(present.times[:-1], present.times[1:], deltas, *tpot, *ttft)


def _accepts(metric: vllm.Metric, part: str) -> bool:
    return metric.label is None or metric.accepts({metric.label: part})


def _total(columns: Floats) -> Floats:
    """Row sums; NaN only where nothing in the row is known."""
    return np.where(np.isfinite(columns).any(axis=1), np.nansum(columns, axis=1), np.nan)


def _computed_by_difference(deltas: Mapping[str, Floats], present: Readings) -> dict[str, Floats]:
    """Prompt tokens computed, before 0.16 = all less prefix hits, where the release counts hits in tokens."""
    if "prompt_tokens" not in deltas or (vllm.TOKEN_PREFIX_HITS, "") not in present.columns:
        return {}
    if "prefix_hits" not in deltas:
        return {}
    return {"prompt_tokens_computed": np.maximum(deltas["prompt_tokens"] - deltas["prefix_hits"], 0.0)}


def _newest(names: Sequence[str], readings: Readings) -> str | None:
    """Of several names for one thing the newest that has readings there."""
    for name in names:
        columns = [i for (series, _), i in readings.columns.items() if series == name]
        if columns and np.isfinite(readings.values[:, columns]).any():
            return name
    return None


def _histogram(readings: Readings, kind: str) -> Buckets | None:
    name = _newest([n + "_bucket" for n in vllm.HISTOGRAMS[kind]], readings)
    return readings.histogram(name.removesuffix("_bucket")) if name else None


def _bucket_increases(present: Readings, gained: Floats, kind: str) -> tuple[Floats, Floats] | tuple[None, None]:
    """Finite edges and new observations a window, or nothing."""
    name = _newest([n + "_bucket" for n in vllm.HISTOGRAMS[kind]], present)
    edges = present.edges(name.removesuffix("_bucket")) if name else []
    edges = [(edge, column) for edge, column in edges if np.isfinite(gained[:, column]).any()]
    if not edges or edges[-1][0] != np.inf:
        return None, None
    cumulative = gained[:, [column for _, column in edges]]
    counts = np.maximum(np.diff(cumulative, axis=1, prepend=0.0), 0.0)
    return np.asarray([edge for edge, _ in edges[:-1]], float), counts
