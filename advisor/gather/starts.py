"""How engines were started: by their processes on this host, and the files that start them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from advisor import started
from advisor.domain.evidence import Window
from advisor.settings import Settings
from advisor.sources.manifests import Declared, read_manifest
from advisor.sources.metrics_reading import DeploymentMetrics
from advisor.sources.processes import ProcessReading

from .gathered import Gathered


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
