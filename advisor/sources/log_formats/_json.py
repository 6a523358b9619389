"""Formats whose every line is one JSON object: a typed decoder, and columns of what it decoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ._requests import LogFormat, NoEngineError, Requests, Row, columns

BAD_LINE = (msgspec.DecodeError, ValueError, RecursionError)
"""What a line raises that cannot be read."""

NOT_JSON = "not JSON"
NOT_A_REQUEST = "with a missing or impossible value"
FROM_CACHE = "answered by the gateway's cache"


def json_format(
    name: str,
    decoder: msgspec.json.Decoder[Any],
    recognises: Callable[[Mapping[str, Any]], bool],
    requests: Callable[[Sequence[Any]], Requests],
) -> LogFormat:
    """A format of JSON lines.

    recognises: whether an object looks like a line. requests: decoded lines as columns; it raises NoEngineError, or
    msgspec.ValidationError or another ValueError where a value cannot be meant.
    """

    def read(block: bytes, bad: Counter[str], unused: Counter[str]) -> Requests:
        try:
            return requests(decoder.decode_lines(block))
        except BAD_LINE:
            return requests(list(_good_lines(block, decoder, requests, bad, unused)))

    return LogFormat(name, lambda line: recognises(json_object(line)), read)


def json_object(line: bytes) -> Mapping[str, Any]:
    """The JSON object that a line is; an empty one where it is none."""
    try:
        decoded = msgspec.json.decode(line)
    except BAD_LINE:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def by_row(row: Callable[[Any], Row]) -> Callable[[Sequence[Any]], Requests]:
    """Columns from a function that reads one decoded line."""
    return lambda lines: columns([row(line) for line in lines])


def reason(problem: Exception) -> str:
    """Why a line could not be read."""
    return NOT_JSON if type(problem) in {msgspec.DecodeError, RecursionError} else NOT_A_REQUEST


def _good_lines(
    block: bytes,
    decoder: msgspec.json.Decoder[Any],
    requests: Callable[[Sequence[Any]], Requests],
    bad: Counter[str],
    unused: Counter[str],
) -> Iterator[Any]:
    for line in block.split(b"\n"):
        if not line or line.isspace():
            continue
        try:
            decoded = decoder.decode(line)
            requests([decoded])
        except NoEngineError:
            unused[FROM_CACHE] += 1
        except BAD_LINE as problem:
            bad[reason(problem)] += 1
        else:
            yield decoded
