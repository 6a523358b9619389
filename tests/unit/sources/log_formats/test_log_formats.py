"""Each format on lines written by hand; the figures are those of the line."""

from __future__ import annotations

import json
import math
import pkgutil
from typing import Any

import msgspec
import pytest

from advisor.sources import log_formats
from advisor.sources.log_formats import FORMATS, FieldMap, LogFormat, NoEngineError, Row, mapped_format

GATEWAY = {
    "ts": 1795960000.5,
    "model": "acme/m",
    "upstream": "10.0.0.1:8000",
    "status": 200,
    "usage": {"prompt_tokens": 374, "completion_tokens": 63, "total_tokens": 437},
    "max_tokens": 128,
    "ttft_ms": 22.5,
    "duration_ms": 620,
    "finish_reason": "length",
    "request_id": "r1",
}
LITELLM = {
    "id": "chatcmpl-1",
    "call_type": "acompletion",
    "status": "success",
    "stream": True,
    "startTime": 1795960000.0,
    "endTime": 1795960002.5,
    "completionStartTime": 1795960000.25,
    "response_time": 0.25,
    "model": "hosted_vllm/acme/m",
    "model_group": "chat",
    "api_base": "http://10.0.0.1:8000/v1",
    "prompt_tokens": 374,
    "completion_tokens": 63,
    "model_parameters": {"max_tokens": 128, "temperature": 0.2},
    "response": {"choices": [{"finish_reason": "stop"}]},
    "cache_hit": None,
    "error_str": None,
}


def read(written: LogFormat, line: dict[str, Any]) -> Row:
    columns = written.requests([written.decoder.decode(json.dumps(line))])
    return Row(*(getattr(columns, name)[0] for name in Row.__struct_fields__))


def test_every_format_in_the_folder_is_registered() -> None:
    modules = {module.name for module in pkgutil.iter_modules(log_formats.__path__) if module.name[0] != "_"}
    assert modules == {*FORMATS, "mapped"}
    assert all(written.name == name for name, written in FORMATS.items())


def test_each_format_recognises_its_own_lines_only() -> None:
    assert [name for name, written in FORMATS.items() if written.recognises(GATEWAY)] == ["openai_gateway"]
    assert next(name for name, written in FORMATS.items() if written.recognises(LITELLM)) == "litellm"
    assert not any(written.recognises({"level": "info", "msg": "started", "time": 1}) for written in FORMATS.values())


def test_it_reads_a_gateway_line() -> None:
    assert read(FORMATS["openai_gateway"], GATEWAY) == Row(
        1795960000.5, "acme/m", "10.0.0.1:8000", 200, 374, 63, 128, 0.0225, 0.62, True, "", "r1"
    )


@pytest.mark.parametrize("ts", ["2026-11-29T13:46:40.5Z", "2026-11-29T15:46:40.5+02:00", "2026-11-29 13:46:40.5"])
def test_it_reads_iso_times_and_takes_those_without_offset_for_utc(ts: str) -> None:
    # date -u -d 2026-11-29T13:46:40Z +%s = 1795960000
    assert read(FORMATS["openai_gateway"], GATEWAY | {"ts": ts}).completed == 1795960000.5


@pytest.mark.parametrize("ts", [1795960000500, 1795960000500000, "1795960000.5"])
def test_it_reads_other_units_of_unix_time(ts: float | str) -> None:
    assert read(FORMATS["openai_gateway"], GATEWAY | {"ts": ts}).completed == 1795960000.5


@pytest.mark.parametrize("ts", ["inf", "1e999", "nan"])
def test_it_takes_no_time_from_what_is_no_number(ts: str) -> None:
    assert not math.isfinite(read(FORMATS["openai_gateway"], GATEWAY | {"ts": ts}).completed)


def test_it_reads_synonyms() -> None:
    line = {name: value for name, value in GATEWAY.items() if name not in {"ts", "max_tokens", "request_id"}}
    row = read(FORMATS["openai_gateway"], line | {"timestamp": 1.5, "max_completion_tokens": 7, "id": "x"})
    assert (row.completed, row.max_tokens, row.request_id) == (1.5, 7, "x")


def test_it_divides_output_among_choices_and_rounds_up() -> None:
    # 63 tokens in 4 choices: 15.75
    assert read(FORMATS["openai_gateway"], GATEWAY | {"n": 4}).output_tokens == 16
    parameters = {"model_parameters": {"n": 4}}
    assert read(FORMATS["litellm"], LITELLM | parameters).output_tokens == 16


def test_it_marks_what_a_gateway_line_lacks() -> None:
    row = read(FORMATS["openai_gateway"], {"ts": 1.5, "model": "m", "status": 200, "usage": None, "error": None})
    assert (row.prompt_tokens, row.output_tokens, row.max_tokens, row.upstream) == (-1, -1, -1, "")
    assert math.isnan(row.ttft_seconds)
    assert math.isnan(row.duration_seconds)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        ({"message": "too long", "code": 400}, 400, "too long"),
        ({"message": "gone", "code": "upstream_error"}, 500, "gone"),
        ("broken pipe", 500, "broken pipe"),
    ],
)
def test_it_tells_the_status_from_the_error_where_none_is_logged(error: object, status: int, message: str) -> None:
    line = {name: value for name, value in GATEWAY.items() if name != "status"}
    row = read(FORMATS["openai_gateway"], line | {"error": error})
    assert (row.status, row.message) == (status, message)


@pytest.mark.parametrize(
    "wrong",
    [
        {"usage": {"prompt_tokens": -1, "completion_tokens": 1}},
        {"usage": {"prompt_tokens": 100_000_001, "completion_tokens": 1}},
        {"usage": {"prompt_tokens": "374", "completion_tokens": 1}},
        {"n": 0},
        {"ts": "yesterday"},
        {"status": "OK"},
        {"ttft_ms": [1]},
    ],
)
def test_it_refuses_impossible_values(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  msgspec.ValidationError is one too
        read(FORMATS["openai_gateway"], GATEWAY | wrong)


def test_it_reads_a_litellm_line() -> None:
    assert read(FORMATS["litellm"], LITELLM) == Row(
        1795960002.5, "chat", "10.0.0.1:8000", 200, 374, 63, 128, 0.25, 2.5, False, "", "chatcmpl-1"
    )


def test_it_takes_no_time_to_first_token_from_an_answer_in_one_piece() -> None:
    whole = LITELLM | {"stream": False, "completionStartTime": 1795960002.5}
    assert math.isnan(read(FORMATS["litellm"], whole).ttft_seconds)


def test_it_reads_a_litellm_failure() -> None:
    told = {"error_code": "400", "error_class": "ContextWindowExceededError", "error_message": "too long"}
    row = read(FORMATS["litellm"], LITELLM | {"status": "failure", "error_information": told, "error_str": "x"})
    assert (row.status, row.message) == (400, "too long")
    untold = LITELLM | {"status": "failure", "error_information": None, "error_str": "x"}
    assert read(FORMATS["litellm"], untold).status == 500


def test_an_answer_from_litellms_cache_is_no_request_of_an_engine() -> None:
    with pytest.raises(NoEngineError):
        read(FORMATS["litellm"], LITELLM | {"cache_hit": True})


def test_it_never_takes_credentials_for_an_upstream() -> None:
    row = read(FORMATS["litellm"], LITELLM | {"api_base": "https://user:secret@gpu-1:8000/v1"})
    assert row.upstream == "gpu-1:8000"


def test_it_reads_a_format_of_ones_own() -> None:
    fields = FieldMap(
        timestamp="done.at",
        model="req.model",
        prompt_tokens="usage.in",
        output_tokens="usage.out",
        status="http",
        ttft="t.first",
        ttft_unit="us",
        duration="t.all",
        duration_unit="ms",
        finish_reason="why",
    )
    line = {
        "done": {"at": "2026-11-29T13:46:40Z"},
        "req": {"model": "m"},
        "usage": {"in": "10", "out": 5},
        "http": "200",
        "t": {"first": 250000, "all": 900},
        "why": "length",
    }
    written = mapped_format(fields)
    assert written.recognises(line)
    assert not written.recognises({"done": 1})
    row = read(written, line)
    assert (row.completed, row.model, row.status, row.prompt_tokens, row.output_tokens) == (
        1795960000.0,
        "m",
        200,
        10,
        5,
    )
    assert [row.ttft_seconds, row.duration_seconds] == pytest.approx([0.25, 0.9])
    assert row.cut
    with pytest.raises(msgspec.ValidationError):
        read(written, line | {"usage": {"in": -1, "out": 5}})
