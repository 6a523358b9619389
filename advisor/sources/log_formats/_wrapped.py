"""Lines inside other lines, as container runtimes and log shippers keep them.

CRI writes `TIME stdout F line`; Docker one JSON object with the line under `log`, shippers under `message`, and
`journalctl -o json` under `MESSAGE`.
Runtimes cut lines at 16 KiB: what is cut is joined again, within one block of lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from ._requests import LogFormat, Requests

_CRI = re.compile(
    rb"(?P<time>\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d)) std(?:out|err) (?P<whole>[FP]) (?P<line>.*)"
)


class _Object(msgspec.Struct, gc=False):
    log: str | None = None
    message: str | None = None
    time: str | None = None
    timestamp: str | None = msgspec.field(name="@timestamp", default=None)
    msg: str | None = None
    journal_message: str | None = msgspec.field(name="MESSAGE", default=None)
    journal_microseconds: str | None = msgspec.field(name="__REALTIME_TIMESTAMP", default=None)

    @property
    def text(self) -> str | None:
        """The line, whoever wrote it down."""
        return next((t for t in (self.log, self.message, self.journal_message, self.msg) if t is not None), None)

    @property
    def moment(self) -> str:
        """When it was written down: ISO-8601, or UNIX seconds with a fraction; empty where nobody says."""
        micros = self.journal_microseconds or ""
        return self.time or self.timestamp or (f"{micros[:-6]}.{micros[-6:]}" if micros.isdigit() else "")


class Part(msgspec.Struct, frozen=True, gc=False):
    """What a wrapped line holds: the time it was taken down at, the line, and whether that is all of it."""

    time: bytes
    line: bytes
    whole: bool


_decode = msgspec.json.Decoder(_Object).decode


def unwrapping(written: LogFormat) -> LogFormat:
    """The same format, which also reads its lines where they are wrapped."""

    def recognises(line: bytes) -> bool:
        if written.recognises(line):
            return True
        part = part_of(line)
        return part is not None and written.recognises(part.line)

    def read(block: bytes, bad: Counter[str], unused: Counter[str]) -> Requests:
        first = block.partition(b"\n")[0]
        part = part_of(first)
        if part is not None and (written.recognises(part.line) or not written.recognises(first)):
            block = b"\n".join(_lines(block, timed=written.takes_time))
        return written.read(block, bad, unused)

    return replace(written, recognises=recognises, read=read)


def _lines(block: bytes, *, timed: bool) -> Iterator[bytes]:
    begun: list[bytes] = []
    for line in block.split(b"\n"):
        part = part_of(line)
        if part is None:
            yield line
            continue
        if not begun and timed:
            begun.append(part.time + b" ")
        begun.append(part.line)
        if part.whole:
            yield b"".join(begun)
            begun.clear()
    if begun:
        yield b"".join(begun)


def part_of(line: bytes) -> Part | None:
    """What a wrapped line holds, or None for one that is none."""
    if cri := _CRI.match(line):
        return Part(cri["time"], cri["line"], cri["whole"] == b"F")
    if not line.startswith(b"{"):
        return None
    try:
        told = _decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    text = told.text
    if text is None:
        return None
    # A line is one line, whatever somebody wrote into it.
    held = text.rstrip("\n").replace("\n", " ").encode("utf-8", "replace")
    return Part(told.moment.encode(), held, told.log is None or text.endswith("\n"))
