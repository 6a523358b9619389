"""Formats whose lines are of many kinds, most of them about no request: an engine's own log, a batch of spans."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

from ._json import BAD_LINE, reason
from ._requests import MAX_TOKENS, LogFormat, Requests, Row, columns, unix_seconds

NO_REQUEST = "about no finished request"

_TAKEN_DOWN = re.compile(rb"\d{10}\.\d{1,9} ")
_MOMENT = re.compile(
    rb"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?P<fraction>\.\d{1,6})?\d*(?P<zone>Z|[+-]\d\d:?\d\d)?"
)


def line_format(
    name: str,
    recognises: Callable[[bytes], bool],
    rows: Callable[[bytes], Sequence[Row]],
    *,
    takes_time: bool = False,
) -> LogFormat:
    """A format of lines of which each tells of as many requests as `rows` finds, often none.

    `rows` raises ValueError for a line that is about a request and cannot be read.
    """

    def read(block: bytes, bad: Counter[str], unused: Counter[str]) -> Requests:
        found: list[Row] = []
        for line in block.split(b"\n"):
            try:
                told = rows(line)
            except BAD_LINE as problem:
                bad[reason(problem)] += 1
                continue
            found += told
            if not told and line and not line.isspace():
                unused[NO_REQUEST] += 1
        return columns(found)

    return LogFormat(name, recognises, read, takes_time)


def moment(line: bytes) -> float:
    """UNIX seconds of the first time in a line, NaN where there is none; without a zone it is UTC.

    What a container runtime or the journal put before the line (`1795960000.123 `, `2026-11-29T13:46:40.123Z `) is
    first, and so wins over what the engine wrote in a zone that it does not name.
    """
    if _TAKEN_DOWN.match(line):
        return float(line[: line.index(b" ")])
    found = _MOMENT.search(line, 0, 200)
    if not found:
        return math.nan
    day, time, fraction, zone = (part.decode() for part in found.groups(b""))
    return unix_seconds(f"{day} {time}{fraction}{zone}")


def tokens(text: bytes | None) -> int:
    """A count of tokens, -1 for none. Raises ValueError for what cannot be one."""
    if text is None:
        return -1
    count = int(text) if len(text) <= 12 else MAX_TOKENS + 1
    if not 0 <= count <= MAX_TOKENS:
        raise ValueError("no count of tokens")
    return count
