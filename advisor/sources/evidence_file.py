"""Evidence files: what is known of deployments, written down by people or by `advisor show -o evidence`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from advisor.domain import quantity
from advisor.domain.catalogue import CATALOGUE, WORDS, FactSpec
from advisor.domain.errors import ConfigError, SourceError
from advisor.domain.evidence import (
    Evidence,
    Flag,
    FlagValue,
    GpuInfo,
    ModelInfo,
    ReportedPool,
    Slo,
    StatedPercentiles,
    Window,
)
from advisor.domain.fact import Fact
from advisor.domain.histogram import JointCounts, TokenCounts
from advisor.domain.sweep import Sweep
from advisor.engines import FLAG_NAMES, canonical, normalise

from .evidence_parts import DeploymentPart, EvidenceFile, RequestsPart, percentile
from .model_config import read_model_config
from .yaml_file import YamlDocument, load_yaml, nearest, nearly, validate

_MAY_EXCEED_ONE = {
    "preempted_share",
    "max_model_len_cost_ratio",
    "replica_imbalance",
    "demand_over_capacity",
    "kv_pool_relative_error",
}


def read_evidence_file(path: Path, window: Window) -> tuple[Evidence, ...]:
    """The deployments of an evidence file (YAML or JSON), each said to hold over `window`.

    Raises ConfigError with the place of what is wrong: unknown keys, wrong types, impossible values.
    """
    document = load_yaml(path)
    file = validate(document, EvidenceFile)
    return tuple(_evidence(document, name, part, window) for name, part in file.deployments.items())


def _evidence(document: YamlDocument, name: str, part: DeploymentPart, window: Window) -> Evidence:
    here, stated = ("deployments", name), f"stated in {document.path.name}"
    points = sorted((point.as_sweep_point() for point in part.sweep or ()), key=lambda point: point.concurrency)
    return Evidence(
        name=name,
        window=window,
        engine=part.engine,
        engine_version=part.engine_version,
        replicas=part.replicas,
        workload=part.workload,
        slo=Slo(part.slo.tpot, part.slo.itl, part.slo.ttft, part.slo.percentile),
        flags=_flags(document, (*here, "flags"), part.engine, part.flags),
        model=_model(document, here, part),
        gpu=GpuInfo(part.gpu.memory, part.gpu.headroom, part.gpu.kv_available),
        reported_pool=ReportedPool(part.reported.kv_pool_tokens, stated) if part.reported else None,
        percentiles=_percentiles(part),
        totals=_totals(part.requests),
        joint=_joint(part.requests),
        sweep=Sweep(tuple(points), stated) if points else None,
        max_concurrency_seen=part.max_concurrency_seen,
        stated=_facts(document, (*here, "facts"), part.facts, stated),
    )


def _model(document: YamlDocument, here: tuple[str, ...], part: DeploymentPart) -> ModelInfo:
    config: Mapping[str, Any] | str | None = part.model.config
    if isinstance(config, str):
        try:
            config = read_model_config(document.path.parent / config)
        except SourceError as error:
            raise ConfigError(f"{document.place((*here, 'model', 'config'))}: {error}") from None
    return ModelInfo(config, part.model.weights, part.model.kv_per_token, part.model.max_context)


def _percentiles(part: DeploymentPart) -> StatedPercentiles | None:
    stated = part.total_tokens
    return StatedPercentiles({percentile(name): float(tokens) for name, tokens in stated.items()}) if stated else None


def _totals(part: RequestsPart | None) -> TokenCounts | None:
    if part is None or not part.total:
        return None
    rows = np.asarray(part.total, np.int64)
    return TokenCounts.of(rows[:, 0], rows[:, 1])


def _joint(part: RequestsPart | None) -> JointCounts | None:
    if part is None or not part.joint:
        return None
    rows = np.asarray(part.joint, np.int64)
    return JointCounts.of(rows[:, 0], rows[:, 1], rows[:, 2])


def _flags(document: YamlDocument, here: tuple[str, ...], engine: str, stated: Mapping[str, Any]) -> Mapping[str, Flag]:
    flags: dict[str, Flag] = {}
    for written, value in stated.items():
        name = written.removeprefix("--").replace("-", "_")
        if name not in FLAG_NAMES and (meant := nearly(name, FLAG_NAMES)):
            raise ConfigError(f"{document.place((*here, written))}: unknown flag {name!r}; did you mean {meant!r}?")
        if value is not None:
            common, plain = _flag_value(document, (*here, written), engine, name, value)
            flags[common] = Flag(plain, "config")
    return flags


def _flag_value(
    document: YamlDocument, here: tuple[str, ...], engine: str, name: str, value: Any
) -> tuple[str, FlagValue]:
    try:
        return canonical(engine, name, normalise(name, json.dumps(value) if isinstance(value, dict) else value))
    except ValueError as error:
        raise ConfigError(f"{document.place(here)}: {'.'.join(here)}: {error}") from None


def _facts(document: YamlDocument, here: tuple[str, ...], stated: Mapping[str, Any], source: str) -> Mapping[str, Fact]:
    facts: dict[str, Fact] = {}
    for name, value in stated.items():
        place = document.place((*here, name))
        if name not in CATALOGUE:
            raise ConfigError(f"{place}: unknown fact {name[:60]!r}; {nearest(name, CATALOGUE)}")
        try:
            facts[name] = Fact(value=_figure(CATALOGUE[name], value), source=source)
        except ValueError as error:
            raise ConfigError(f"{place}: {'.'.join((*here, name))}: {error}") from None
    return facts


def _figure(spec: FactSpec, value: Any) -> float | str:
    if words := WORDS.get(spec.name):
        if value in words:
            return str(value)
        raise ValueError(f"expected one of {', '.join(words)}")
    number = _READERS.get(spec.unit, _plain)(value)
    most = 1.0 if spec.unit == "ratio" and spec.name not in _MAY_EXCEED_ONE else 1e15
    least = -1.0 if spec.name == "kv_pool_relative_error" else 0.0
    if not least <= number <= most:
        raise ValueError(f"{str(value)[:40]!r} lies outside {least:g} to {most:g}" + _HINTS.get(spec.unit, ""))
    return number


def _plain(value: str | float) -> float:
    return quantity.parse(value, quantity.COUNT, bare="")


_READERS: Mapping[str, Callable[[str | float], float]] = {
    "ratio": quantity.ratio,
    "seconds": quantity.seconds,
    "bytes": quantity.size_bytes,
}
_HINTS = {"ratio": "; six percent is 6% or 0.06"}
