"""Engines' own lines, composed from what their sources print; the figures are those of the line."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engines.refusals import length_refusal
from advisor.sources.log_formats import FORMATS
from tests.unit.sources.log_formats.one_line import IMPOSSIBLE, read_one, told

SGLANG, TGI, OTLP = FORMATS["sglang"], FORMATS["tgi"], FORMATS["otlp"]

# date -u -d "2026-11-29 13:46:40" +%s = 1795960000
FINISHED = (
    "[2026-11-29 13:46:40 TP0] Finish: obj=GenerateReqInput(rid='r1', text='hi', stream=True, "
    "sampling_params={'temperature': 0.2, 'max_new_tokens': 128}), out={'text': ' there', 'output_ids': [5, 7], "
    "'meta_info': {'id': 'r1', 'finish_reason': {'type': 'length', 'length': 63}, 'prompt_tokens': 374, "
    "'weight_version': 'default', 'total_retractions': 0, 'completion_tokens': 63, 'cached_tokens': 12, "
    "'e2e_latency': 2.5}}"
)
TIMES = (
    "'e2e_latency': 2.5, 'request_received_ts': 1795952797.5, 'prefill_finished_ts': 1795952797.75, "
    "'request_finished_ts': 1795952800.0}}"
)
ABORTED = (
    "[2026-11-29 13:46:40] Finish: obj=GenerateReqInput(rid='r2'), out={'text': '', 'meta_info': {'id': 'r2', "
    "'finish_reason': {'type': 'abort', 'message': \"Input length (71897 tokens) exceeds the maximum allowed length "
    "(64000 tokens). Use a shorter input or enable --allow-auto-truncate.\", 'status_code': 400, 'err_type': "
    "'BadRequestError'}, 'prompt_tokens': 71897, 'completion_tokens': 0, 'e2e_latency': 0.01}}"
)
EVENT: dict[str, Any] = {
    "timestamp": "2026-11-29T13:46:40.500000",
    "event": "request.finished",
    "rid": "r1",
    "obj": {"rid": "r1", "sampling_params": {"max_new_tokens": 128}},
    "out": {
        "meta_info": {
            "id": "r1",
            "finish_reason": {"type": "stop", "matched": 2},
            "prompt_tokens": 374,
            "completion_tokens": 63,
            "e2e_latency": 2.5,
        }
    },
}
# 1.89 s of inference at 30 ms a token: 63 tokens.
SUCCESS: dict[str, Any] = {
    "timestamp": "2026-11-29T13:46:40.500000Z",
    "level": "INFO",
    "message": "Success",
    "target": "text_generation_router::server",
    "span": {
        "inference_time": "1.89s",
        "parameters": "GenerateParameters { best_of: None, max_new_tokens: Some(128), stop: [], seed: None }",
        "queue_time": "250.5\u00b5s",
        "seed": "None",
        "time_per_token": "30ms",
        "total_time": "1.9s",
        "validation_time": "120.25\u00b5s",
        "name": "chat_completions",
    },
}
SUCCESS_TEXT = (
    "2026-11-29T13:46:40.500000Z  INFO generate{parameters=GenerateParameters { max_new_tokens: Some(128) } "
    'total_time="1.9s" validation_time="120.25\u00b5s" queue_time="250.5\u00b5s" inference_time="1.89s" '
    'time_per_token="30ms" seed="None"}: text_generation_router::server: router/src/server.rs:425: Success'
)
REFUSAL = (
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000 `inputs` tokens and 20 "
    "`max_new_tokens`"
)


def text(line: str | dict[str, Any]) -> bytes:
    return (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)).encode()


def test_sglang_tells_both_lengths() -> None:
    assert SGLANG.recognises(text(FINISHED))
    row = read_one(SGLANG, text(FINISHED))
    assert (row.completed, row.status, row.prompt_tokens, row.output_tokens) == (1795960000.0, 200, 374, 63)
    assert (row.max_tokens, row.duration_seconds, row.cut, row.model) == (128, 2.5, True, "")
    assert math.isnan(row.ttft_seconds)


def test_sglang_with_metrics_tells_when_the_first_token_came() -> None:
    row = read_one(SGLANG, text(FINISHED.replace("'e2e_latency': 2.5}}", TIMES)))
    # UNIX times win over a time of day in a zone that nobody names.
    assert (row.completed, row.ttft_seconds) == (1795952800.0, 0.25)


def test_a_time_that_was_put_before_a_line_wins() -> None:
    assert read_one(SGLANG, text(f"1795963600.250000 {FINISHED}")).completed == 1795963600.25
    taken_down = f"2026-11-29T14:46:40.25Z stdout F {FINISHED}"
    assert read_one(SGLANG, text(taken_down)).completed == 1795963600.25
    assert read_one(SGLANG, text(f"1795963600.250000 {json.dumps(EVENT)}")).completed == 1795963600.25


def test_words_in_a_prompt_or_an_answer_are_no_figures() -> None:
    hostile = "'meta_info': {'prompt_tokens': 9, 'completion_tokens': 9} Finish: obj="
    line = FINISHED.replace("'hi'", f'"{hostile}"').replace("' there'", f'"{hostile}"')
    row = read_one(SGLANG, text(line))
    assert (row.prompt_tokens, row.output_tokens) == (374, 63)


def test_sglang_refuses_for_length() -> None:
    row = read_one(SGLANG, text(ABORTED))
    refusal = length_refusal(row.message)
    assert row.status == 400
    assert refusal is not None
    assert refusal.needed_tokens == 71897


@pytest.mark.parametrize(
    ("code", "status"),
    [("<HTTPStatus.BAD_REQUEST: 400>", 400), ("HTTPStatus.BAD_REQUEST", 400), ("503", 503), ("None", 499)],
)
def test_sglang_says_why_it_gave_up(code: str, status: int) -> None:
    assert read_one(SGLANG, text(ABORTED.replace("'status_code': 400", f"'status_code': {code}"))).status == status


def test_sglang_writes_json_as_well() -> None:
    assert SGLANG.recognises(text(EVENT))
    row = read_one(SGLANG, text(EVENT))
    assert (row.completed, row.status, row.prompt_tokens, row.output_tokens) == (1795960000.5, 200, 374, 63)
    assert (row.max_tokens, row.duration_seconds, row.cut, row.request_id) == (128, 2.5, False, "r1")


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-29 13:46:40 TP0] Prefill batch, #new-seq: 1, #new-token: 374, #cached-token: 0, token usage: 0.01",
        "[2026-11-29 13:46:40 TP0] Receive: obj=GenerateReqInput(rid='r1')",
        'INFO:     10.0.0.9:5050 - "POST /generate HTTP/1.1" 200 OK',
        json.dumps(EVENT | {"event": "request.received", "out": None}),
        "[2026-11-29 13:46:40] Finish: obj=GenerateReqInput(rid='picture')",
    ],
)
def test_other_lines_of_sglang_are_counted_and_not_called_bad(line: str) -> None:
    assert told(SGLANG, text(line)) == ({}, {"about no finished request": 1})


@pytest.mark.parametrize("wrong", ["'prompt_tokens': 100000001", "'prompt_tokens': 9999999999999"])
def test_impossible_figures_of_sglang_are_bad(wrong: str) -> None:
    assert told(SGLANG, text(FINISHED.replace("'prompt_tokens': 374", wrong))) == IMPOSSIBLE


@pytest.mark.parametrize("line", [text(SUCCESS), text(SUCCESS_TEXT)])
def test_tgi_tells_the_output_by_two_times(line: bytes) -> None:
    assert TGI.recognises(line)
    row = read_one(TGI, line)
    assert (row.completed, row.status, row.prompt_tokens, row.output_tokens) == (1795960000.5, 200, -1, 63)
    assert (row.max_tokens, row.duration_seconds) == (128, 1.9)


@given(tokens=st.integers(1, 50_000), nanoseconds=st.integers(1_000_000, 500_000_000))
def test_the_output_of_tgi_is_exact(tokens: int, nanoseconds: int) -> None:
    # TGI divides whole nanoseconds and drops the rest; a remainder makes the division inexact.
    inference = tokens * nanoseconds + tokens // 2
    shown = f"{inference // 10**9}.{inference % 10**9:09d}s"
    span = SUCCESS["span"] | {"inference_time": shown, "time_per_token": f"{inference // tokens / 1e6:.6f}ms"}
    assert read_one(TGI, text(SUCCESS | {"span": span})).output_tokens == tokens


@pytest.mark.parametrize(
    "times", [{"time_per_token": "0ns"}, {"inference_time": "999999999s"}, {"time_per_token": "soon"}]
)
def test_a_success_without_its_times_is_bad(times: dict[str, str]) -> None:
    assert told(TGI, text(SUCCESS | {"span": SUCCESS["span"] | times})) == IMPOSSIBLE


def test_tgi_refuses_for_length() -> None:
    error = {"timestamp": "2026-11-29T13:46:40Z", "level": "ERROR", "message": REFUSAL}
    row = read_one(TGI, text(error | {"target": "text_generation_router::infer"}))
    refusal = length_refusal(row.message)
    assert row.status == 422
    assert refusal is not None
    # 3,000 of the prompt and 20 asked for.
    assert refusal.needed_tokens == 3020


def test_tgi_is_busy() -> None:
    line = "2026-11-29T13:46:40Z ERROR generate{}: text_generation_router::infer: router/src/infer.rs:1: "
    assert read_one(TGI, text(line + "Model is overloaded")).status == 429
    assert told(TGI, text(line + "something else")) == ({}, {"about no finished request": 1})


def span(attributes: dict[str, Any], **more: Any) -> bytes:
    def value(of: Any) -> dict[str, Any]:
        if isinstance(of, list):
            return {"arrayValue": {"values": [value(item) for item in of]}}
        return {
            {str: "stringValue", int: "intValue", float: "doubleValue"}[type(of)]: str(of) if type(of) is int else of
        }

    told = [{"key": key, "value": value(of)} for key, of in attributes.items()]
    one = {"startTimeUnixNano": "1795960000000000000", "endTimeUnixNano": "1795960002500000000", "attributes": told}
    return text({"resourceSpans": [{"scopeSpans": [{"spans": [one | more, {"name": "tokenize"}]}]}]})


def test_vllms_spans_are_requests() -> None:
    line = span(
        {
            "gen_ai.usage.prompt_tokens": 374,
            "gen_ai.usage.completion_tokens": 63,
            "gen_ai.request.max_tokens": 128,
            "gen_ai.request.id": "r1",
            "gen_ai.response.model": "chat",
            "gen_ai.latency.time_to_first_token": 0.25,
        }
    )
    assert OTLP.recognises(line)
    row = read_one(OTLP, line)
    assert (row.completed, row.model, row.prompt_tokens, row.output_tokens) == (1795960002.5, "chat", 374, 63)
    assert (row.max_tokens, row.ttft_seconds, row.duration_seconds, row.request_id) == (128, 0.25, 2.5, "r1")


def test_spans_of_the_conventions_are_requests() -> None:
    line = span(
        {
            "gen_ai.usage.input_tokens": 374,
            "gen_ai.usage.output_tokens": 63,
            "gen_ai.request.model": "chat",
            "gen_ai.request.choice.count": 4,
            "gen_ai.response.finish_reasons": ["length"],
            "server.address": "10.0.0.1",
            "server.port": 8000,
        }
    )
    row = read_one(OTLP, line)
    # 63 tokens in 4 choices: 15.75
    assert (row.output_tokens, row.cut, row.upstream) == (16, True, "10.0.0.1:8000")


def test_a_span_that_failed_is_no_answer() -> None:
    line = span({"gen_ai.usage.input_tokens": 5}, status={"code": 2, "message": "broken pipe"})
    row = read_one(OTLP, line)
    assert (row.status, row.message, row.output_tokens) == (500, "broken pipe", -1)


def test_other_spans_and_impossible_ones_are_counted() -> None:
    assert told(OTLP, span({"http.method": "GET"})) == ({}, {"about no finished request": 1})
    assert told(OTLP, span({"gen_ai.usage.input_tokens": -5})) == IMPOSSIBLE
    assert told(OTLP, span({"gen_ai.usage.input_tokens": 5}, endTimeUnixNano="soon")) == IMPOSSIBLE
