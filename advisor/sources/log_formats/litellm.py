"""LiteLLM's StandardLoggingPayload, one object a line, as its file, bucket and HTTP callbacks write it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ._json import by_row, json_format
from ._requests import Choices, NoEngineError, Row, Tokens, per_choice, unix_seconds

_HTTP_ERROR = re.compile(r"[45][0-9]{2}")


class _Parameters(msgspec.Struct, gc=False):
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    n: Choices | None = None


class _ErrorInformation(msgspec.Struct, gc=False):
    error_code: str | int | None = None
    error_message: str | None = None


class _Choice(msgspec.Struct, gc=False):
    finish_reason: str | None = None


class _Response(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None


class _Metadata(msgspec.Struct, gc=False):
    user_api_key_alias: str | None = None
    user_api_key_hash: str | None = None


class _Line(msgspec.Struct, gc=False, rename="camel"):
    end_time: float | str
    start_time: float | str | None = None
    completion_start_time: float | str | None = None
    id: str | None = None
    stream: bool | None = None
    cache_hit: bool | str | None = msgspec.field(default=None, name="cache_hit")
    status: str | None = None
    model: str | None = None
    response: _Response | str | list[Any] | None = None
    model_group: str | None = msgspec.field(default=None, name="model_group")
    api_base: str | None = msgspec.field(default=None, name="api_base")
    prompt_tokens: Tokens | None = msgspec.field(default=None, name="prompt_tokens")
    completion_tokens: Tokens | None = msgspec.field(default=None, name="completion_tokens")
    model_parameters: _Parameters | None = msgspec.field(default=None, name="model_parameters")
    metadata: _Metadata | None = msgspec.field(default=None, name="metadata")
    end_user: str | None = msgspec.field(default=None, name="end_user")
    error_str: str | None = msgspec.field(default=None, name="error_str")
    error_information: _ErrorInformation | None = msgspec.field(default=None, name="error_information")


def _recognises(line: Mapping[str, Any]) -> bool:
    return "endTime" in line and "startTime" in line and ("model_group" in line or "call_type" in line)


def _status(line: _Line) -> int:
    if line.status != "failure":
        return 200
    code = str(line.error_information.error_code) if line.error_information else ""
    return int(code) if _HTTP_ERROR.fullmatch(code) else 500


def _message(line: _Line) -> str:
    told = line.error_information.error_message if line.error_information else None
    return told or line.error_str or ""


def _upstream(line: _Line) -> str:
    """The host and port of api_base: `http://10.0.0.1:8000/v1` is 10.0.0.1:8000, as Prometheus names an instance."""
    return (line.api_base or "").partition("://")[2].partition("/")[0].rpartition("@")[2]


def _cut(line: _Line) -> bool:
    choices = line.response.choices if isinstance(line.response, _Response) else None
    return any(choice.finish_reason == "length" for choice in choices or ())


def _client(line: _Line) -> str:
    key = line.metadata or _Metadata()
    return key.user_api_key_alias or key.user_api_key_hash or line.end_user or ""


def _row(line: _Line) -> Row:
    # An answer out of the gateway's own cache never reached an engine.
    if line.cache_hit is True or line.cache_hit == "True":
        raise NoEngineError
    asked = line.model_parameters or _Parameters()
    declared = asked.max_tokens if asked.max_completion_tokens is None else asked.max_completion_tokens
    start, end = unix_seconds(line.start_time), unix_seconds(line.end_time)
    # Of an answer that is not streamed LiteLLM reports the end as the time of the first token.
    first = unix_seconds(line.completion_start_time) if line.stream else math.nan
    return Row(
        completed=end,
        model=line.model_group or line.model or "",
        upstream=_upstream(line),
        status=_status(line),
        prompt_tokens=-1 if line.prompt_tokens is None else line.prompt_tokens,
        output_tokens=-1 if line.completion_tokens is None else per_choice(line.completion_tokens, asked.n or 1),
        max_tokens=-1 if declared is None else declared,
        ttft_seconds=first - start,
        duration_seconds=end - start,
        cut=_cut(line),
        message=_message(line),
        request_id=line.id or "",
        client=_client(line),
    )


FORMAT = json_format("litellm", msgspec.json.Decoder(_Line), _recognises, by_row(_row))
