"""One log file of those that are followed: what is known of it, what is new, and the cursor that says so."""

from __future__ import annotations

import os
from collections.abc import Iterator

from advisor.domain.cursor import Cursor

from .budget import Budget
from .files import Stream, is_compressed
from .follow_chunk import Chunk, Chunks
from .follow_content import HEAD_BYTES, TAIL_BYTES, Contents, Place, head_of, read_up_to, tail_of
from .follow_files import stamp_of


class FollowedFile:
    """An open file, from its first bytes to the cursor that is left when it has been read."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.stamp = stamp_of(stream.fileno())
        self.compressed = is_compressed(stream)
        self._probe, _ = read_up_to(stream, HEAD_BYTES)
        self._first = self._probe
        self._place = Place()
        self._taken = 0
        self._last = b""
        self._inside_long_line = False
        self._at_end = not self._probe

    @property
    def unread(self) -> bool:
        """Whether there may be more to read."""
        return not self._at_end and (self.compressed or self._place.offset + self._taken < self.stamp.size_bytes)

    def find(self, contents: Contents) -> Place:
        """Find out where to go on."""
        size = None if self.compressed else self.stamp.size_bytes
        self._place = contents.place_in(self._stream, head_of(self._probe), size)
        self._last = self._place.before
        self._at_end = self._place.nothing_new
        return self._place

    def chunks(self, max_line_bytes: int, budget: Budget) -> Iterator[Chunk]:
        """What is new, as far as the budget goes and one piece in any case, so that every call gets further."""
        known = self._place.known
        reader = Chunks(
            self._stream,
            max_line_bytes,
            inside_long_line=known is not None and known.inside_long_line,
            ends_here=self.compressed,
        )
        while not self._at_end:
            chunk = reader.next()
            # What was read while somebody truncated the file may be of two contents: the next call sees clearly.
            if not self._still_the_same():
                return
            budget.spend(len(chunk.taken))
            self._note(chunk)
            yield chunk
            if chunk.last or budget.exhausted:
                return

    def cursor(self, now: float, written: str) -> Cursor | None:
        """How far the file is read now; None where the cursor that was known before says the same."""
        if not self._taken and not (self.compressed and self._at_end):
            return None
        place = self._place
        return Cursor(
            stamp=self.stamp,
            offset=place.offset + self._taken,
            head=head_of(self._first),
            tail=tail_of(self._last),
            seen=now,
            format=written or (place.known.format if place.known else ""),
            inside_long_line=self._inside_long_line,
            finished=self.compressed and self._at_end,
        )

    def _note(self, chunk: Chunk) -> None:
        before = self._place.offset + self._taken
        self._first = (self._first[:before] + chunk.taken)[:HEAD_BYTES] if before < HEAD_BYTES else self._first
        self._last = (self._last + chunk.taken)[-TAIL_BYTES:]
        self._taken += len(chunk.taken)
        self._inside_long_line = chunk.inside_long_line
        self._at_end = chunk.last and chunk.problem is None

    def _still_the_same(self) -> bool:
        if self.compressed:
            return True
        return os.pread(self._stream.fileno(), len(self._probe), 0) == self._probe
