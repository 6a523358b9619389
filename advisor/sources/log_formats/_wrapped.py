"""Lines inside other lines, as container runtimes and log shippers keep them.

CRI writes `TIME stdout F line`, Docker one JSON object with the line under `log`, shippers with it under `message`.
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


class _Part(msgspec.Struct, frozen=True, gc=False):
    time: bytes
    line: bytes
    whole: bool


_decode = msgspec.json.Decoder(_Object).decode


def unwrapping(written: LogFormat) -> LogFormat:
    """The same format, which also reads its lines where they are wrapped."""

    def recognises(line: bytes) -> bool:
        if written.recognises(line):
            return True
        part = _part(line)
        return part is not None and written.recognises(part.line)

    def read(block: bytes, bad: Counter[str], unused: Counter[str]) -> Requests:
        first = block.partition(b"\n")[0]
        part = _part(first)
        if part is not None and (written.recognises(part.line) or not written.recognises(first)):
            block = b"\n".join(_lines(block, timed=written.takes_time))
        return written.read(block, bad, unused)

    return replace(written, recognises=recognises, read=read)


def _lines(block: bytes, *, timed: bool) -> Iterator[bytes]:
    begun: list[bytes] = []
    for line in block.split(b"\n"):
        part = _part(line)
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


def _part(line: bytes) -> _Part | None:
    """What a wrapped line holds, or None for one that is none."""
    if cri := _CRI.match(line):
        return _Part(cri["time"], cri["line"], cri["whole"] == b"F")
    if not line.startswith(b"{"):
        return None
    try:
        told = _decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    text = told.message if told.log is None else told.log
    if text is None:
        return None
    # A line is one line, whatever somebody wrote into it.
    held = text.rstrip("\n").replace("\n", " ").encode("utf-8", "replace")
    return _Part((told.time or told.timestamp or "").encode(), held, told.log is None or text.endswith("\n"))
