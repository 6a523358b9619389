"""Engine metrics and what engines say of themselves, joined to deployments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from advisor import merge, started
from advisor.domain.evidence import Window
from advisor.domain.report import SourceState
from advisor.settings import Settings
from advisor.sources.engine_endpoint import read_engine
from advisor.sources.metrics_reading import DeploymentMetrics, MetricsReading
from advisor.sources.processes import ProcessReading
from advisor.sources.prometheus import read_prometheus

from .gathered import Gathered


def read_fleet(
    settings: Settings, window: Window, out: Gathered, running: ProcessReading | None
) -> dict[str, DeploymentMetrics]:
    """Deployments that Prometheus and engines show, by name; what an engine says itself is added."""
    reading = None
    if settings.prometheus is not None:
        reading = out.attempt("prometheus", partial(read_prometheus, settings.prometheus, window))
    fleet = _noted(out, reading)
    partly = reading is not None and reading.state.status == "partial"
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
        out.deployments[name] = replace(
            merge.with_metrics(out.known(name, window), metrics), read_in_part=partly and found in fleet
        )
        out.notes += [f"{name}: {note}" for note in metrics.notes]
    return named


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
