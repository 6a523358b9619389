"""The world -> evidence: reads every source that the settings name, joins them by deployment, and says how each went.

A source that fails becomes a line in `sources`; the others are read all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from advisor import merge, started
from advisor.domain.errors import SourceError, UsageError
from advisor.domain.evidence import Evidence, Window
from advisor.domain.report import SourceState
from advisor.engines.startup import StartupFacts
from advisor.owners import Owners, RequestLogs, read_from_files
from advisor.settings import Settings
from advisor.sources.engine_endpoint import read_engine
from advisor.sources.evidence_file import read_evidence_file
from advisor.sources.manifests import Declared, read_manifest
from advisor.sources.metrics_reading import DeploymentMetrics, MetricsReading
from advisor.sources.model_config import read_model_config
from advisor.sources.processes import ProcessReading, read_processes
from advisor.sources.prometheus import read_prometheus
from advisor.sources.startup_log import read_startup_log
from advisor.sources.sweep import read_sweeps

Read = TypeVar("Read")


@dataclass(slots=True)
class Gathered:
    """What was read. `queries` and `samples` are what engine metrics cost."""

    deployments: dict[str, Evidence] = field(default_factory=dict)
    sources: list[SourceState] = field(default_factory=list)
    queries: int = 0
    samples: int = 0
    notes: list[str] = field(default_factory=list)

    def attempt(self, name: str, read: Callable[[], Read]) -> Read | None:
        """The result of reading a source, or None with the failure noted."""
        try:
            return read()
        except SourceError as error:
            self.sources.append(SourceState(name, "failed", str(error)))
            return None


def gather(settings: Settings, window: Window, request_logs: RequestLogs = read_from_files) -> Gathered:
    """Evidence of every deployment that any source knows. Raises UsageError for what cannot be joined."""
    out = Gathered()
    for path in settings.evidence:
        stated = {evidence.name: evidence for evidence in read_evidence_file(path, window)}
        if twice := stated.keys() & out.deployments:
            raise UsageError(f"{path}: another evidence file states {min(twice)!r} too: put it into one of them")
        out.deployments |= stated
        out.sources.append(SourceState(f"evidence {path.name}", "ok", _deployments(len(stated))))
    running = out.attempt("processes", read_processes) if settings.processes else None
    metrics = _metrics(settings, window, out, running)
    _logs(settings, window, metrics, out, request_logs)
    _startup_logs(settings, window, out)
    if running is not None:
        _processes(running, metrics.values(), window, out)
    _manifests(settings, window, out)
    _files(settings, out)
    for name, evidence in list(out.deployments.items()):
        out.deployments[name] = _with_settings(settings, evidence)
    return out


def _deployments(count: int) -> str:
    return f"{count} deployment{'' if count == 1 else 's'}"


def names_of(found: Iterable[DeploymentMetrics]) -> dict[str, DeploymentMetrics]:
    """Deployments by name: `model_name` when that is unique, else every identity label joined by `/`."""
    listed = list(found)
    models = Counter(d.labels.get("model_name", "") for d in listed)
    named: dict[str, DeploymentMetrics] = {}
    for one in listed:
        model = one.labels.get("model_name", "")
        name = model if model and models[model] == 1 else "/".join(v for v in one.labels.values() if v)
        named[name or "unnamed"] = one
    return named


def _metrics(
    settings: Settings, window: Window, out: Gathered, running: ProcessReading | None
) -> dict[str, DeploymentMetrics]:
    fleet: tuple[DeploymentMetrics, ...] = ()
    if settings.prometheus is not None:
        fleet = _noted(out, out.attempt("prometheus", partial(read_prometheus, settings.prometheus, window)))
    asked = [
        deployment
        for engine in settings.engines
        for deployment in _noted(out, out.attempt("engine", partial(read_engine, engine, window.end)))
    ]
    scraped = {i for metrics in fleet for i in metrics.instances}
    alone = [d for d in asked if scraped.isdisjoint(d.instances)]
    named = names_of([*fleet, *_by_model(alone)])
    for name, found in named.items():
        metrics = found
        for engine in asked:
            if engine not in alone and not set(engine.instances).isdisjoint(found.instances):
                metrics = merge.with_endpoints(metrics, engine)
        if running is not None:
            metrics = started.with_processes(metrics, running)
        metrics = _with_replica_flags(settings, name, metrics, out)
        out.deployments[name] = merge.with_metrics(_known(out, name, window), metrics)
        out.notes += [f"{name}: {note}" for note in metrics.notes]
    return named


def _with_replica_flags(settings: Settings, name: str, metrics: DeploymentMetrics, out: Gathered) -> DeploymentMetrics:
    own = settings.deployments.get(name)
    if own is None or not own.replica_flags:
        return metrics
    for stranger in sorted(own.replica_flags.keys() - {engine.instance for engine in metrics.engines}):
        out.sources.append(
            SourceState(f"replica {stranger} of {name}", "partial", "configured, but no source shows it")
        )
    return merge.with_replica_flags(metrics, own.replica_flags, own.flags)


def _noted(out: Gathered, reading: MetricsReading | None) -> tuple[DeploymentMetrics, ...]:
    if reading is None:
        return ()
    out.sources.append(reading.state)
    out.queries += reading.queries
    out.samples += reading.samples
    return reading.deployments


def _by_model(engines: Iterable[DeploymentMetrics]) -> list[DeploymentMetrics]:
    """Engines that were asked one by one: those of one model are replicas of one deployment."""
    models: dict[str, list[DeploymentMetrics]] = {}
    for engine in engines:
        models.setdefault(engine.labels.get("model_name", ""), []).append(engine)
    return [merge.as_one(replicas) for replicas in models.values()]


def _logs(
    settings: Settings,
    window: Window,
    metrics: Mapping[str, DeploymentMetrics],
    out: Gathered,
    request_logs: RequestLogs,
) -> None:
    if settings.logs is None:
        return
    # Without a source of metrics the log itself says which deployments there are.
    sure = bool(metrics) or (settings.prometheus is None and not settings.engines)
    apart = {engine.instance for evidence in out.deployments.values() for engine in evidence.apart}
    owners = Owners.of(metrics, out.deployments, sure=sure, since=window.start, apart=apart)
    reading = request_logs(settings.logs, window, owners)
    out.sources.append(reading.state)
    for name, log in reading.logs.items():
        out.deployments[name] = replace(_known(out, name, window), log=log)
    if reading.strangers:
        told = ", ".join(f"{model} ({count:,})" for model, count in list(reading.strangers.items())[:5])
        out.sources.append(
            SourceState("request log models", "partial", f"no deployment claims {told}: map them in logs.aliases")
        )


def _startup_logs(settings: Settings, window: Window, out: Gathered) -> None:
    for path in settings.startup_logs:
        facts = _startup(path, out)
        if facts is not None:
            name = _served(facts, window, out)
            out.deployments[name] = merge.with_startup(out.deployments[name], facts)
    for name, options in settings.deployments.items():
        for path in options.startup_logs if name in out.deployments else ():
            facts = _startup(path, out)
            if facts is not None:
                out.deployments[name] = merge.with_startup(out.deployments[name], facts)


def _startup(path: Path, out: Gathered) -> StartupFacts | None:
    name = f"start-up log {path.name}"
    facts = out.attempt(name, lambda: read_startup_log(path))
    if facts is not None:
        out.sources.append(SourceState(name, "ok", merge.startup_summary(facts)))
    return facts


def _served(facts: StartupFacts, window: Window, out: Gathered) -> str:
    """The deployment that a start-up log belongs to: by its served names, else the only one there is."""
    for served in facts.served_names:
        if served in out.deployments:
            return served
    if not out.deployments:
        name = next(iter(facts.served_names), "unnamed")
        out.deployments[name] = Evidence(name=name, window=window)
        return name
    return _only(out, "a start-up log whose model is not among the deployments", "deployments.NAME.startup_logs")


def _processes(running: ProcessReading, fleet: Iterable[DeploymentMetrics], window: Window, out: Gathered) -> None:
    """Those that are scraped have told their flags already; the others are joined by the model that they serve."""
    rest = started.declared_by_processes(started.unscraped(running, fleet))
    joined = started.by_model(out.deployments, rest, "process", window)
    out.deployments = joined.deployments
    out.sources.append(started.process_state(running, joined.notes))


def _manifests(settings: Settings, window: Window, out: Gathered) -> None:
    for path in settings.manifests:
        engines, notes = _declared(path, out)
        joined = started.by_model(out.deployments, engines, "manifest", window)
        out.deployments = joined.deployments
        if engines:
            out.sources.append(started.manifest_state(path.name, engines, (*notes, *joined.notes)))
    for name, options in settings.deployments.items():
        for path in options.manifests if name in out.deployments else ():
            engines, notes = _declared(path, out)
            if engines:
                out.deployments[name], differing = started.to_one(out.deployments[name], engines, "manifest")
                out.sources.append(started.manifest_state(path.name, engines, (*notes, *differing)))


def _declared(path: Path, out: Gathered) -> tuple[tuple[Declared, ...], tuple[str, ...]]:
    reading = out.attempt(f"manifest {path.name}", lambda: read_manifest(path))
    return (reading.engines, reading.notes) if reading else ((), ())


def _files(settings: Settings, out: Gathered) -> None:
    if settings.sweeps:
        name = _only(out, "--sweep", "deployments.NAME.sweeps")
        _sweep(name, settings.sweeps, out)
    if settings.model_config_file is not None:
        name = _only(out, "--model-config", "deployments.NAME.model_config_file")
        _model(name, settings.model_config_file, out)
    if settings.flags and out.deployments:
        name = _only(out, "flags", "deployments.NAME.flags")
        out.deployments[name] = merge.with_flags(out.deployments[name], settings.flags, "config")
    for name, options in settings.deployments.items():
        if name not in out.deployments:
            out.sources.append(SourceState(f"deployment {name}", "partial", "configured, but no source shows it"))
            continue
        if options.sweeps:
            _sweep(name, options.sweeps, out)
        if options.model_config_file is not None:
            _model(name, options.model_config_file, out)


def _sweep(name: str, paths: tuple[Path, ...], out: Gathered) -> None:
    sweep = out.attempt("sweep", lambda: read_sweeps(paths))
    if sweep is not None:
        out.sources.append(SourceState("sweep", "ok", f"{len(sweep.points)} points from {sweep.source}"))
        out.deployments[name] = replace(out.deployments[name], sweep=sweep)


def _model(name: str, path: Path, out: Gathered) -> None:
    config = out.attempt(f"model config {path.name}", partial(read_model_config, path))
    evidence = out.deployments[name]
    if config is not None:
        out.deployments[name] = replace(evidence, model=replace(evidence.model, config=config))


def _with_settings(settings: Settings, evidence: Evidence) -> Evidence:
    own = settings.deployments.get(evidence.name)
    flags = dict(own.flags) if own else {}
    evidence = merge.with_plateau(merge.with_flags(evidence, flags, "config"))
    workload = own.workload if own and own.workload else None
    if workload is None:
        workload = settings.workload if "workload" in settings.model_fields_set else evidence.workload
    return replace(evidence, slo=settings.slo_of(evidence.name, evidence.slo), workload=workload)


def _known(out: Gathered, name: str, window: Window) -> Evidence:
    return out.deployments.get(name) or Evidence(name=name, window=window)


def _only(out: Gathered, what: str, setting: str) -> str:
    if len(out.deployments) != 1:
        raise UsageError(
            f"{what}: {len(out.deployments)} deployments, so say which one in the configuration ({setting})"
        )
    return next(iter(out.deployments))
