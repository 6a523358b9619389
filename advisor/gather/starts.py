"""How engines were started: by their logs, their processes on this host, and the files that start them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from advisor import merge, started
from advisor.domain.evidence import EngineSeries, Evidence, Window
from advisor.domain.report import SourceState
from advisor.engines.startup import StartupFacts
from advisor.settings import Settings
from advisor.sources.load_log import read_load
from advisor.sources.manifests import Declared, read_manifest
from advisor.sources.metrics_reading import DeploymentMetrics
from advisor.sources.processes import ProcessReading
from advisor.sources.startup_log import read_startup_log

from .gathered import Gathered


def read_startup_logs(settings: Settings, window: Window, out: Gathered) -> None:
    """Start-up logs, joined by the served name unless the configuration says whose they are."""
    loads: dict[str, list[EngineSeries]] = {}
    for path in settings.startup_logs:
        facts = _startup(path, out)
        if facts is not None:
            _join(_served(facts, window, out), path, facts, loads, window, out)
    for name, options in settings.deployments.items():
        for path in options.startup_logs if name in out.deployments else ():
            facts = _startup(path, out)
            if facts is not None:
                _join(name, path, facts, loads, window, out)
    for name, engines in loads.items():
        out.deployments[name] = merge.with_load(out.deployments[name], engines)


def _join(
    name: str, path: Path, facts: StartupFacts, loads: dict[str, list[EngineSeries]], window: Window, out: Gathered
) -> None:
    out.deployments[name] = merge.with_startup(out.deployments[name], facts)
    found = out.attempt(f"load in {path.name}", lambda: read_load(path, facts.engine, window)) or ()
    told = f", load of {len(found)} engine{'' if len(found) == 1 else 's'}" if found else ""
    out.sources.append(SourceState(_named(path), "ok", merge.startup_summary(facts) + told))
    loads.setdefault(name, []).extend(found)


def _named(path: Path) -> str:
    return f"start-up log {path.name}"


def _startup(path: Path, out: Gathered) -> StartupFacts | None:
    return out.attempt(_named(path), lambda: read_startup_log(path))


def _served(facts: StartupFacts, window: Window, out: Gathered) -> str:
    """The deployment that a start-up log belongs to: by its served names, else the only one there is."""
    for served in facts.served_names:
        if served in out.deployments:
            return served
    if not out.deployments:
        name = next(iter(facts.served_names), "unnamed")
        out.deployments[name] = Evidence(name=name, window=window)
        return name
    return out.only("a start-up log whose model is not among the deployments", "deployments.NAME.startup_logs")


def join_processes(running: ProcessReading, fleet: Iterable[DeploymentMetrics], window: Window, out: Gathered) -> None:
    """Those that are scraped have told their flags already; the others are joined by the model that they serve."""
    rest = started.declared_by_processes(started.unscraped(running, fleet))
    joined = started.by_model(out.deployments, rest, "process", window)
    out.deployments = joined.deployments
    out.sources.append(started.process_state(running, joined.notes))


def read_manifests(settings: Settings, window: Window, out: Gathered) -> None:
    """Manifests, joined by the served name unless the configuration says whose they are."""
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
