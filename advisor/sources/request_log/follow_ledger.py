"""The cursors through one reading: which were met again, which moved on, and which are forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from advisor.domain.cursor import Cursor, FileStamp

from .follow_content import Contents

MAX_CURSORS = 20_000


class Ledger:
    """Starts from the cursors of the reading before."""

    def __init__(self, cursors: Iterable[Cursor], now: float) -> None:
        self._now = now
        self._cursors = {cursor: cursor.seen for cursor in cursors}
        self._finished = {cursor.stamp: cursor for cursor in self._cursors if cursor.finished}
        self.contents = Contents(self._cursors)

    def knows_all_of(self, stamp: FileStamp) -> bool:
        """Whether the file was read to its end before, and has not changed."""
        cursor = self._finished.get(stamp)
        if cursor is not None:
            self.meet(cursor)
        return cursor is not None

    def meet(self, cursor: Cursor) -> None:
        """Its content is still there."""
        if cursor in self._cursors:
            self._cursors[cursor] = self._now

    def move(self, known: Cursor | None, cursor: Cursor) -> None:
        """A file was read on. What was known of it is replaced when it was known of that very file.

        The cursor of another file with this content stays: that file may still be found, under one name or another.
        """
        if known is not None and _file(known) == _file(cursor):
            self._cursors.pop(known, None)
        self._cursors[cursor] = self._now
        self.contents.add(cursor)

    def kept(self, forgotten_after_seconds: float) -> tuple[Cursor, ...]:
        """The cursors for the next reading, latest first: at most 20,000, and none whose content is long gone."""
        kept = [
            replace(c, seen=seen) for c, seen in self._cursors.items() if seen >= self._now - forgotten_after_seconds
        ]
        return tuple(sorted(kept, key=lambda c: c.seen, reverse=True)[:MAX_CURSORS])


def _file(cursor: Cursor) -> tuple[int, int]:
    return cursor.stamp.device, cursor.stamp.inode
