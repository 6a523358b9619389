"""OpenTelemetry spans as OTLP JSON, one export a line, as the Collector's file exporter writes them.

A span is a request when it carries token counts: under the GenAI conventions' names, or under those that vLLM and
SGLang give their own spans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ._lines import line_format
from ._requests import Choices, Row, Tokens, known, per_choice

_NANOSECONDS = re.compile(r"\d{1,20}")
_EXPORT = re.compile(rb'\s*\{\s*"resourceSpans"\s*:')

_PROMPT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_MODEL = ("gen_ai.request.model", "gen_ai.response.model")
_STATUS_ERROR = (2, "STATUS_CODE_ERROR")


class _Value(msgspec.Struct, gc=False, rename="camel"):
    string_value: str | None = None
    int_value: int | str | None = None
    double_value: float | None = None
    array_value: _Values | None = None

    def told(self) -> Any:
        values = (value.told() for value in self.array_value.values[:1]) if self.array_value else ()
        told = (self.string_value, self.int_value, self.double_value, *values)
        return next((value for value in told if value is not None), None)


class _Values(msgspec.Struct, gc=False):
    values: list[_Value] = []


class _Attribute(msgspec.Struct, gc=False):
    key: str
    value: _Value | None = None


class _SpanStatus(msgspec.Struct, gc=False):
    code: int | str | None = None
    message: str | None = None


class _Span(msgspec.Struct, gc=False, rename="camel"):
    start_time_unix_nano: int | str | None = None
    end_time_unix_nano: int | str | None = None
    attributes: list[_Attribute] = []
    status: _SpanStatus | None = None


class _Scope(msgspec.Struct, gc=False):
    spans: list[_Span] = []


class _Resource(msgspec.Struct, gc=False, rename="camel"):
    scope_spans: list[_Scope] = []


class _Export(msgspec.Struct, gc=False, rename="camel"):
    resource_spans: list[_Resource] = []


_decode = msgspec.json.Decoder(_Export).decode


def _rows(line: bytes) -> Sequence[Row]:
    if not _EXPORT.match(line):
        return ()
    return list(_requests(_decode(line)))


def _requests(export: _Export) -> Iterator[Row]:
    for resource in export.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                told = {attribute.key: attribute.value.told() for attribute in span.attributes if attribute.value}
                if any(told.get(name) is not None for name in _PROMPT):
                    yield _row(span, told)


def _row(span: _Span, told: Mapping[str, Any]) -> Row:
    start, end = _seconds(span.start_time_unix_nano), _seconds(span.end_time_unix_nano)
    failed = span.status is not None and span.status.code in _STATUS_ERROR
    output = _tokens(told, *_OUTPUT)
    return Row(
        completed=known(end),
        model=str(_first(told, *_MODEL) or ""),
        upstream=_upstream(told),
        status=500 if failed else 200,
        prompt_tokens=_tokens(told, *_PROMPT),
        output_tokens=per_choice(output, _choices(told)) if output > 0 else output,
        max_tokens=_tokens(told, "gen_ai.request.max_tokens"),
        ttft_seconds=_number(told, "gen_ai.latency.time_to_first_token"),
        duration_seconds=known(end) - known(start),
        cut=_first(told, "gen_ai.response.finish_reasons") == "length",
        message=(span.status.message or "") if failed and span.status else "",
        request_id=str(_first(told, "gen_ai.request.id", "gen_ai.response.id") or ""),
    )


def _first(told: Mapping[str, Any], *names: str) -> Any:
    return next((told[name] for name in names if told.get(name) is not None), None)


def _tokens(told: Mapping[str, Any], *names: str) -> int:
    value = _first(told, *names)
    return -1 if value is None else msgspec.convert(value, Tokens, strict=False)


def _choices(told: Mapping[str, Any]) -> int:
    return msgspec.convert(_first(told, "gen_ai.request.n", "gen_ai.request.choice.count") or 1, Choices, strict=False)


def _number(told: Mapping[str, Any], name: str) -> float:
    value = told.get(name)
    return known(None if value is None else msgspec.convert(value, float, strict=False))


def _upstream(told: Mapping[str, Any]) -> str:
    host, port = _first(told, "server.address"), _first(told, "server.port")
    return f"{host}:{port}" if host and port else ""


def _seconds(nanoseconds: int | str | None) -> float | None:
    if nanoseconds is None:
        return None
    if not _NANOSECONDS.fullmatch(str(nanoseconds)):
        raise ValueError("no time")
    return int(nanoseconds) / 1e9


FORMAT = line_format("otlp", lambda line: bool(_EXPORT.match(line)), _rows)
