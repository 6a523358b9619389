"""What log files look like, one by one: for whoever wants to know whether they are understood."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .files import LineBlocks, Stream, log_files, open_log, shown
from .lines import formats_of, recognise, told_apart
from .options import LogOptions
from .reading import what_stopped

MOST_FILES = 20
MOST_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A file and what its beginning holds. requests: lines of finished requests; others: of anything else.

    skipped: lines that could not be read. format is empty and `problem` says why where nothing could.
    """

    path: str
    format: str = ""
    requests: int = 0
    others: int = 0
    skipped: int = 0
    problem: str = ""

    @property
    def lines(self) -> int:
        """How many there are."""
        return self.requests + self.others + self.skipped

    @property
    def understood_share(self) -> float:
        """Lines that could be read, of all."""
        return 1 - self.skipped / self.lines if self.lines else 0.0


def survey(options: LogOptions) -> Iterator[Surveyed]:
    """The first 20 files that `options` name, the first 16 MiB of each."""
    for path in log_files(options.paths)[0][:MOST_FILES]:
        try:
            with closing(open_log(path)) as stream:
                yield _surveyed(path, stream, options)
        except (EOFError, zlib.error, OSError) as problem:
            yield Surveyed(shown(path), problem=what_stopped(problem))


def _surveyed(path: Path, stream: Stream, options: LogOptions) -> Surveyed:
    formats = formats_of(options)
    written = formats[0] if options.format != "auto" else None
    bad: Counter[str] = Counter()
    unused: Counter[str] = Counter()
    requests, read = 0, 0
    blocks = LineBlocks(stream, options.max_line_bytes)
    for block in blocks:
        written = written or recognise(block, formats)
        if written is None:
            return Surveyed(shown(path), problem=told_apart(block))
        requests += len(written.read(block, bad, unused))
        read += len(block)
        if read >= MOST_BYTES:
            break
    if written is None:
        return Surveyed(shown(path), problem="empty")
    return Surveyed(shown(path), written.name, requests, unused.total(), bad.total() + blocks.too_long)
