"""Each format on lines written by hand; the figures are those of the line."""

from __future__ import annotations

import json
import math
import pkgutil
from typing import Any

import pytest

from advisor.sources import log_formats
from advisor.sources.log_formats import FORMATS, FieldMap, LogFormat, Row, mapped_format
from tests.unit.sources.log_formats.one_line import IMPOSSIBLE, read_one, told

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

ENVOY = {
    "start_time": "2026-11-29T13:46:40.000Z",
    "response_code": 200,
    "duration": 2500,
    "upstream_host": "10.0.0.1:8000",
    "x-request-id": "r1",
    "gen_ai.request.model": "chat",
    "gen_ai.usage.input_tokens": 374,
    "gen_ai.usage.output_tokens": 63,
}
# nginx writes every variable as text, `-` or nothing where it has no value, and each upstream that it tried.
NGINX = {
    "msec": "1795960000.500",
    "model": "chat",
    "upstream_addr": "10.0.0.1:8000, 10.0.0.2:8000",
    "status": "200",
    "request_time": "1.250",
    "prompt_tokens": "374",
    "completion_tokens": "63",
}
NGINX_FIELDS = FieldMap(
    timestamp="msec",
    model="model",
    upstream="upstream_addr",
    status="status",
    prompt_tokens="prompt_tokens",
    output_tokens="completion_tokens",
    duration="request_time",
)


def read(written: LogFormat, line: dict[str, Any]) -> Row:
    return read_one(written, json.dumps(line).encode())


def recognised(line: str) -> list[str]:
    return [name for name, written in FORMATS.items() if written.recognises(line.encode())]


def test_every_format_in_the_folder_is_registered() -> None:
    modules = {module.name for module in pkgutil.iter_modules(log_formats.__path__) if module.name[0] != "_"}
    assert modules == {*FORMATS, "mapped"}
    assert all(written.name == name for name, written in FORMATS.items())


def test_each_format_recognises_its_own_lines_only() -> None:
    assert recognised(json.dumps(GATEWAY)) == ["openai_gateway"]
    assert recognised(json.dumps(LITELLM))[0] == "litellm"
    assert recognised(json.dumps({"level": "info", "msg": "started", "time": 1})) == []


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
    assert told(FORMATS["openai_gateway"], json.dumps(GATEWAY | wrong).encode()) == IMPOSSIBLE


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
    cached = json.dumps(LITELLM | {"cache_hit": True}).encode()
    assert told(FORMATS["litellm"], cached) == ({}, {"answered by the gateway's cache": 1})


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
    assert written.recognises(json.dumps(line).encode())
    assert not written.recognises(b'{"done": 1}')
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
    assert told(written, json.dumps(line | {"usage": {"in": -1, "out": 5}}).encode()) == IMPOSSIBLE


@pytest.mark.parametrize(
    ("more", "client"),
    [({"client": "search", "user": "u1"}, "search"), ({"user": "u1"}, "u1"), ({}, "")],
)
def test_it_reads_who_asked_a_gateway(more: dict[str, str], client: str) -> None:
    assert read(FORMATS["openai_gateway"], GATEWAY | more).client == client


@pytest.mark.parametrize(
    ("metadata", "client"),
    [
        ({"user_api_key_alias": "search", "user_api_key_hash": "88dc"}, "search"),
        ({"user_api_key_alias": None, "user_api_key_hash": "88dc"}, "88dc"),
        (None, "u1"),
    ],
)
def test_it_reads_whose_key_litellm_was_asked_with(metadata: dict[str, str] | None, client: str) -> None:
    assert read(FORMATS["litellm"], LITELLM | {"metadata": metadata, "end_user": "u1"}).client == client


def test_a_map_says_where_the_client_stands() -> None:
    fields = FieldMap(timestamp="t", prompt_tokens="in", output_tokens="out", client="key.team")
    line = {"t": 1795960000, "in": 5, "out": 6, "key": {"team": "search"}}
    assert read(mapped_format(fields), line).client == "search"


def test_it_reads_nginx_as_mapped() -> None:
    row = read(mapped_format(NGINX_FIELDS), NGINX)
    assert row.upstream == "10.0.0.2:8000"
    assert (row.completed, row.duration_seconds, row.prompt_tokens, row.output_tokens) == (1795960000.5, 1.25, 374, 63)
    streamed = read(mapped_format(NGINX_FIELDS), NGINX | {"prompt_tokens": "-", "completion_tokens": ""})
    assert (streamed.prompt_tokens, streamed.output_tokens, streamed.status) == (-1, -1, 200)


def test_it_reads_envoy_ai_gateway() -> None:
    assert recognised(json.dumps(ENVOY)) == ["envoy_ai_gateway"]
    # It arrived at 1795960000 and took 2.5 s.
    row = read(FORMATS["envoy_ai_gateway"], ENVOY)
    assert (row.completed, row.model, row.upstream, row.status) == (1795960002.5, "chat", "10.0.0.1:8000", 200)
    assert (row.prompt_tokens, row.output_tokens, row.duration_seconds, row.request_id) == (374, 63, 2.5, "r1")
    unknown = ENVOY | {"gen_ai.usage.input_tokens": "-", "gen_ai.usage.output_tokens": None}
    assert recognised(json.dumps(unknown)) == ["envoy_ai_gateway"]
    assert read(FORMATS["envoy_ai_gateway"], unknown).prompt_tokens == -1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("INFO 11-29 16:30:05 [loggers.py:310] Engine 000: Avg prompt throughput: 5.0 tokens/s", "vLLM's own log"),
        ("(APIServer pid=7) INFO 11-29 16:30:05 [v1/loggers.py:310] Received request r1: params: x", "vLLM's own log"),
        ("INFO: Routing request r1 with session id None to http://a:1 at 1795960000.1, process time = 0.1", "router"),
        ('10.0.0.9 - - [29/Nov/2026:13:46:40 +0000] "POST /v1/chat/completions HTTP/1.1" 200 512', "an access log"),
    ],
)
def test_logs_that_tell_no_lengths_are_called_by_their_names(line: str, said: str) -> None:
    assert recognised(line) == []
    assert said in (log_formats.lengthless(line.encode()) or "")
    assert log_formats.lengthless(b"anything else") is None
