"""Sweeps: load tests at rising concurrency, in our own form or as the usual tools write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.domain.errors import SourceError
from advisor.domain.evidence import FlagValue
from advisor.domain.sweep import Sweep, SweepPoint

from .bounded_file import read_bounded
from .sweep_formats.aiperf import AIPERF
from .sweep_formats.content import parsed
from .sweep_formats.guidellm import GUIDELLM
from .sweep_formats.inference_perf import INFERENCE_PERF
from .sweep_formats.points import PointFile, PointList
from .sweep_formats.run import RanOn, Run, SweepFormat
from .sweep_formats.serving_benchmark import SERVING_BENCHMARK
from .yaml_file import YamlDocument, load_yaml, validate

FORMATS: tuple[SweepFormat, ...] = (SERVING_BENCHMARK, GUIDELLM, AIPERF, INFERENCE_PERF)
MAX_BYTES = 64 * 2**20
MAX_FILES = 500

_OWN = (".yaml", ".yml")
_READ = (*_OWN, ".json", ".jsonl")
"""What is read of a directory; a table or a printed result is read when it is named."""

_LEVEL = re.compile(
    r"(?<![a-z])(?:conc(?:urrency)?|c|n|bs|batch|rate|qps|rps|stage|run|rep|trial|seed)[-_.]?\d+(?:\.\d+)?"
    r"|\d+(?:\.\d+)?(?:qps|rps)|\d{6,}",
    re.IGNORECASE,
)
"""What may differ between the names of files of one sweep: the load, the repetition, the date."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """One run of a file: its point, or why it is none."""

    file: Path
    point: SweepPoint | str
    ran_on: RanOn = field(default_factory=RanOn)
    version: str | None = None
    in_flight: bool = True


def read_sweep(path: Path) -> Sweep:
    """The sweep in a file, or in all result files of a directory; see `read_sweeps`."""
    return read_sweeps((path,))


def read_sweeps(paths: Sequence[Path], where: Mapping[str, str] | None = None) -> Sweep:
    """One sweep out of several files (tools that write one a load level) or directories, by rising concurrency.

    `where` keeps only runs whose results say so (`{"isl": "2048"}`). Runs that cannot be points are left out, and
    `source` says how many and why. Raises SourceError when none is left, when a file is of no known form or too large,
    or when the runs differ in more than load: model, flags, lengths, hardware; ConfigError, with the place, for
    mistakes in a list of points that somebody wrote.
    """
    files = [file for path in paths for file in _files(path)]
    readings = [reading for file in files for reading in _readings(file, where or {})]
    points = [reading for reading in readings if isinstance(reading.point, SweepPoint)]
    left_out = [reading.point for reading in readings if isinstance(reading.point, str)]
    named = ", ".join(str(path) for path in paths[:3])
    if not points:
        nothing = "no run is as --where says" if where else "no result files"
        raise SourceError(f"{named}: no usable run: {left_out[0] if left_out else nothing}", permanent=True)
    _check_alike(named, points)
    model = next((reading.ran_on.model for reading in points if reading.ran_on.model), None)
    return Sweep(
        points=tuple(sorted((r.point for r in points if isinstance(r.point, SweepPoint)), key=_by_load)),
        source=_source(files, model, left_out),
        model=model,
        engine_version=next((r.version for r in points if r.version), None),
        flags={name: value for r in points for name, value in r.ran_on.flags.items()},
        in_flight=any(r.in_flight for r in points),
    )


def _by_load(point: SweepPoint) -> tuple[float, float]:
    return point.concurrency, point.tpot_seconds


def _check_alike(named: str, points: Sequence[_Reading]) -> None:
    """One sweep has one model, one set of flags, one data set: only the load differs."""
    models = {reading.ran_on.model for reading in points if reading.ran_on.model}
    if len(models) > 1:
        tested = ", ".join(sorted(models)[:3])
        raise SourceError(f"{named}: tests of different models ({tested}); give those of one", permanent=True)
    values: dict[str, set[str]] = {}
    for reading in points:
        for key, value in reading.ran_on.conditions.items():
            values.setdefault(key, set()).add(value)
    mixed = {key: sorted(found)[:3] for key, found in values.items() if len(found) > 1}
    if mixed:
        told = "; ".join(f"{key} {', '.join(found)}" for key, found in list(mixed.items())[:4])
        raise SourceError(
            f"{named}: runs that differ in more than load ({told}); give those of one (--where KEY=VALUE)",
            permanent=True,
        )
    _check_names(named, points)


def _check_names(named: str, points: Sequence[_Reading]) -> None:
    """Where results say nothing of their sharding, the names of their files may: 1p3d_conc32 is not 2p2d_conc32."""
    kinds: dict[float, dict[str, str]] = {}
    for reading in points:
        if isinstance(reading.point, SweepPoint):
            level = kinds.setdefault(round(reading.point.concurrency), {})
            level[_LEVEL.sub("", reading.file.stem)] = reading.file.name
    for concurrency, names in kinds.items():
        if len(names) > 1:
            told = ", ".join(list(names.values())[:3])
            raise SourceError(
                f"{named}: concurrency {concurrency:g} in files named unlike ({told}), perhaps of different set-ups; "
                "give those of one",
                permanent=True,
            )


def _source(files: Sequence[Path], model: str | None, left_out: Sequence[str]) -> str:
    name = files[0].name if len(files) == 1 else f"{len(files)} files beginning with {files[0].name}"
    tested = f" of {model}" if model else ""
    return f"sweep {name}{tested}" + (f"; runs left out: {len(left_out)} ({left_out[0]})" if left_out else "")


def _files(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return (path,)
    files = sorted(file for file in path.iterdir() if file.suffix in _READ and file.is_file())
    if len(files) > MAX_FILES:
        raise SourceError(f"{path}: more than {MAX_FILES} result files; give those of one sweep", permanent=True)
    return files


def _readings(file: Path, where: Mapping[str, str]) -> Iterator[_Reading]:
    if file.suffix in _OWN:
        yield from _own(load_yaml(file))
        return
    raw = read_bounded(file, most=MAX_BYTES, hint="write it without details of every request")
    text = raw.decode("utf-8", "replace")
    try:
        data = parsed(text)
    except ValueError as reason:
        raise SourceError(f"{file}: {reason}", permanent=True) from None
    if _is_own(data):
        yield from _own(YamlDocument(file, text))
        return
    format_, runs = _recognised(data, file)
    for run in runs:
        if not all(_says(run, key, value) for key, value in where.items()):
            continue
        try:
            yield _Reading(file, format_.point(run), format_.ran_on(run))
        except ValueError as reason:
            yield _Reading(file, f"{file.name} {reason}")


def _says(run: Run, key: str, value: str) -> bool:
    stated = run.get(key)
    return str(stated) == value or (isinstance(stated, float) and f"{stated:g}" == value)


def _own(document: YamlDocument) -> Iterator[_Reading]:
    if isinstance(document.data, list):
        for point in validate(document, PointList).root:
            yield _Reading(document.path, point.as_sweep_point(), in_flight=False)
        return
    file = validate(document, PointFile)
    stated = RanOn(file.model, _flags(document, file))
    for point in file.sweep:
        yield _Reading(document.path, point.as_sweep_point(), stated, file.engine_version, file.in_flight)


def _flags(document: YamlDocument, file: PointFile) -> Mapping[str, FlagValue]:
    try:
        return file.running_flags()
    except ValueError as error:
        raise SourceError(f"{document.path}: flags: {error}", permanent=True) from None


def _is_own(data: Any) -> bool:
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return "concurrency" in data[0] and "completed" not in data[0]
    return isinstance(data, dict) and "sweep" in data


def _recognised(data: Any, file: Path) -> tuple[SweepFormat, Sequence[Run]]:
    for format_ in FORMATS:
        if runs := list(format_.runs(data)):
            return format_, runs
    raise SourceError(
        f"{file}: no known form of sweep; give points, or results of vllm bench serve, SGLang bench_serving, GuideLLM, "
        "AIPerf, inference-perf, genai-perf",
        permanent=True,
    )
