"""What files and settings state of deployments: evidence, sweeps, the model, flags, objectives."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from advisor import merge
from advisor.domain.errors import UsageError
from advisor.domain.evidence import Evidence, Window
from advisor.domain.report import SourceState
from advisor.settings import Settings
from advisor.sources.evidence_file import read_evidence_file
from advisor.sources.model_config import read_model_config
from advisor.sources.sweep import read_sweeps

from .gathered import Gathered


def read_evidence(settings: Settings, window: Window, out: Gathered) -> None:
    """Deployments that evidence files state. Raises UsageError where two state the same."""
    for path in settings.evidence:
        stated = {evidence.name: evidence for evidence in read_evidence_file(path, window)}
        if twice := stated.keys() & out.deployments:
            raise UsageError(f"{path}: another evidence file states {min(twice)!r} too: put it into one of them")
        out.deployments |= stated
        count = f"{len(stated)} deployment{'' if len(stated) == 1 else 's'}"
        out.sources.append(SourceState(f"evidence {path.name}", "ok", count))


def read_files(settings: Settings, out: Gathered) -> None:
    """Sweeps, the model and flags, each of the deployment it is said for, else of the only one."""
    if settings.sweeps:
        name = out.only("--sweep", "deployments.NAME.sweeps")
        _sweep(name, settings.sweeps, out)
    if settings.model_config_file is not None:
        name = out.only("--model-config", "deployments.NAME.model_config_file")
        _model(name, settings.model_config_file, out)
    if settings.flags and out.deployments:
        name = out.only("flags", "deployments.NAME.flags")
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


def with_settings(settings: Settings, evidence: Evidence) -> Evidence:
    """What the configuration says of a deployment, where the sources leave it open: flags, objectives, workload."""
    own = settings.deployments.get(evidence.name)
    flags = dict(own.flags) if own else {}
    evidence = merge.with_plateau(merge.with_flags(evidence, flags, "config"))
    workload = own.workload if own and own.workload else None
    if workload is None:
        workload = settings.workload if "workload" in settings.model_fields_set else evidence.workload
    return replace(evidence, slo=settings.slo_of(evidence.name, evidence.slo), workload=workload)
