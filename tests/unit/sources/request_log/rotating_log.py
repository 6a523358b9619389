"""A log that is written and rotated as services do it; every line has a serial number as its prompt tokens."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

from advisor.domain.cursor import Cursors
from advisor.sources.request_log import Followed, LogOptions, follow

T0 = 1_699_999_200.0  # a full hour, earlier than any file that a test writes


def line(serial: int, at: float = 0.0, **more: object) -> bytes:
    usage = {"prompt_tokens": serial, "completion_tokens": 11}
    written = {"ts": T0 + at, "model": "m", "upstream": "r1", "status": 200, "usage": usage}
    return json.dumps(written | {"ttft_ms": 1000, "duration_ms": 2000} | more).encode() + b"\n"


class RotatingLog:
    """`access.log` in a folder. `written` counts the lines that were completed."""

    def __init__(self, folder: Path, keep: int = 6) -> None:
        self.path, self._keep = folder / "access.log", keep
        self._descriptor = self._opened()
        self._half = b""
        self.written = 0

    def close(self) -> None:
        os.close(self._descriptor)

    def append(self, lines: int) -> None:
        for _ in range(lines):
            os.write(self._descriptor, self._half or line(self.written + 1, self.written * 0.01))
            self._half = b""
            self.written += 1

    def append_half(self) -> None:
        if not self._half:
            whole = line(self.written + 1, self.written * 0.01)
            os.write(self._descriptor, whole[:40])
            self._half = whole[40:]

    def rename(self, *, compress: bool = False) -> None:
        """As logrotate with `create`, where the service reopens its log."""
        if self._half:
            self.append(1)
        self._shift()
        self.path.rename(self._old(1))
        self._reopen()
        if compress:
            self._compress(1)

    def copy_truncate(self, *, grows: int = 0) -> None:
        """As logrotate with `copytruncate`. `grows`: lines after the copy, which only a reader of then can know."""
        if self._half:
            self.append(1)
        self._shift()
        shutil.copy(self.path, self._old(1))
        self.append(grows)

    def truncate(self, *, compress: bool = False) -> None:
        os.truncate(self.path, 0)
        if compress:
            self._compress(1)

    def compress_all(self) -> None:
        """As logrotate with `delaycompress`: the day after."""
        for number in range(2, self._keep):
            self._compress(number)

    def _compress(self, number: int) -> None:
        if self._old(number).exists():
            with self._old(number).open("rb") as plain, gzip.open(self._packed(number), "wb") as packed:
                shutil.copyfileobj(plain, packed)
            self._old(number).unlink()

    def _shift(self) -> None:
        for number in range(self._keep, 0, -1):
            for old, name in ((self._old(number), self._old), (self._packed(number), self._packed)):
                if old.exists():
                    old.rename(name(number + 1))

    def _reopen(self) -> None:
        os.close(self._descriptor)
        self._descriptor = self._opened()

    def _opened(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def _old(self, number: int) -> Path:
        return self.path.with_name(f"access.log.{number}")

    def _packed(self, number: int) -> Path:
        return self.path.with_name(f"access.log.{number}.gz")


class Reader:
    """Follows logs and adds up what it is told, by serial number."""

    def __init__(self, *paths: Path, now: float = T0 + 3600, **options: object) -> None:
        self.options = LogOptions.model_validate({"paths": [str(p) for p in paths], **options})
        self.cursors = Cursors()
        self.counted: dict[int, int] = {}
        self.now = now

    def read(self, **more: int) -> Followed:
        """One reading that is committed."""
        told = self.read_and_crash(**more)
        self.cursors = told.cursors
        for log in told.slices.values():
            for serial, count in zip(log.served.prompt.tolist(), log.served.counts.tolist(), strict=True):
                self.counted[serial] = self.counted.get(serial, 0) + count
        return told

    def read_and_crash(self, **more: int) -> Followed:
        """One reading whose outcome is lost."""
        return follow(self.options, self.cursors, lambda model, _: model, lambda _: 0.0, self.now, **more)
