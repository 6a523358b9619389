"""A zstd file as a stream: several frames, bounded memory, and an error where it breaks off."""

from __future__ import annotations

import io

import zstandard

# 4 packed bytes may stand for 128 KiB, so this many for 32 MiB: what a file can make us hold at once.
_PIECE_BYTES = 1 << 10
_MAX_WINDOW_BYTES = 1 << 27


class ZstdFile:
    """What a file of zstd frames unpacks to."""

    def __init__(self, raw: io.BufferedReader[io.FileIO]) -> None:
        self._raw = raw
        self._start()

    def _start(self) -> None:
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._packed, self._ready, self._position = b"", memoryview(b""), 0

    def read1(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end. Raises EOFError where the file breaks off, OSError where damaged."""
        while not self._ready:
            packed = self._packed or self._raw.read(_PIECE_BYTES)
            if not packed:
                if self._frame is not None:
                    raise EOFError
                return b""
            self._ready = memoryview(self._unpacked(packed))
        part, self._ready = bytes(self._ready[:size]), self._ready[size:]
        self._position += len(part)
        return part

    def _unpacked(self, packed: bytes) -> bytes:
        frame = self._frame or zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj()
        try:
            ready = frame.decompress(packed)
        except zstandard.ZstdError:
            raise OSError("a damaged zstd file") from None
        self._frame = None if frame.eof else frame
        self._packed = frame.unused_data if frame.eof else b""
        return ready

    def seek(self, offset: int, /) -> int:
        """Go to a byte of the unpacked content, or to its end when that comes first."""
        if offset < self._position:
            self._raw.seek(0)
            self._start()
        while self._position < offset and self.read1(offset - self._position):
            pass
        return self._position

    def fileno(self) -> int:
        """The file's descriptor."""
        return self._raw.fileno()

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
