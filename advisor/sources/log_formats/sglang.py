"""SGLang's own log under `--log-requests`: the lines of finished requests, as text or as JSON.

They tell both lengths at every `--log-requests-level`, the declared output from level 1 on, and when the request came
and had its first token where `--enable-metrics` is on. They name no model: the map of aliases gives the empty name one.
Their time is of the server's own zone, taken for UTC unless the line has UNIX times or was taken down with one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ._lines import line_format, moment, tokens
from ._requests import Row, Tokens, known, unix_seconds

_TOLD = re.compile(
    rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]{0,40}\] "
    rb"(?:Finish: obj=|Receive: obj=|Prefill batch|Decode batch|server_args=|max_total_num_tokens=|Load weight)"
)
_FINISHED = b"Finish: obj="
_EVENT = re.compile(rb'\{"timestamp": ?"[^"]{1,40}", ?"event": ?"request\.')
_DECLARED = re.compile(rb"'max_new_tokens': (\d{1,12})\b")
_FIGURE = re.compile(rb"'(\w+_tokens|e2e_latency|\w+_ts|prefill_finished_time)': (\d[\d.e+-]{0,39})")
_ENDED = re.compile(
    rb"'finish_reason': \{'type': '(?P<type>\w+)'"
    rb"(?:, 'message': (?P<quote>['\"])(?P<message>.{0,2000}?)(?P=quote), 'status_code': <?(?P<status>[\w.]{1,40}))?"
)
_STATUS = {"BAD_REQUEST": 400, "INTERNAL_SERVER_ERROR": 500, "SERVICE_UNAVAILABLE": 503}
_CLIENT_GONE = 499


class _Reason(msgspec.Struct, gc=False):
    type: str | None = None
    message: str | None = None
    status_code: int | str | None = None


class _Figures(msgspec.Struct, gc=False):
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    e2e_latency: float | None = None
    request_received_ts: float | None = None
    prefill_finished_ts: float | None = None
    prefill_finished_time: float | None = None
    request_finished_ts: float | None = None
    finish_reason: _Reason | None = None


class _Out(msgspec.Struct, gc=False):
    meta_info: _Figures


class _Parameters(msgspec.Struct, gc=False):
    max_new_tokens: Tokens | None = None


class _Asked(msgspec.Struct, gc=False):
    sampling_params: _Parameters | list[Any] | None = None


class _Line(msgspec.Struct, gc=False):
    timestamp: str
    event: str
    rid: str | list[str] | None = None
    obj: _Asked | None = None
    out: _Out | None = None


_decode = msgspec.json.Decoder(_Line).decode


def _recognises(line: bytes) -> bool:
    return bool(_TOLD.search(line) or _EVENT.search(line, 0, 200))


def _rows(line: bytes) -> Sequence[Row]:
    event = _EVENT.search(line, 0, 200)
    if event:
        return _of_json(line[: event.start()], line[event.start() :])
    place = line.find(_FINISHED)
    if place < 0 or line.rfind(b"'meta_info': {") < place:
        return ()
    return [_of_text(line)]


def _of_text(line: bytes) -> Row:
    # A prompt or an answer may hold the same words; the figures are in what comes last.
    told = line[line.rfind(b"'meta_info': {") :]
    figures = dict(_FIGURE.findall(told))
    ended = _ENDED.search(told)
    declared = _DECLARED.search(line)
    row = _Figures(
        prompt_tokens=tokens(figures[b"prompt_tokens"]) if b"prompt_tokens" in figures else None,
        completion_tokens=tokens(figures[b"completion_tokens"]) if b"completion_tokens" in figures else None,
        finish_reason=_Reason(*(_text(ended[name]) for name in ("type", "message", "status"))) if ended else None,
        **{name: float(figures[name.encode()]) for name in _TIMES if name.encode() in figures},
    )
    return _row(row, moment(line), tokens(declared[1]) if declared else -1, "")


_TIMES = ("e2e_latency", "request_received_ts", "prefill_finished_ts", "prefill_finished_time", "request_finished_ts")


def _text(part: bytes | None) -> str | None:
    return None if part is None else part.decode("utf-8", "replace")


def _of_json(before: bytes, line: bytes) -> Sequence[Row]:
    told = _decode(line)
    if told.event != "request.finished" or told.out is None:
        return ()
    asked = told.obj.sampling_params if told.obj else None
    declared = asked.max_new_tokens if isinstance(asked, _Parameters) else None
    at = moment(before)
    return [
        _row(
            told.out.meta_info,
            unix_seconds(told.timestamp) if math.isnan(at) else at,
            -1 if declared is None else declared,
            told.rid if isinstance(told.rid, str) else "",
        )
    ]


def _row(told: _Figures, written: float, declared: int, request_id: str) -> Row:
    ended = told.finish_reason or _Reason()
    first = known(told.prefill_finished_ts, told.prefill_finished_time)
    return Row(
        completed=known(told.request_finished_ts, written),
        model="",
        upstream="",
        status=_status(ended),
        prompt_tokens=-1 if told.prompt_tokens is None else told.prompt_tokens,
        output_tokens=-1 if told.completion_tokens is None else told.completion_tokens,
        max_tokens=declared,
        ttft_seconds=first - known(told.request_received_ts),
        duration_seconds=known(told.e2e_latency),
        cut=ended.type == "length",
        message=ended.message or "",
        request_id=request_id,
    )


def _status(ended: _Reason) -> int:
    if ended.type != "abort":
        return 200
    word = str(ended.status_code).rpartition(".")[2]
    return int(word) if re.fullmatch(r"[45]\d\d", word) else _STATUS.get(word, _CLIENT_GONE)


FORMAT = line_format("sglang", _recognises, _rows, takes_time=True)
