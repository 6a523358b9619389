"""Which content a file holds and how much of it is known: told by digests, because rotation changes everything else.

A renamed, copied or compressed file has the content that was read before under another name, inode or size; a file that
was truncated, or that took a freed inode, has another content under the same. So the content decides:

1. A cursor whose head and tail digests fit a file says how far its content is read, wherever it was read.
2. A file that is shorter than a cursor and begins the same is a copy of what was read (`copytruncate` while the
   log grew on): it has nothing new.
3. A file that no cursor fits is new and is read from its beginning.

A wrong answer of 2 needs two logs that begin with the same kilobytes, and ends when the shorter one has grown.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b

from advisor.domain.cursor import Cursor

from .files import Stream

_RUNGS = tuple(1 << power for power in range(4, 13))
HEAD_BYTES = _RUNGS[-1]
TAIL_BYTES = 256
BROKEN = (EOFError, zlib.error, OSError)
"""What reading a damaged file raises."""


def head_of(first_bytes: bytes) -> tuple[str, ...]:
    """Digests of the first 16, 32, ... 4,096 bytes, as many as there are."""
    return tuple(_digest(first_bytes[:rung]) for rung in _RUNGS if rung <= len(first_bytes))


def tail_of(last_bytes: bytes) -> str:
    """Digest of the bytes before an offset."""
    return _digest(last_bytes[-TAIL_BYTES:])


def read_up_to(stream: Stream, size: int) -> tuple[bytes, Exception | None]:
    """The next `size` bytes, fewer at the end of the stream; and what stopped reading before, if something did."""
    parts = []
    try:
        while size > 0 and (part := stream.read1(size)):
            parts.append(part)
            size -= len(part)
    except BROKEN as problem:
        return b"".join(parts), problem
    return b"".join(parts), None


@dataclass(frozen=True, slots=True)
class Place:
    """Where to go on in a file. `known`: the cursor that says so; `before`: the last bytes before the offset.

    `nothing_new`: the whole file is known already.
    """

    known: Cursor | None = None
    before: bytes = b""
    nothing_new: bool = False

    @property
    def offset(self) -> int:
        """Bytes of the file that are read already."""
        return self.known.offset if self.known else 0


class Contents:
    """The cursors, by the content that they stand for."""

    def __init__(self, cursors: Iterable[Cursor]) -> None:
        self._by_top: dict[str, list[Cursor]] = defaultdict(list)
        self._by_rung: dict[str, list[Cursor]] = defaultdict(list)
        for cursor in cursors:
            self.add(cursor)

    def add(self, cursor: Cursor) -> None:
        """Know one more."""
        self._by_top[cursor.head[-1] if cursor.head else ""].append(cursor)
        for digest in cursor.head[:-1]:
            self._by_rung[digest].append(cursor)

    def place_in(self, stream: Stream, head: tuple[str, ...], size_bytes: int | None) -> Place:
        """Where to go on in a file with this head; the furthest cursor wins. The stream stands there afterwards.

        size_bytes: of a plain file; None for a compressed one, whose content has to be unpacked to be known.
        """
        alike = [cursor for digest in ("", *head) for cursor in self._by_top[digest]]
        longer = self._by_rung[head[-1]] if head else []
        for cursor in sorted([*alike, *longer], key=lambda c: c.offset, reverse=True):
            if size_bytes is not None and size_bytes < cursor.offset:
                if cursor.head and head:
                    return Place(cursor, nothing_new=True)
                continue
            place = _fitting(stream, cursor, head)
            if place is not None:
                return place
        stream.seek(0)
        return Place()


def _fitting(stream: Stream, cursor: Cursor, head: tuple[str, ...]) -> Place | None:
    before, last = min(cursor.offset, TAIL_BYTES), b""
    with suppress(*BROKEN):  # a compressed file that is still being written ends early
        stream.seek(cursor.offset - before)
        last, _ = read_up_to(stream, before)
    if len(last) < before:
        return Place(cursor, nothing_new=True) if cursor.head and head else None
    return Place(cursor, last) if tail_of(last) == cursor.tail else None


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()
