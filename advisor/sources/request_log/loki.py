"""Lines of a query to Loki, page by page in the order of time, each once.

Loki gives the first N lines of a span. The next page begins with the time of the last line, because more may have that
time: those that were read already are told by a hash of labels and line. Loki itself keeps no two alike at one time.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass

from advisor.domain.errors import SourceError

from .loki_api import Line, LokiApi, LokiOptions, moment_of
from .stream import Entry, Reached

__all__ = ["LokiOptions", "LokiReading", "LokiStream"]

_NANO = 10**9
# Servers split and bound queries by their span, and 30 days are the most that they take by default.
_LONGEST_SPAN = 6 * 3600 * _NANO


@dataclass(frozen=True, slots=True)
class LokiStream:
    """The lines of one query up to `now`, UNIX seconds; those of the last `delay_seconds` may not all be there yet."""

    options: LokiOptions
    now: float

    @property
    def key(self) -> str:
        """The name under which is kept how far it is read.

        It is the same for any address and query, or a change of either would count again what was read before.
        """
        return "loki"

    @property
    def source(self) -> str:
        """The kind of place."""
        caveat = self.options.caveat
        return f"Loki ({caveat})" if caveat else "Loki"

    @property
    def title(self) -> str:
        """Which one it is."""
        return "Loki"

    @property
    def silence(self) -> str:
        """What to say where there was nothing."""
        return f"{self.options.place} has no such lines; check query and tenant"

    def read(self, after: str, since: float, max_line_bytes: int) -> LokiReading:
        """Lines after a place where one is known, else since UNIX seconds."""
        return LokiReading(self.options, _Place.of(after, since), self.now, max_line_bytes)


@dataclass(frozen=True, slots=True)
class _Place:
    """A time in nanoseconds, and the marks of the lines of that very time that are read already."""

    nanoseconds: int
    marks: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str, since: float) -> _Place:
        moment, *marks = text.split() or [""]
        return cls(int(moment), frozenset(marks)) if moment.isdigit() else cls(int(since * _NANO))

    @property
    def reached(self) -> Reached:
        return Reached(" ".join([str(self.nanoseconds), *sorted(self.marks)]), self.nanoseconds / _NANO)

    def after(self, lines: list[Line]) -> _Place:
        """Where reading goes on after the lines of a page that may not be the last."""
        last = lines[-1].nanoseconds
        marks = frozenset(line.mark for line in lines if line.nanoseconds == last)
        return _Place(last, marks | self.marks if last == self.nanoseconds else marks)


class LokiReading:
    """One reading, page by page."""

    def __init__(self, options: LokiOptions, place: _Place, now: float, max_line_bytes: int) -> None:
        self._options, self._place, self._max_line_bytes = options, place, max_line_bytes
        self._until = int((now - options.delay_seconds) * _NANO)
        self.unreadable, self.too_long = 0, 0
        self.problem = ""
        self.reached: Reached | None = None
        self.lost = False

    def pieces(self) -> Generator[list[Entry], None, None]:
        """The lines, once; a page without new ones is an empty piece."""
        deadline = time.monotonic() + self._options.reading_timeout_seconds
        try:
            with closing(LokiApi(self._options, deadline)) as api:
                yield from self._pages(api, deadline)
        except SourceError as error:
            self.problem = str(error)

    def _pages(self, api: LokiApi, deadline: float) -> Iterator[list[Entry]]:
        while self._place.nanoseconds < self._until:
            if time.monotonic() > deadline:
                self.problem = f"read up to {moment_of(self._place.nanoseconds)} only: raise reading_timeout_seconds"
                return
            end = min(self._place.nanoseconds + _LONGEST_SPAN, self._until)
            lines, more = api.page(self._place.nanoseconds, end)
            fresh = [
                line
                for line in lines
                if line.nanoseconds > self._place.nanoseconds or line.mark not in self._place.marks
            ]
            if not more:
                # A span ends before its end, but gateways that cache or split it are not all so exact.
                self._place = _Place(end, frozenset(line.mark for line in lines if line.nanoseconds >= end))
            elif fresh:
                self._place = self._place.after(lines)
            else:
                told = f"{len(lines):,} lines of one time, {moment_of(self._place.nanoseconds)}, fill a page"
                self.problem = f"{told}: others of it may be missed; raise page_lines and the server's limit"
                self._place = _Place(self._place.nanoseconds + 1)
            self.reached = self._place.reached
            yield [entry for line in fresh if (entry := self._entry(line))]

    def _entry(self, line: Line) -> Entry | None:
        if len(line.text) > self._max_line_bytes:
            self.too_long += 1
            return None
        return Entry(line.nanoseconds / _NANO, line.text.replace(b"\n", b" "))
