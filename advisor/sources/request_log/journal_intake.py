"""Messages of the journal as lines of a log, from where an earlier reading left off."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from advisor.domain.cursor import JournalCursor
from advisor.sources.log_formats import LogFormat

from .budget import Budget
from .files import shown
from .intake import Intake, UnknownFormatError
from .journal import Entry, JournalReading, JournalStream

_SILENT = "no messages; check the name, and that this account may read the journal"


def take_journal(
    intake: Intake,
    stream: JournalStream,
    known: JournalCursor | None,
    since: float,
    max_line_bytes: int,
    budget: Budget,
) -> JournalCursor | None:
    """Hand the messages after `known`, else those since UNIX seconds, to the intake; and say how far that is.

    Where journald knows a place no longer, reading goes on by the time of what was read last. While no message looks
    like a line of a known format, the place stays, for whoever names the format later.
    """
    after, since = (known.place, max(since, known.seconds + 1e-6)) if known else ("", since)
    reading = JournalReading(stream, after=after, since=since, max_line_bytes=max_line_bytes)
    lines = _Lines(intake, known.format if known else "")
    last: Entry | None = None
    with closing(reading.pieces()) as pieces:
        for entries in pieces:
            budget.spend(lines.take(entries))
            last = entries[-1]
            if budget.exhausted:
                break
    intake.account.heard(unreadable=reading.unreadable)
    intake.skip_too_long(reading.too_long)
    silent = _SILENT if last is None and known is None else ""
    for problem in filter(None, (reading.problem or silent, lines.problem)):
        intake.account.problems.append(f"journal of {shown(stream.name)}: {problem}")
    if last is None:
        return JournalCursor(stream.key, "", known.seconds, known.format) if known and reading.problem else known
    if not lines.format and not budget.exhausted:
        return known
    return JournalCursor(stream.key, last.place, last.seconds, lines.format)


class _Lines:
    """Messages of one stream, whose first ones need not be of requests: an engine starts with other lines."""

    def __init__(self, intake: Intake, known: str) -> None:
        self._intake, self._known = intake, known
        self._written: LogFormat | None = None
        self.problem = ""

    @property
    def format(self) -> str:
        """How the messages are written, empty while unknown."""
        return self._written.name if self._written else self._known

    def take(self, entries: Sequence[Entry]) -> int:
        """Add messages; how many bytes they were."""
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
