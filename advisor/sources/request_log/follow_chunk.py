"""A file that grows, in pieces of whole lines."""

from __future__ import annotations

from dataclasses import dataclass

from .files import Stream
from .follow_content import read_up_to

_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Chunk:
    """What was taken of a file. `taken` are the bytes, of which `lines` are whole lines to read.

    too_long: lines that began and are longer than allowed. inside_long_line: the end of such a line is still to come.
    last: the file has no more for now. problem: what stopped reading.
    """

    taken: bytes
    lines: bytes
    too_long: int
    inside_long_line: bool
    last: bool
    problem: Exception | None


class Chunks:
    """Takes chunks from where the stream stands.

    A line without its end waits, unless the file `ends_here`: then nobody will add to it. A line that is too long is
    taken in parts and not read, or it would be in the way of all others.
    """

    def __init__(self, stream: Stream, max_line_bytes: int, *, inside_long_line: bool, ends_here: bool) -> None:
        self._stream, self._max, self._ends_here = stream, max_line_bytes, ends_here
        self._inside_long_line = inside_long_line
        self._waiting = b""

    def next(self) -> Chunk:
        """The next one; nothing is taken at the end of the file."""
        size = max(_CHUNK_BYTES, self._max + 1) - len(self._waiting)
        read, problem = read_up_to(self._stream, size)
        last = len(read) < size
        data = self._waiting + read
        ended = last and self._ends_here and problem is None
        whole = len(data) if ended else data.rfind(b"\n") + 1
        start = (data.find(b"\n") + 1 or len(data)) if self._inside_long_line else 0
        goes_on = not ended and start == len(data) > whole
        begins = not ended and not goes_on and len(data) - whole > self._max
        self._inside_long_line = goes_on or begins
        taken = len(data) if self._inside_long_line else whole
        self._waiting = data[taken:]
        lines = data[start:whole]
        if lines and not lines.endswith(b"\n"):
            lines += b"\n"
        return Chunk(data[:taken], lines, int(begins), self._inside_long_line, last, problem)
