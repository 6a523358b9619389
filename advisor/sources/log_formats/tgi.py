"""TGI's own log, as text or under `--json-output`: the span of a request that ended, and refusals.

It tells no prompt length. The output is the time of inference over the time per token, which TGI made by dividing the
one by the other: 1.5 s at 30 ms a token are 50 tokens, exactly so for any length that an answer can have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ._lines import line_format, moment, tokens
from ._requests import MAX_TOKENS, Row

_OWN = re.compile(rb"text_generation_(?:router|launcher)")
_SUCCESS = re.compile(rb'"message": ?"Success"|: Success\s*$')
_DURATION = re.compile(
    rb'(?P<name>total_time|queue_time|validation_time|inference_time|time_per_token)"?[:=] ?"'
    rb'(?P<number>\d{1,12}(?:\.\d{1,12})?)(?P<unit>ns|\xc2\xb5s|ms|s)"'
)
_SECONDS = {b"ns": 1e-9, b"\xc2\xb5s": 1e-6, b"ms": 1e-3, b"s": 1.0}
_DECLARED = re.compile(rb"max_new_tokens: Some\((\d{1,12})\)")
_PROBLEM = re.compile(
    rb"(?P<length>Input validation error: .{0,400})|(?P<busy>Model is overloaded)|Request failed during generation"
)
_LEVEL_ERROR = re.compile(rb"\bERROR\b")
_REFUSED, _BUSY, _FAILED = 422, 429, 424


def _rows(line: bytes) -> Sequence[Row]:
    if b"Success" in line and _SUCCESS.search(line):
        return [_answered(line)]
    if b"ERROR" in line and _LEVEL_ERROR.search(line, 0, 400):
        return _failed(line)
    return ()


def _answered(line: bytes) -> Row:
    seconds = {found["name"]: float(found["number"]) * _SECONDS[found["unit"]] for found in _DURATION.finditer(line)}
    inference, per_token = seconds.get(b"inference_time", 0.0), seconds.get(b"time_per_token", 0.0)
    output = round(inference / per_token) if per_token else -1
    if not 0 <= output <= MAX_TOKENS:
        raise ValueError("no count of tokens")
    return _row(line, status=200, output_tokens=output, duration_seconds=seconds.get(b"total_time", math.nan))


def _failed(line: bytes) -> Sequence[Row]:
    problem = _PROBLEM.search(line)
    if not problem:
        return ()
    status = _REFUSED if problem["length"] else _BUSY if problem["busy"] else _FAILED
    return [_row(line, status=status, message=problem[0].decode("utf-8", "replace"))]


def _row(
    line: bytes, *, status: int, output_tokens: int = -1, duration_seconds: float = math.nan, message: str = ""
) -> Row:
    declared = _DECLARED.search(line)
    return Row(
        completed=moment(line),
        model="",
        upstream="",
        status=status,
        output_tokens=output_tokens,
        max_tokens=tokens(declared[1]) if declared else -1,
        duration_seconds=duration_seconds,
        message=message,
    )


FORMAT = line_format("tgi", lambda line: bool(_OWN.search(line)), _rows, takes_time=True)
