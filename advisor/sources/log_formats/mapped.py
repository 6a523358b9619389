"""Anybody else's JSON, one object a line, access logs of nginx and Envoy among it: a map says where figures stand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from ._json import by_row, json_format
from ._requests import LogFormat, Row, Status, Tokens, unix_seconds

TimeUnit = Literal["s", "ms", "us", "ns"]
_SECONDS: dict[TimeUnit, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_NOTHING = ("", "-")
"""What nginx and Envoy write for a variable without a value."""


class FieldMap(BaseModel):
    """Where the figures of a request stand in a line of JSON: dotted paths such as `response.usage.prompt_tokens`.

    A field whose own name has dots, such as `gen_ai.usage.input_tokens`, is found too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    timestamp: str = Field(description="Time of completion: UNIX time, or ISO-8601 text.")
    timestamp_of: Literal["end", "start"] = Field("end", description="`start` where it is the time of arrival.")
    prompt_tokens: str = Field(description="Tokens of the prompt.")
    output_tokens: str = Field(description="Tokens that were generated.")
    model: str | None = Field(None, description="The name under which the model was asked for.")
    upstream: str | None = Field(None, description="The replica that answered, as host:port; of several the last.")
    max_tokens: str | None = Field(None, description="Output tokens that the client asked for at most.")
    finish_reason: str | None = Field(None, description="Why generation ended; `length` is a cut.")
    status: str | None = Field(None, description="HTTP status; without it every line counts as answered.")
    ttft: str | None = Field(None, description="Time to the first token.")
    ttft_unit: TimeUnit = Field("s", description="Unit of ttft.")
    duration: str | None = Field(None, description="Time from arrival to the last token.")
    duration_unit: TimeUnit = Field("s", description="Unit of duration.")
    error_message: str | None = Field(None, description="Text of the error, to tell refusals for length from others.")
    request_id: str | None = Field(None, description="An id that retries of one request share.")
    client: str | None = Field(None, description="Whoever asked: a team, key or user; kept as a salted hash only.")


def mapped_format(fields: FieldMap, name: str = "mapped", marks: Sequence[str] = ()) -> LogFormat:
    """The log format that a field map describes. Numbers may be written as text; `-` and empty text are no value.

    A line is recognised by its time, or by the fields that are its `marks`, whatever they hold.
    """

    def recognises(line: Mapping[str, Any]) -> bool:
        return all(mark in line for mark in marks) if marks else _at(line, fields.timestamp) is not None

    def row(line: Mapping[str, Any]) -> Row:
        written = unix_seconds(_converted(line, fields.timestamp, float | str))
        duration = _or(math.nan, _converted(line, fields.duration, float)) * _SECONDS[fields.duration_unit]
        return Row(
            completed=written + duration if fields.timestamp_of == "start" else written,
            model=_converted(line, fields.model, str) or "",
            upstream=(_converted(line, fields.upstream, str) or "").rpartition(",")[2].strip(),
            status=_or(200, _converted(line, fields.status, Status)),
            prompt_tokens=_or(-1, _converted(line, fields.prompt_tokens, Tokens)),
            output_tokens=_or(-1, _converted(line, fields.output_tokens, Tokens)),
            max_tokens=_or(-1, _converted(line, fields.max_tokens, Tokens)),
            ttft_seconds=_or(math.nan, _converted(line, fields.ttft, float)) * _SECONDS[fields.ttft_unit],
            duration_seconds=duration,
            cut=_at(line, fields.finish_reason) == "length",
            message=_converted(line, fields.error_message, str) or "",
            request_id=_converted(line, fields.request_id, str) or "",
            client=_converted(line, fields.client, str) or "",
        )

    return json_format(name, msgspec.json.Decoder(dict[str, Any]), recognises, by_row(row))


def _at(line: Mapping[str, Any], path: str | None) -> Any:
    value = line.get(path) if path else None
    if value is None and path and "." in path:
        value = line
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
    return None if isinstance(value, str) and value in _NOTHING else value


def _converted(line: Mapping[str, Any], path: str | None, kind: Any) -> Any:
    value = _at(line, path)
    return None if value is None else msgspec.convert(value, kind, strict=False)


def _or(absent: float, value: Any) -> Any:
    return absent if value is None else value
