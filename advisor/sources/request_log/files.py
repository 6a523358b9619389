"""Log files found and read: bounded in number, in the length of a line and in memory, whatever they hold."""

from __future__ import annotations

import glob
import gzip
import io
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Protocol

from .zstd_file import ZstdFile

MAX_FILES = 10_000
_BLOCK_BYTES = 1 << 16
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def log_files(paths: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The regular files that `paths` name, each once though several paths or links lead to it, in a fixed order.

    With them one line for each path that leads to nothing, and for what lies beyond the 10,000th file.
    """
    found: dict[tuple[int, int], Path] = {}
    problems = []
    for path in paths:
        files = list(islice(_named(path), MAX_FILES + 1))
        if not files:
            problems.append(f"{shown(path)}: no such file; check the path or glob")
        for file, status in files:
            found.setdefault((status.st_dev, status.st_ino), file)
    if len(found) > MAX_FILES:
        problems.append(f"more than {MAX_FILES:,} log files; the others are not read: name fewer")
    return list(found.values())[:MAX_FILES], problems


def shown(path: str | Path) -> str:
    """A path for people: its end, one line, without control characters."""
    text = str(path)
    short = text if len(text) <= 100 else f"...{text[-97:]}"
    return "".join(c if c.isprintable() else "?" for c in short)


def _named(path: str) -> Iterator[tuple[Path, os.stat_result]]:
    # Path.glob takes no absolute pattern.
    matches = [path] if Path(path).exists() else sorted(islice(glob.iglob(path, recursive=True), MAX_FILES + 1))  # noqa: PTH207
    for match in matches:
        for file in _below(Path(match)) if Path(match).is_dir() else [Path(match)]:
            with suppress(OSError):  # rotated away meanwhile, or a broken link
                status = file.stat()
                if stat.S_ISREG(status.st_mode):
                    yield file, status


def _below(directory: Path) -> Iterator[Path]:
    for folder, subfolders, names in os.walk(directory):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


class Stream(Protocol):
    """Bytes that come in pieces."""

    def read1(self, size: int, /) -> bytes:
        """At most `size` bytes, as many as come at once; none at the end."""

    def seek(self, offset: int, /) -> int:
        """Go to a byte of the (unpacked) content, or to its end when that comes first."""

    def fileno(self) -> int:
        """The file's descriptor."""

    def close(self) -> None:
        """Give back what it holds."""


def open_log(path: Path) -> Stream:
    """The bytes of a log, unpacked where its first bytes say gzip or zstd. Raises OSError."""
    # O_NONBLOCK: a pipe that took the file's place since it was found must not hang us.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    raw = io.BufferedReader(io.FileIO(descriptor), _BLOCK_BYTES)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raw.close()
        raise OSError(f"{shown(path)} is not a regular file")
    begins = raw.peek(4)
    if begins.startswith(_ZSTD_MAGIC):
        return ZstdFile(raw)
    return _Gunzipped(raw) if begins.startswith(_GZIP_MAGIC) else raw


def is_compressed(stream: Stream) -> bool:
    """Whether what a stream of `open_log` gives is unpacked on the way."""
    return isinstance(stream, _Gunzipped | ZstdFile)


class _Gunzipped(gzip.GzipFile):
    """A gzip stream that closes the file below it."""

    def __init__(self, raw: io.BufferedReader[io.FileIO]) -> None:
        super().__init__(fileobj=raw, mode="rb")
        self._raw = raw

    def close(self) -> None:
        super().close()
        self._raw.close()


class LineBlocks:
    """Whole lines of a stream, many at a time. A line over `max_line_bytes` is dropped as it passes, and counted.

    Iterating raises OSError, EOFError or zlib.error where the stream breaks; what came before has been yielded.
    """

    def __init__(self, stream: Stream, max_line_bytes: int) -> None:
        self._stream = stream
        self._max = max_line_bytes
        # No line inside a block can then be too long, except the first, which began in an earlier one.
        self._block_bytes = min(_BLOCK_BYTES, max_line_bytes)
        self.too_long = 0

    def __iter__(self) -> Iterator[bytes]:
        tail, dropping = b"", False
        while block := self._stream.read1(self._block_bytes):
            end = block.rfind(b"\n") + 1
            if end:
                yield from self._complete(tail, memoryview(block)[:end], block.find(b"\n") + 1, dropping=dropping)
                tail, dropping = block[end:], False
            else:
                tail = b"" if dropping else tail + block
            if len(tail) > self._max:
                self.too_long += 1
                tail, dropping = b"", True
        if tail:
            yield tail + b"\n"

    def _complete(self, tail: bytes, whole: memoryview, first: int, *, dropping: bool) -> Iterator[bytes]:
        too_long = len(tail) + first - 1 > self._max
        self.too_long += too_long and not dropping
        if dropping or too_long:
            tail, whole = b"", whole[first:]
        if whole:
            yield b"".join((tail, whole))
