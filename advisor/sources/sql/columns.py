"""What a query may yield, by the names of its columns, and values of any driver as the figures they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from advisor.domain.errors import SourceError
from advisor.sources.log_formats import MAX_TOKENS, Requests, unix_seconds

_MOST_CHARACTERS = 4096
_CUT = "length"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - what has no zone is UTC, and so is this
_BAD_ROW = (ValueError, TypeError, ArithmeticError)

Values = Sequence[Any]
Rows = Sequence[Sequence[Any]]
Read = TypeVar("Read")


def seconds(values: Values) -> list[float]:
    """Moments as UNIX seconds: a timestamp (UTC where it has no zone), UNIX time, ISO-8601 text; NaN for NULL."""
    return [_moment(value) for value in values]


def _moment(value: Any) -> float:
    if isinstance(value, datetime):
        return value.timestamp() if value.tzinfo else (value - _EPOCH).total_seconds()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    return unix_seconds(value if value is None or isinstance(value, str) else float(value))


def tokens(values: Values) -> list[int]:
    """Counts of tokens, -1 for NULL. Raises ValueError for what cannot be one."""
    counts = [-1 if value is None else int(value) for value in values]
    if counts and not (min(counts) >= -1 and max(counts) <= MAX_TOKENS):
        raise ValueError("no count of tokens")
    return counts


def spans(values: Values) -> list[float]:
    """Seconds, NaN for NULL."""
    return [math.nan if value is None else float(value) for value in values]


def statuses(values: Values) -> list[int]:
    """HTTP status codes, 200 for NULL. Raises ValueError for what is none."""
    codes = [200 if value is None else int(value) for value in values]
    if codes and not (min(codes) >= 100 and max(codes) <= 599):
        raise ValueError("no HTTP status")
    return codes


def words(values: Values) -> list[str]:
    """Texts, empty for NULL, each at most 4,096 characters of it."""
    return ["" if value is None else str(value)[:_MOST_CHARACTERS] for value in values]


def cuts(values: Values) -> list[bool]:
    """Whether generation ended at a limit."""
    return [value == _CUT for value in values]


Reader = Callable[[Values], list[Any]]
REQUEST_COLUMNS: dict[str, tuple[str, Reader]] = {
    "time": ("completed", seconds),
    "model": ("model", words),
    "upstream": ("upstream", words),
    "status": ("status", statuses),
    "prompt_tokens": ("prompt_tokens", tokens),
    "completion_tokens": ("output_tokens", tokens),
    "max_tokens": ("max_tokens", tokens),
    "ttft": ("ttft_seconds", spans),
    "duration": ("duration_seconds", spans),
    "finish_reason": ("cut", cuts),
    "error_message": ("message", words),
    "request_id": ("request_id", words),
    "client": ("client", words),
}
"""Of a query that yields a row for each request: the column, what it is of a request, and how it is read.

time: of completion. ttft, duration: seconds. finish_reason: `length` is a cut. What is absent reads as NULL.
"""
GROUP_COLUMNS = ("count", "prompt_tokens", "completion_tokens", "hour", "model", "upstream")
"""Of a query that counts equal requests. hour: the beginning of the hour in which they completed."""
NEEDED = {
    "count": ("count", "prompt_tokens", "completion_tokens"),
    "time": ("time", "prompt_tokens", "completion_tokens"),
}


def places(columns: Sequence[str]) -> dict[str, int]:
    """Where each column stands. Raises SourceError for one that is missing, unknown or there twice."""
    named = {name.lower(): place for place, name in enumerate(columns)}
    kind = "count" if "count" in named else "time"
    known = GROUP_COLUMNS if kind == "count" else tuple(REQUEST_COLUMNS)
    if missing := [name for name in NEEDED[kind] if name not in named]:
        raise SourceError(f"sql: the query yields no column {missing[0]!r}; it needs {', '.join(NEEDED[kind])}")
    if strange := [name for name in named if name not in known]:
        told = "".join(c if c.isprintable() else "?" for c in strange[0][:60])
        raise SourceError(f"sql: column {told!r} is none of {', '.join(known)}: rename it with AS, or leave it out")
    if len(named) < len(columns):
        raise SourceError("sql: the query yields two columns of one name: rename one with AS")
    return named


def column(name: str, rows: Rows, where: Mapping[str, int]) -> Values:
    """The values of one column; NULL throughout where the query yields none of that name."""
    place = where.get(name)
    return [None] * len(rows) if place is None else [row[place] for row in rows]


def requests(rows: Rows, where: Mapping[str, int]) -> Requests:
    """Rows of single requests. Raises ValueError, TypeError or OverflowError where a value cannot be meant."""
    return Requests(**{field: read(column(name, rows, where)) for name, (field, read) in REQUEST_COLUMNS.items()})


def readable(rows: Rows, read: Callable[[Rows], Read]) -> tuple[Read, int]:
    """What the rows say as far as they can be read, and how many cannot."""
    try:
        return read(rows), 0
    except _BAD_ROW:
        good = [row for row in rows if _reads(row, read)]
        return read(good), len(rows) - len(good)


def _reads(row: Sequence[Any], read: Callable[[Rows], object]) -> bool:
    try:
        read([row])
    except _BAD_ROW:
        return False
    return True
