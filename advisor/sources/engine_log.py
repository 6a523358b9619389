"""An engine's own log, line by line within bounds: a file, plain or as container runtimes wrap it, or the journal."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from advisor.domain.errors import SourceError

from .log_formats import part_of
from .request_log import JOURNAL, JournalStream

MAX_BYTES = 2**30
MAX_LINE = 65_536
_ANY = re.compile(b"")


def engine_lines(
    place: Path, telling: re.Pattern[bytes], since: float, journals: Path | None = None
) -> Generator[bytes, None, None]:
    """The lines in which `telling` is found, each behind the time at which somebody took it down, where anybody did.

    place: a file, or `journal:UNIT`, of which only what came since UNIX seconds is read. journals: where the journal
    lies, if it is not this machine's own. Raises SourceError when it cannot be read or exceeds 1 GiB.
    """
    unit = str(place).removeprefix(JOURNAL)
    return (
        _file_lines(place, telling)
        if unit == str(place)
        else _journal_lines(JournalStream("unit", unit, journals), telling, since)
    )


def is_empty(place: Path, since: float, journals: Path | None = None) -> bool:
    """Whether there is no line at all. Raises SourceError when it cannot be read."""
    with closing(engine_lines(place, _ANY, since, journals)) as lines:
        return next(lines, None) is None


def _file_lines(path: Path, telling: re.Pattern[bytes]) -> Generator[bytes, None, None]:
    try:
        if not path.is_file():
            raise SourceError(f"{path}: no such file", permanent=True)
        with path.open("rb") as file:
            read, begins = 0, True
            while line := file.readline(MAX_LINE):
                begun_here, begins = begins, line.endswith(b"\n")
                read += len(line)
                _bound(read, str(path))
                if begun_here and telling.search(line):
                    part = part_of(line.rstrip(b"\n"))
                    yield line if part is None else part.time + b" " + part.line
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}") from None


def _journal_lines(stream: JournalStream, telling: re.Pattern[bytes], since: float) -> Generator[bytes, None, None]:
    reading = stream.read("", since, MAX_LINE)
    read = 0
    with closing(reading.pieces()) as pieces:
        for entries in pieces:
            for entry in entries:
                read += len(entry.message)
                _bound(read, stream.title)
                if telling.search(entry.message):
                    yield b"%.6f " % entry.seconds + entry.message
    if reading.problem:
        raise SourceError(f"{stream.title}: {reading.problem}")


def _bound(read: int, name: str) -> None:
    if read > MAX_BYTES:
        raise SourceError(f"{name}: larger than 1 GiB; give the part from the last start as a file", permanent=True)
