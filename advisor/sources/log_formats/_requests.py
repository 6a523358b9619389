"""What logged requests say, whatever the format: a row for one, columns for many."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

MAX_TOKENS = 100_000_000
MAX_CHOICES = 10_000

Tokens = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)]
Choices = Annotated[int, msgspec.Meta(ge=1, le=MAX_CHOICES)]
Status = Annotated[int, msgspec.Meta(ge=100, le=599)]


class Row(msgspec.Struct, frozen=True, gc=False):
    """One request. `completed` is UNIX seconds; `output_tokens` is of one choice; `message` is of an error.

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

    def __len__(self) -> int:
        return len(self.completed)


class NoEngineError(ValueError):
    """A line of a request that never reached an engine."""


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One way to write a request as one line of JSON.

    recognises: whether an object looks like a line of this format. requests: decoded lines as columns. Raises
    NoEngineError, or msgspec.ValidationError or another ValueError where a value cannot be meant.
    """

    name: str
    decoder: msgspec.json.Decoder[Any]
    recognises: Callable[[Mapping[str, Any]], bool]
    requests: Callable[[Sequence[Any]], Requests]


def by_row(row: Callable[[Any], Row]) -> Callable[[Sequence[Any]], Requests]:
    """Columns from a function that reads one line."""

    def requests(lines: Sequence[Any]) -> Requests:
        rows = [row(line) for line in lines]
        return Requests(*([getattr(row, name) for row in rows] for name in Row.__struct_fields__))

    return requests


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


def per_choice(output_tokens: int, choices: int) -> int:
    """Output tokens of one of `n` choices, rounded up: 100 tokens in 3 choices are 34."""
    return -(-output_tokens // choices)
