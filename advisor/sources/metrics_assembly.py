"""Raw series to deployments: what belongs to which engine, which engines live, what their configuration says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise

import numpy as np

from advisor.domain.evidence import Disagreement, EngineRole, EngineSeries, Flag, FlagValue, HttpOutcomes, ReportedPool
from advisor.engines import metrics_of_series
from advisor.engines.metrics import EngineMetrics
from advisor.engines.vllm.metrics import NOMINAL_POOL

from .metrics_canonical import canonical, shared
from .metrics_engine import NO_SAMPLES, NO_WINDOWS, EngineParts, understand
from .metrics_reading import DeploymentMetrics, RawMetrics, Scope, Target
from .metrics_series import PartKey, RawSeries, Readings

COPIES = {"pid", "tp_rank", "pp_rank", "moe_ep_rank"}
"""Labels of the processes of one engine, each of which may show the same gauge."""
REDUNDANT = {"prometheus_replica", "__replica__"}
"""Labels of servers that scrape the same engines, so that one may fail."""
TAKEN_FOR_ONE = "were taken for one"
"""What a note says when engines could not be told apart."""
EngineId = tuple[Target, str]
Identity = tuple[str, ...]


def assemble(raw: RawMetrics, scope: Scope) -> tuple[DeploymentMetrics, ...]:
    """Deployments from raw series of any engines, in the order of their labels.

    Engines of two kinds that carry the same labels are two deployments, told apart by a further label.
    """
    raw = canonical(raw)
    engines = _engines(raw, scope)
    newest = max((e.last_seen for group in engines.values() for e in group.values()), default=0.0)
    alone = Counter(identity for identity, _ in engines)
    return tuple(
        _deployment(_labels(identity, kind, scope, alone), group, raw, scope, newest - scope.alive_seconds)
        for (identity, kind), group in sorted(engines.items())
    )


def _labels(identity: Identity, kind: str, scope: Scope, kinds: Counter[Identity]) -> dict[str, str]:
    labels = dict(zip(scope.identity_labels, identity, strict=True))
    return labels if kinds[identity] == 1 else labels | {"serving_engine": kind}


def _engines(raw: RawMetrics, scope: Scope) -> dict[tuple[Identity, str], dict[EngineId, EngineParts]]:
    """Every series under its engine; an engine is there when its marker gauge is."""
    engines: dict[tuple[Identity, str], dict[EngineId, EngineParts]] = {}
    for series, metrics in _owned(raw.gauges):
        if series.name == metrics.marker:
            target, engine = scope.target(series.labels), series.labels.get("engine", "0")
            group = engines.setdefault((scope.identity(series.labels), metrics.engine), {})
            group.setdefault((target, engine), EngineParts(series.labels.get("instance", ""), engine, metrics))
    for kind in ("gauges", "windows", "whole"):
        for series, metrics in _owned(getattr(raw, kind)):
            group = engines.get((scope.identity(series.labels), metrics.engine), {})
            for parts, share in _owners(group, scope.target(series.labels), series.labels.get("engine")):
                getattr(parts, kind).append(shared(series, share))
    configs, starts = _by_target(raw.configs, scope), _starts(raw.starts, scope)
    for group in engines.values():
        for (target, engine), parts in group.items():
            mine = [c for c in configs.get(target, []) if c.labels.get("engine", engine) == engine]
            begun = starts.get(target, [])
            parts.configs = [c for c in mine if c.name in parts.metrics.config]
            parts.last_start = begun[-1] if begun else None
            parts.starts = [s for s in begun if s >= scope.window.start]
    return engines


def _owned(listed: Iterable[RawSeries]) -> Iterator[tuple[RawSeries, EngineMetrics]]:
    """The series with samples that belong to a known engine, with that engine."""
    for series in listed:
        metrics = metrics_of_series(series.name)
        if metrics is not None and series.times.size:
            yield series, metrics


def _owners(group: Mapping[EngineId, EngineParts], target: Target, engine: str | None) -> list[tuple[EngineParts, int]]:
    """The engines that a series is of, each with the number among which it is shared out."""
    if engine is not None:
        return [(group[target, engine], 1)] if (target, engine) in group else []
    ranks = [parts for (of, _), parts in group.items() if of == target]
    return [(parts, len(ranks)) for parts in ranks]


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
    labels: dict[str, str],
    group: Mapping[EngineId, EngineParts],
    raw: RawMetrics,
    scope: Scope,
    alive_since: float,
) -> DeploymentMetrics:
    metrics = next(iter(group.values())).metrics
    series = {name: understand(parts, lifetime=scope.lifetime) for name, parts in group.items()}
    asleep = {name for name, parts in group.items() if _sleeps(parts, raw.present.get(name[0], frozenset()))}
    alive = {n: parts for n, parts in group.items() if parts.last_seen >= alive_since and n not in asleep}
    present_since = min((series[name].epoch_start for name in alive), default=np.inf)
    gone = asleep | {n for n in series if n not in alive and series[n].epoch_start < present_since}
    targets = {target for target, _ in group}
    running = alive or group
    flags, disagreements = _flags(running, series)
    ranks = Counter(target for target, _ in running)
    series |= {n: _with_config(series[n], parts, raw, n[0], ranks[n[0]]) for n, parts in running.items()}
    hints = {series[name].version for name in running}
    notes = (*_notes(metrics, len(gone - asleep), len(asleep), hints, series.values()), *_doubled(group.values()))
    return DeploymentMetrics(
        labels=labels,
        engines=tuple(_lengths_only(found) if name in gone else found for name, found in sorted(series.items())),
        instances=tuple(sorted({parts.instance for parts in alive.values()})),
        version_hint=next(iter(hints)) if len(hints) == 1 else None,
        http=_http(metrics, raw.http, targets, scope, {t: p.starts for (t, _), p in group.items()}),
        reported_pool=_pool(running),
        flags=flags,
        disagreements=disagreements,
        notes=notes,
        engine_kind=metrics.engine,
        front_end=metrics.front_end,
    )


def _with_config(engine: EngineSeries, parts: EngineParts, raw: RawMetrics, target: Target, ranks: int) -> EngineSeries:
    """The engine with what its own config series says of it."""
    metrics, config = parts.metrics, parts.config
    pool, present = metrics.pool(config, ranks), raw.present.get(target, frozenset())
    return replace(
        engine,
        flags={f: Flag(v, "metrics", engine.epoch_start) for f, v in metrics.flags(config).items()},
        version=metrics.release(present, config),
        pool_tokens=pool[0] if pool else None,
        role=_role(parts, present),
    )


def _role(parts: EngineParts, present: Set[str]) -> EngineRole | None:
    told = {series.labels.get(parts.metrics.role_label or "") for series in parts.gauges}
    if "prefill" in told or "decode" in told:
        return "part" if {"prefill", "decode"} <= told else "prefill" if "prefill" in told else "decode"
    return "part" if present & set(parts.metrics.hands_over) else None


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
        for flag, value in parts.metrics.flags(parts.config).items():
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
    pools = [pool for (target, _), p in running.items() if (pool := p.metrics.pool(p.config, ranks[target]))]
    if not pools:
        return None
    tokens, source = min(pools)
    sizes = {size for size, _ in pools}
    told = source if len(sizes) == 1 else f"{source}, the least of {len(pools)} engines"
    return ReportedPool(tokens, told, nominal=source.startswith(NOMINAL_POOL))


def _http(
    metrics: EngineMetrics,
    series: Iterable[RawSeries],
    targets: set[Target],
    scope: Scope,
    starts: Mapping[Target, Sequence[float]],
) -> HttpOutcomes | None:
    """Answers by class of status (`2xx`, or a code), over all processes of the deployment; None without the counter."""
    told = metrics.answers
    if told is None:
        return None
    answers: Counter[str] = Counter()
    for target, mine in _by_target((s for s in series if s.name in told.names), scope).items():
        if target in targets:
            parts: dict[PartKey, list[RawSeries]] = {}
            for one in mine:
                status = one.labels.get(told.status_label, "")
                path = one.name + "".join(one.labels.get(label, "") for label in told.only)
                parts.setdefault(("answers", f"{status}\0{path}"), []).append(one)
            gained = np.nansum(Readings.of(parts, starts.get(target, ())).increases(), axis=0)
            for (_, part), count in zip(parts, gained, strict=True):
                answers[told.status_class(part.partition("\0")[0])] += count
    return HttpOutcomes(float(answers["2"]), float(answers["4"]), float(answers["5"])) if answers else None


def _sleeps(parts: EngineParts, present: Set[str]) -> bool:
    return parts.metrics.awake is not None and parts.metrics.awake.name in present


def _notes(
    metrics: EngineMetrics, gone: int, asleep: int, hints: set[str | None], series: Iterable[EngineSeries]
) -> tuple[str, ...]:
    """What a person should know of how the figures came about."""
    engines = list(series)
    missing = [c for c in metrics.counters if not any(c in e.windows.deltas for e in engines)]
    missing += [k for k in metrics.histograms if not any(k in {*e.latencies, *e.lengths} for e in engines)]
    missing = [name for name in missing if name not in metrics.occasional]
    notes = [f"nothing counted for: {', '.join(missing)}"] if missing else []
    if gone:
        notes.append(f"{gone} engines left before the present epoch began; only their lengths are used")
    if asleep:
        notes.append(f"{asleep} engines sleep; only their lengths are used")
    if len(hints) > 1:
        notes.append("replicas run different releases: " + ", ".join(sorted(h or "unknown" for h in hints)))
    return tuple(notes)


def _doubled(group: Iterable[EngineParts]) -> list[str]:
    """Labels that tell apart running-gauges of one engine at one time, other than those of its own processes."""
    telling: set[str] = set()
    for parts in group:
        running = [s for s in parts.gauges if s.name == parts.metrics.marker and not s.labels.keys() & COPIES]
        for one, other in pairwise(running):
            if np.intersect1d(one.times, other.times).size:
                telling |= {k for k, _ in set(one.labels.items()) ^ set(other.labels.items())} - REDUNDANT
    if not telling:
        return []
    return [f"engines differ only in {', '.join(sorted(telling))} and {TAKEN_FOR_ONE}: put it in identity_labels"]
