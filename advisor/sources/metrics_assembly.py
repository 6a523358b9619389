"""Raw series to deployments: what belongs to which engine, which engines live, what their configuration says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from advisor.domain.evidence import Disagreement, EngineSeries, Flag, FlagValue, HttpOutcomes, ReportedPool
from advisor.engines.vllm import metrics as vllm

from .metrics_engine import NO_SAMPLES, NO_WINDOWS, EngineParts, understand
from .metrics_reading import DeploymentMetrics, RawMetrics, Scope, Target
from .metrics_series import RawSeries, Readings

EngineId = tuple[Target, str]


def assemble(raw: RawMetrics, scope: Scope) -> tuple[DeploymentMetrics, ...]:
    """Deployments from raw series, in the order of their labels."""
    engines = _engines(raw, scope)
    newest = max((e.last_seen for group in engines.values() for e in group.values()), default=0.0)
    return tuple(
        _deployment(identity, group, raw, scope, newest - scope.alive_seconds)
        for identity, group in sorted(engines.items())
    )


def _engines(raw: RawMetrics, scope: Scope) -> dict[tuple[str, ...], dict[EngineId, EngineParts]]:
    """Every series that names a model, under its engine; an engine is there when its gauges are."""
    engines: dict[tuple[str, ...], dict[EngineId, EngineParts]] = {}
    for kind in ("gauges", "windows", "whole"):
        for series in getattr(raw, kind):
            identity, engine = scope.identity(series.labels), series.labels.get("engine", "0")
            group = engines.setdefault(identity, {}) if kind == "gauges" else engines.get(identity, {})
            name = (scope.target(series.labels), engine)
            if kind == "gauges" and series.times.size:
                group.setdefault(name, EngineParts(series.labels.get("instance", ""), engine))
            if name in group and series.times.size:
                getattr(group[name], kind).append(series)
    configs, starts = _by_target(raw.configs, scope), _starts(raw.starts, scope)
    for group in engines.values():
        for (target, engine), parts in group.items():
            mine = [c for c in configs.get(target, []) if c.labels.get("engine", engine) == engine]
            begun = starts.get(target, [])
            parts.configs = mine
            parts.last_start = begun[-1] if begun else None
            parts.starts = [s for s in begun if s >= scope.window.start]
    return {identity: group for identity, group in engines.items() if group}


def _by_target(series: Iterable[RawSeries], scope: Scope) -> dict[Target, list[RawSeries]]:
    found: dict[Target, list[RawSeries]] = {}
    for one in series:
        if one.times.size:
            found.setdefault(scope.target(one.labels), []).append(one)
    return found


def _starts(series: Iterable[RawSeries], scope: Scope) -> dict[Target, list[float]]:
    """Distinct process starts by process, ascending; values that cannot be a start of what was read are left out."""
    return {
        target: sorted({float(v) for one in found for v in one.values if 0 < v <= scope.window.end})
        for target, found in _by_target(series, scope).items()
    }


def _deployment(
    identity: tuple[str, ...],
    group: Mapping[EngineId, EngineParts],
    raw: RawMetrics,
    scope: Scope,
    alive_since: float,
) -> DeploymentMetrics:
    series = {name: understand(parts, lifetime=scope.lifetime) for name, parts in group.items()}
    alive = {name: parts for name, parts in group.items() if parts.last_seen >= alive_since}
    present_since = min((series[name].epoch_start for name in alive), default=np.inf)
    gone = {n for n in series if n not in alive and series[n].epoch_start < present_since}
    targets = {target for target, _ in group}
    running = alive or group
    flags, disagreements = _flags(running, series)
    ranks = Counter(target for target, _ in running)
    series |= {n: _with_config(series[n], parts, raw, n[0], ranks[n[0]]) for n, parts in running.items()}
    hints = {series[name].version for name in running}
    notes = (*_notes(len(gone), hints, series.values()), *_doubled(group.values()))
    return DeploymentMetrics(
        labels=dict(zip(scope.identity_labels, identity, strict=True)),
        engines=tuple(_lengths_only(found) if name in gone else found for name, found in sorted(series.items())),
        instances=tuple(sorted({parts.instance for parts in alive.values()})),
        version_hint=next(iter(hints)) if len(hints) == 1 else None,
        http=_http(raw.http, targets, scope, {t: p.starts for (t, _), p in group.items()}),
        reported_pool=_pool(running),
        flags=flags,
        disagreements=disagreements,
        notes=notes,
    )


def _with_config(engine: EngineSeries, parts: EngineParts, raw: RawMetrics, target: Target, ranks: int) -> EngineSeries:
    """The engine with what its own config series says of it."""
    pool = vllm.pool_tokens(parts.config, ranks)
    return replace(
        engine,
        flags={f: Flag(v, "metrics", engine.epoch_start) for f, v in vllm.config_flags(parts.config).items()},
        version=vllm.version_hint(raw.present.get(target, frozenset()), parts.config),
        pool_tokens=pool[0] if pool else None,
    )


def _lengths_only(engine: EngineSeries) -> EngineSeries:
    """An engine that left before the present epoch of those that stayed: its lengths are traffic, the rest is past."""
    return replace(engine, samples=NO_SAMPLES, windows=NO_WINDOWS, latencies={})


def _flags(
    running: Mapping[EngineId, EngineParts], series: Mapping[EngineId, EngineSeries]
) -> tuple[dict[str, Flag], tuple[Disagreement, ...]]:
    """What most replicas run with, and where others differ."""
    votes: dict[str, Counter[FlagValue]] = {}
    since: dict[tuple[str, FlagValue], float] = {}
    for name, parts in running.items():
        for flag, value in vllm.config_flags(parts.config).items():
            votes.setdefault(flag, Counter())[value] += 1
            start = series[name].epoch_start
            since[flag, value] = max(start, since.get((flag, value), start))
    flags, disagreements = {}, []
    for flag, counted in votes.items():
        ranked = [Flag(value, "metrics", since[flag, value]) for value, _ in counted.most_common()]
        flags[flag] = ranked[0]
        disagreements += [Disagreement(flag, ranked[0], other) for other in ranked[1:]]
    return flags, tuple(disagreements)


def _pool(running: Mapping[EngineId, EngineParts]) -> ReportedPool | None:
    """The least pool of any engine, because advice must hold on each of them."""
    ranks = Counter(target for target, _ in running)
    pools = [pool for (target, _), p in running.items() if (pool := vllm.pool_tokens(p.config, ranks[target]))]
    if not pools:
        return None
    tokens, source = min(pools)
    sizes = {size for size, _ in pools}
    return ReportedPool(tokens, source if len(sizes) == 1 else f"{source}, the least of {len(pools)} engines")


def _http(
    series: Iterable[RawSeries], targets: set[Target], scope: Scope, starts: Mapping[Target, Sequence[float]]
) -> HttpOutcomes | None:
    """Answers by class of status (`2xx`, or a code), over all processes of the deployment; None without the counter."""
    answers: Counter[str] = Counter()
    for target, mine in _by_target(series, scope).items():
        if target in targets:
            parts: dict[tuple[str, str], list[RawSeries]] = {}
            for one in mine:
                parts.setdefault((one.labels.get("handler", ""), one.labels.get("status", "")), []).append(one)
            gained = np.nansum(Readings.of(parts, starts.get(target, ())).increases(), axis=0)
            for (_, status), count in zip(parts, gained, strict=True):
                answers[status[:1]] += count
    return HttpOutcomes(float(answers["2"]), float(answers["4"]), float(answers["5"])) if answers else None


def _notes(gone: int, hints: set[str | None], series: Iterable[EngineSeries]) -> tuple[str, ...]:
    """What a person should know of how the figures came about."""
    engines = list(series)
    missing = [c for c in vllm.COUNTERS if not any(c in e.windows.deltas for e in engines)]
    missing += [k for k in vllm.HISTOGRAMS if not any(k in {*e.latencies, *e.lengths} for e in engines)]
    notes = [f"nothing counted for: {', '.join(missing)}"] if missing else []
    if gone:
        notes.append(f"{gone} engines left before the present epoch began; only their lengths are used")
    if len(hints) > 1:
        notes.append("replicas run different releases: " + ", ".join(sorted(h or "unknown" for h in hints)))
    return tuple(notes)


def _doubled(group: Iterable[EngineParts]) -> list[str]:
    """Labels that tell apart running-gauges of one engine at one time, other than the `pid` of its API processes."""
    telling: set[str] = set()
    for parts in group:
        running = [s for s in parts.gauges if s.name == vllm.RUNNING and "pid" not in s.labels]
        for one, other in pairwise(running):
            if np.intersect1d(one.times, other.times).size:
                telling |= {k for k, _ in set(one.labels.items()) ^ set(other.labels.items())}
    if not telling:
        return []
    return [f"engines differ only in {', '.join(sorted(telling))} and were taken for one: put it in identity_labels"]
