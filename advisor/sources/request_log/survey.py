"""What logs look like, one by one: for whoever wants to know whether they are understood."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from advisor.domain.evidence import Window
from advisor.sources.log_formats import LogFormat

from .files import LineBlocks, log_files, open_log, shown
from .lines import formats_of, recognise, told_apart
from .options import LogOptions
from .reading import what_stopped
from .stream import Stream

MOST_FILES = 20
MOST_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A file or a stream, and what its beginning holds. requests: lines of finished requests; others: of anything else.

    skipped: lines that could not be read. format is empty and `problem` says why where nothing could.
    """

    name: str
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


def survey(options: LogOptions, window: Window) -> Iterator[Surveyed]:
    """The first 20 files that `options` name, and what streams have since the window began: 16 MiB of each."""
    for path in log_files(options.paths)[0][:MOST_FILES]:
        sample = _Sample(options)
        try:
            with closing(open_log(path)) as file:
                blocks = LineBlocks(file, options.max_line_bytes)
                sample.take(blocks)
                yield sample.surveyed(shown(path), blocks.too_long)
        except (EOFError, zlib.error, OSError) as problem:
            yield Surveyed(shown(path), problem=what_stopped(problem))
    for stream in options.streams(window.end):
        yield _heard(stream, options, window.start)


def _heard(stream: Stream, options: LogOptions, since: float) -> Surveyed:
    """A stream may begin with lines of something else: an engine starts before it serves."""
    sample, reading = _Sample(options, patient=True), stream.read("", since, options.max_line_bytes)
    with closing(reading.pieces()) as pieces:
        sample.take(b"".join(entry.message + b"\n" for entry in entries) for entries in pieces)
    if reading.problem and not sample.read:
        return Surveyed(stream.title, problem=reading.problem)
    return sample.surveyed(stream.title, reading.too_long)


class _Sample:
    """The beginning of one log. A `patient` one waits for lines of a known format."""

    def __init__(self, options: LogOptions, *, patient: bool = False) -> None:
        self._formats, self._patient = formats_of(options), patient
        self._written: LogFormat | None = self._formats[0] if options.format != "auto" else None
        self._bad: Counter[str] = Counter()
        self._unused: Counter[str] = Counter()
        self._requests = 0
        self._unknown = ""
        self.read = 0

    def take(self, blocks: Iterable[bytes]) -> None:
        for block in blocks:
            self.read += len(block)
            self._written = self._written or recognise(block, self._formats)
            if self._written is not None:
                self._requests += len(self._written.read(block, self._bad, self._unused))
            elif block:
                self._unknown = self._unknown or told_apart(block)
            if self.read >= MOST_BYTES or (self._unknown and not self._patient):
                break

    def surveyed(self, name: str, too_long: int) -> Surveyed:
        if self._written is None:
            return Surveyed(name, problem=self._unknown or "empty")
        skipped = self._bad.total() + too_long
        return Surveyed(name, self._written.name, self._requests, self._unused.total(), skipped)
