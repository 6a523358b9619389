"""Sweeps: load tests at rising concurrency, in our own form or as the usual tools write them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Sweep, SweepPoint

from .sweep_formats.guidellm import GUIDELLM
from .sweep_formats.points import PointFile, PointList
from .sweep_formats.run import Run, SweepFormat
from .sweep_formats.serving_benchmark import SERVING_BENCHMARK
from .yaml_file import YamlDocument, load_yaml, validate

FORMATS: tuple[SweepFormat, ...] = (SERVING_BENCHMARK, GUIDELLM)
MAX_BYTES = 64 * 2**20
MAX_FILES = 500

_OWN = (".yaml", ".yml")
_READ = (*_OWN, ".json", ".jsonl")


def read_sweep(path: Path) -> Sweep:
    """The sweep in a file, or in all result files of a directory; see `read_sweeps`."""
    return read_sweeps((path,))


def read_sweeps(paths: Sequence[Path]) -> Sweep:
    """One sweep out of several files (tools that write one a load level) or directories, by rising concurrency.

    Runs that cannot be points are left out, and `source` says how many and why. Raises SourceError when none is left,
    when a file is of no known form or too large, or when the files test different models; ConfigError, with the place,
    for mistakes in a list of points that somebody wrote.
    """
    points: list[SweepPoint] = []
    left_out: list[str] = []
    models: set[str] = set()
    files = [file for path in paths for file in _files(path)]
    for file in files:
        for point, model in _points(file):
            if isinstance(point, str):
                left_out.append(point)
            else:
                points.append(point)
                models |= {model} if model else set()
    _check(paths, points, left_out, models)
    points.sort(key=lambda point: (point.concurrency, point.tpot_seconds))
    return Sweep(tuple(points), _source(files, models, left_out))


def _check(paths: Sequence[Path], points: list[SweepPoint], left_out: list[str], models: set[str]) -> None:
    where = ", ".join(str(path) for path in paths[:3])
    if not points:
        raise SourceError(f"{where}: no usable run: {left_out[0] if left_out else 'no result files'}", permanent=True)
    if len(models) > 1:
        tested = ", ".join(sorted(models)[:3])
        raise SourceError(f"{where}: tests of different models ({tested}); give those of one", permanent=True)


def _source(files: Sequence[Path], models: set[str], left_out: Sequence[str]) -> str:
    name = files[0].name if len(files) == 1 else f"{len(files)} files beginning with {files[0].name}"
    tested = f" of {models.pop()}" if models else ""
    return f"sweep {name}{tested}" + (f"; runs left out: {len(left_out)} ({left_out[0]})" if left_out else "")


def _files(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return (path,)
    files = sorted(file for file in path.iterdir() if file.suffix in _READ and file.is_file())
    if len(files) > MAX_FILES:
        raise SourceError(f"{path}: more than {MAX_FILES} result files; give those of one sweep", permanent=True)
    return files


def _points(file: Path) -> Iterator[tuple[SweepPoint | str, str | None]]:
    if file.suffix in _OWN:
        yield from _own_points(load_yaml(file))
        return
    text = _text(file)
    data = _parsed(text, file)
    if _is_own(data):
        yield from _own_points(YamlDocument(file, text))
        return
    format_, runs = _recognised(data, file)
    for run in runs:
        try:
            yield format_.point(run), format_.model(run)
        except ValueError as reason:
            yield f"{file.name} {reason}", None


def _own_points(document: YamlDocument) -> Iterator[tuple[SweepPoint, None]]:
    bare = isinstance(document.data, list)
    points = validate(document, PointList).root if bare else validate(document, PointFile).sweep
    for point in points:
        yield point.as_sweep_point(), None


def _is_own(data: Any) -> bool:
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return "concurrency" in data[0] and "completed" not in data[0]
    return isinstance(data, dict) and "sweep" in data


def _recognised(data: Any, file: Path) -> tuple[SweepFormat, Sequence[Run]]:
    for format_ in FORMATS:
        if runs := list(format_.runs(data)):
            return format_, runs
    raise SourceError(
        f"{file}: no known form of sweep; give points, or results of vllm bench serve, SGLang bench_serving, GuideLLM",
        permanent=True,
    )


def _text(file: Path) -> str:
    try:
        if not file.is_file():
            raise SourceError(f"{file}: no such file", permanent=True)
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(f"{file}: cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise SourceError(f"{file}: larger than 64 MiB; write it without details of every request", permanent=True)
    return raw.decode("utf-8", "replace")


def _parsed(text: str, file: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        raise SourceError(f"{file}: neither JSON nor JSON lines", permanent=True) from None
