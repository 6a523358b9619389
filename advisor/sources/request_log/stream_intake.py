"""Entries of a stream as lines of a log, from where an earlier reading left off."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from advisor.domain.cursor import StreamCursor
from advisor.sources.log_formats import LogFormat

from .budget import Budget
from .intake import Intake, UnknownFormatError
from .stream import Entry, Stream


def take_stream(
    intake: Intake, stream: Stream, known: StreamCursor | None, since: float, max_line_bytes: int, budget: Budget
) -> StreamCursor | None:
    """Hand the entries after `known`, else those since UNIX seconds, to the intake; and say how far that is.

    Where the source knows a place no longer, reading goes on by the time of what was read last. While no entry looks
    like a line of a known format, the place stays, for whoever names the format later.
    """
    after, since = (known.place, max(since, known.seconds + 1e-6)) if known else ("", since)
    reading = stream.read(after, since, max_line_bytes)
    lines = _Lines(intake, known.format if known else "")
    with closing(reading.pieces()) as pieces:
        for entries in pieces:
            budget.spend(lines.take(entries))
            if budget.exhausted:
                break
    intake.account.heard(stream.source, unreadable=reading.unreadable)
    intake.skip_too_long(reading.too_long)
    silence = stream.silence if not lines.some and known is None else ""
    for problem in filter(None, (reading.problem or silence, lines.problem)):
        intake.account.problems.append(f"{stream.title}: {problem}")
    if reading.reached is None:
        return StreamCursor(stream.key, "", known.seconds, known.format) if known and reading.lost else known
    if not lines.format and not budget.exhausted:
        return known
    return StreamCursor(stream.key, reading.reached.place, reading.reached.seconds, lines.format)


class _Lines:
    """Entries of one stream, whose first ones need not be of requests: an engine starts with other lines."""

    def __init__(self, intake: Intake, known: str) -> None:
        self._intake, self._known = intake, known
        self._written: LogFormat | None = None
        self.some = False
        self.problem = ""

    @property
    def format(self) -> str:
        """How the entries are written, empty while unknown."""
        return self._written.name if self._written else self._known

    def take(self, entries: Sequence[Entry]) -> int:
        """Add entries; how many bytes they were."""
        if not entries:
            return 0
        self.some = True
        block = b"".join(entry.message + b"\n" for entry in entries)
        try:
            self._written = self._written or self._intake.format_of(block, self._known)
        except UnknownFormatError as problem:
            self.problem = self.problem or str(problem)
            return len(block)
        self.problem = ""
        if self._written.takes_time:
            block = b"".join(b"%.6f %s\n" % (entry.seconds, entry.message) for entry in entries)
        self._intake.take(block, self._written)
        return len(block)
