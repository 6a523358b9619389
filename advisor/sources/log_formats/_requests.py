"""What logged requests say, whatever the format: a row for one, columns for many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import msgspec

MAX_TOKENS = 100_000_000
MAX_CHOICES = 10_000

Tokens = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)]
Choices = Annotated[int, msgspec.Meta(ge=1, le=MAX_CHOICES)]
Status = Annotated[int, msgspec.Meta(ge=100, le=599)]


class Row(msgspec.Struct, frozen=True, gc=False):
    """One request. `completed` is UNIX seconds; `output_tokens` is of one choice; `message` is of an error;
    `client` is whoever asked, as the log names them.

    Absent figures are -1 or NaN, absent words are empty.
    """

    completed: float
    model: str
    upstream: str
    status: int
    prompt_tokens: int = -1
    output_tokens: int = -1
    max_tokens: int = -1
    ttft_seconds: float = math.nan
    duration_seconds: float = math.nan
    cut: bool = False
    message: str = ""
    request_id: str = ""
    client: str = ""


@dataclass(frozen=True, slots=True)
class Requests:
    """Many rows as columns of one length: half the cost, and reading a log is little else than making these."""

    completed: list[float]
    model: list[str]
    upstream: list[str]
    status: list[int]
    prompt_tokens: list[int]
    output_tokens: list[int]
    max_tokens: list[int]
    ttft_seconds: list[float]
    duration_seconds: list[float]
    cut: list[bool]
    message: list[str]
    request_id: list[str]
    client: list[str]

    def __len__(self) -> int:
        return len(self.completed)


class NoEngineError(ValueError):
    """A line of a request that never reached an engine."""


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One way to write requests as lines.

    recognises: whether a line looks like one of this format. read: the requests of a block of whole lines; what is none
    is counted by its reason, in `bad` where it cannot be read, in `unused` where it tells of no request of an engine.
    takes_time: lines may begin with the UNIX seconds at which somebody else (the journal) took them down, which are
    then their time; for lines that do not say of which zone theirs is.
    """

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes, Counter[str], Counter[str]], Requests]
    takes_time: bool = False


def columns(rows: Sequence[Row]) -> Requests:
    """Rows as columns."""
    return Requests(*([getattr(row, name) for row in rows] for name in Row.__struct_fields__))


def unix_seconds(value: float | str | None) -> float:
    """UNIX seconds of a number (seconds, or milli-, micro-, nanoseconds by its size) or an ISO-8601 text; NaN for none.

    A text without an offset is UTC. 1795960000123 and "2026-11-29T13:46:40.123Z" are both 1795960000.123.
    """
    if value is None:
        return math.nan
    if isinstance(value, str):
        if value[4:5] != "-":
            return unix_seconds(float(value))
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    while 1e11 < value < math.inf:
        value /= 1000
    return value


def known(*figures: float | None) -> float:
    """The first that is not None; NaN where all are."""
    return next((figure for figure in figures if figure is not None), math.nan)


def per_choice(output_tokens: int, choices: int) -> int:
    """Output tokens of one of `n` choices, rounded up: 100 tokens in 3 choices are 34."""
    return -(-output_tokens // choices)
