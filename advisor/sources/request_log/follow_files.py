"""The files of logs that are followed: those that were named, and what rotation made of them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from advisor.domain.cursor import FileStamp

from .files import MAX_FILES, log_files

_PACKED = r"(?:\.(?:gz|zst))?"
_ROTATED = re.compile(rf"(?P<log>.+?)(?:[.-]\d[\dT:_.-]*)?{_PACKED}")
# A bare number there is more often a port (`engine-8000.log`) than a rotation, so it has to be short or a date.
_ROTATED_BEFORE_EXTENSION = re.compile(
    rf"(?P<log>.+?)(?:\.\d{{1,2}}|-\d{{4}}-?\d\d-?\d\d[\dT:_.-]*)(?P<extension>\.[A-Za-z]\w{{0,15}}){_PACKED}"
)


def followed_files(paths: Sequence[str], since: float) -> tuple[list[Path], list[str]]:
    """The logs that `paths` name with their rotated siblings, the one written to last at the end; and problems.

    `access.log.1`, `access.log.2.gz`, `access.log-20261129.zst` and `access-20261129.log` are siblings of `access.log`.
    Files that were last written to before `since` (UNIX seconds) are left out: nothing in them is later.
    """
    named, problems = log_files(paths)
    logs = {*named, *(Path(path) for path in paths)}
    found: dict[tuple[int, int], tuple[int, Path]] = {}
    for path in [*named, *_siblings(logs)]:
        with suppress(OSError):  # rotated away meanwhile
            status = path.stat()
            if stat.S_ISREG(status.st_mode) and status.st_mtime >= since:
                found.setdefault((status.st_dev, status.st_ino), (status.st_mtime_ns, path))
    return [path for _, path in sorted(found.values())][-MAX_FILES:], problems


def stamp_of(descriptor: int) -> FileStamp:
    """The stamp of an open file."""
    status = os.fstat(descriptor)
    return FileStamp(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _siblings(logs: Iterable[Path]) -> Iterator[Path]:
    names: dict[Path, set[str]] = {}
    for log in logs:
        names.setdefault(log.parent, set()).add(log.name)
    for folder, known in names.items():
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name not in known and not known.isdisjoint(_rotated_from(entry.name)):
                    yield folder / entry.name


def _rotated_from(name: str) -> Iterator[str]:
    """Names of the logs that a file may be a rotated part of."""
    if rotated := _ROTATED.fullmatch(name):
        yield rotated["log"]
    if rotated := _ROTATED_BEFORE_EXTENSION.fullmatch(name):
        yield rotated["log"] + rotated["extension"]
