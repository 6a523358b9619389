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

_ROTATED = re.compile(r"(?P<log>.+?)(?:[.-]\d[\dT:_.-]*)?(?:\.gz)?")


def followed_files(paths: Sequence[str], since: float) -> tuple[list[Path], list[str]]:
    """The logs that `paths` name with their rotated siblings, the one written to last at the end; and problems.

    `access.log.1`, `access.log.2.gz` and `access.log-20261129.gz` are siblings of `access.log`. Files that were last
    written to before `since` (UNIX seconds) are left out: nothing in them is later.
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
                rotated = _ROTATED.fullmatch(entry.name)
                if rotated and rotated["log"] in known and entry.name not in known:
                    yield folder / entry.name
