"""Imported sweeps, kept beside the daemon's store: it uses each until the epoch of its deployment changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from advisor.domain.errors import UsageError
from advisor.domain.sweep import Sweep, SweepPoint
from advisor.settings import DeploymentOptions, Settings

FOLDER = "sweeps"
LONGEST_NAME = 240


def path_of(store: Path, deployment: str) -> Path:
    """Where the sweep of a deployment lies: its percent-encoded name, so that no name leaves the folder.

    Raises UsageError for a name that no file can have.
    """
    name = quote(deployment, safe="").replace(".", "%2E")
    if len(name) > LONGEST_NAME:
        raise UsageError(f"{deployment[:60]!r}: a name too long to keep a sweep under; set deployments.NAME.sweeps")
    return store.parent / FOLDER / f"{name}.json"


def keep(store: Path, deployment: str, sweep: Sweep) -> Path:
    """Write the sweep down in place of an earlier one; the daemon takes it up at its next evaluation.

    Raises OSError where the folder cannot be written.
    """
    path = path_of(store, deployment)
    path.parent.mkdir(exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(_document(sweep), allow_nan=False, indent=1) + "\n")
    draft.replace(path)
    return path


def with_kept(settings: Settings) -> Settings:
    """The settings with the kept sweep of every deployment that configures none of its own."""
    known = dict(settings.deployments)
    for path in sorted((settings.store.path.parent / FOLDER).glob("*.json")):
        name = unquote(path.stem)
        options = known.get(name, DeploymentOptions())
        if not options.sweeps:
            known[name] = options.model_copy(update={"sweeps": (path,)})
    return settings.model_copy(update={"deployments": known})


def _document(sweep: Sweep) -> Mapping[str, Any]:
    """The sweep in our own form. A concurrency that was measured several times is kept at its slowest."""
    slowest: dict[float, SweepPoint] = {}
    for point in sorted(sweep.points, key=lambda p: p.tpot_seconds):
        slowest[point.concurrency] = point
    return {
        "model": sweep.model,
        "engine_version": sweep.engine_version,
        "flags": dict(sweep.flags),
        "in_flight": sweep.in_flight,
        "sweep": [_point(slowest[concurrency]) for concurrency in sorted(slowest)],
    }


def _point(point: SweepPoint) -> Mapping[str, Any]:
    return {
        "concurrency": point.concurrency,
        "tpot": point.tpot_seconds,
        "ttft": point.ttft_seconds,
        "requests_per_second": point.requests_per_second,
        "statistic": point.statistic,
        "requests": point.requests,
        "computed": point.computed,
        "at_most": point.at_most,
        "prompt_tokens": point.prompt_tokens,
        "output_tokens": point.output_tokens,
    }
