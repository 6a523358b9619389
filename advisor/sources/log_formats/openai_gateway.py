"""One object a request, as gateways in front of OpenAI-compatible servers write it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ._json import json_format
from ._requests import Choices, Requests, Status, Tokens, per_choice, unix_seconds

_TIMES = ("ts", "timestamp", "time")


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None


class _Error(msgspec.Struct, gc=False):
    message: str | None = None
    code: int | str | None = None


class _Line(msgspec.Struct, gc=False):
    ts: float | str | None = None
    timestamp: float | str | None = None
    time: float | str | None = None
    model: str | None = None
    upstream: str | None = None
    status: Status | None = None
    usage: _Usage | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    n: Choices | None = None
    ttft_ms: float | None = None
    duration_ms: float | None = None
    finish_reason: str | None = None
    error: _Error | str | None = None
    request_id: str | None = None
    id: str | None = None
    client: str | None = None
    user: str | None = None


def _recognises(line: Mapping[str, Any]) -> bool:
    return any(name in line for name in _TIMES) and ("usage" in line or ("status" in line and "model" in line))


_NO_USAGE = _Usage()


def _requests(lines: Sequence[_Line]) -> Requests:
    usages = [line.usage or _NO_USAGE for line in lines]
    return Requests(
        completed=[line.ts if type(line.ts) is float and line.ts < 1e11 else _moment(line) for line in lines],
        model=[line.model or "" for line in lines],
        upstream=[line.upstream or "" for line in lines],
        status=[line.status or _status(line) for line in lines],
        prompt_tokens=[-1 if usage.prompt_tokens is None else usage.prompt_tokens for usage in usages],
        output_tokens=_per_choice([u.completion_tokens for u in usages], [line.n for line in lines]),
        max_tokens=_newer([line.max_completion_tokens for line in lines], [line.max_tokens for line in lines]),
        ttft_seconds=[math.nan if line.ttft_ms is None else line.ttft_ms / 1000 for line in lines],
        duration_seconds=[math.nan if line.duration_ms is None else line.duration_ms / 1000 for line in lines],
        cut=[line.finish_reason == "length" for line in lines],
        message=["" if line.error is None else _message(line.error) for line in lines],
        request_id=[line.request_id or line.id or "" for line in lines],
        client=[line.client or line.user or "" for line in lines],
    )


def _moment(line: _Line) -> float:
    return unix_seconds(next((t for t in (line.ts, line.timestamp, line.time) if t is not None), None))


def _per_choice(outputs: list[int | None], choices: list[int | None]) -> list[int]:
    return [
        -1 if output is None else output if n is None else per_choice(output, n)
        for output, n in zip(outputs, choices, strict=True)
    ]


def _newer(newer: list[int | None], older: list[int | None]) -> list[int]:
    # The older name is deprecated in the API, so where both are given the newer one is meant.
    return [new if new is not None else old if old is not None else -1 for new, old in zip(newer, older, strict=True)]


def _message(error: _Error | str) -> str:
    return error if isinstance(error, str) else error.message or ""


def _status(line: _Line) -> int:
    if line.error is None:
        return 200
    code = line.error.code if isinstance(line.error, _Error) else None
    return code if isinstance(code, int) and 400 <= code <= 599 else 500


FORMAT = json_format("openai_gateway", msgspec.json.Decoder(_Line), _recognises, _requests)
