"""Whole readings of small files; every figure is worked out in the comment or visible in the lines."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.domain.evidence import RequestLog, Window
from advisor.sources.log_formats import FieldMap
from advisor.sources.request_log import LogOptions, LogReading, read_request_logs

T0 = 1_795_960_200.0  # a multiple of 300
WINDOW = Window(T0, T0 + 3600)
TOO_LONG = (
    "This model's maximum context length is 4096 tokens, but 86 output tokens were requested and the prompt contains "
    "4079 input tokens, for a total of 4165 tokens."
)


def line(at: float, prompt: int = 100, output: int = 11, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": output}
    base = {"ts": T0 + at, "model": "acme/m", "upstream": "r1:8000", "status": 200, "usage": usage}
    return base | {"ttft_ms": 1000, "duration_ms": 2000, "finish_reason": "stop"} | more


def error(at: float, status: int, message: str = "", **more: Any) -> dict[str, Any]:
    return line(at, **more) | {"usage": None, "status": status, "error": {"message": message}}


def written(path: Path, *lines: dict[str, Any] | str) -> Path:
    path.write_text("".join((text if isinstance(text, str) else json.dumps(text)) + "\n" for text in lines))
    return path


def read(
    *paths: Path, resolve: Callable[[str, str], str | None] = lambda model, _: model, since: float = 0.0, **options: Any
) -> LogReading:
    given = LogOptions(paths=tuple(map(str, paths)), **options)
    return read_request_logs(given, WINDOW, resolve, lambda _: since)


def only(reading: LogReading) -> RequestLog:
    (log,) = reading.logs.values()
    return log


def test_it_counts_lengths_and_outcomes(tmp_path: Path) -> None:
    reading = read(
        written(
            tmp_path / "log",
            line(10, 100, 11),
            line(20, 100, 11),
            line(30, 200, 50, finish_reason="length", max_tokens=50),
            error(40, 400, TOO_LONG),
            error(50, 400, "This model's maximum context length is 4096 tokens"),
            error(60, 400, "temperature must be non-negative"),
            error(70, 503, "busy"),
            line(80) | {"usage": None},
            line(90, 0, 0),
        )
    )
    log = only(reading)
    assert list(zip(log.served.prompt, log.served.output, log.served.counts, strict=True)) == [
        (100, 11, 2),
        (200, 50, 1),
    ]
    assert (log.refused, log.failed, log.without_usage, log.requests) == (2, 2, 2, 9)
    assert log.refused_needs.lengths.tolist() == [4165]
    assert log.declared.lengths.tolist() == [250]
    assert log.cut.lengths.tolist() == [250]
    assert (log.first_seconds, log.last_seconds) == (T0 + 10, T0 + 90)
    assert reading.state.status == "ok"
    assert reading.state.detail == "9 requests in 1 file"
    assert reading.state.name == "request log log"


def test_a_bad_line_costs_one_line_and_is_counted(tmp_path: Path) -> None:
    lines: list[dict[str, Any] | str] = [line(i) for i in range(20)]
    bad = [
        "not json",
        "[1, 2]",
        '{"ts": 1',
        "\x00\x00",
        json.dumps(line(1, -5)),
        json.dumps(line(1, 10**9)),
        "x" * 2000,
    ]
    for place, text in enumerate(bad):
        lines.insert(2 * place + 1, text)
    path = written(tmp_path / "log", *lines, '{"a":' + "[" * 900)
    path.write_bytes(path.read_bytes().replace(b"\x00\x00", b'{"model": "\xff\xfe"}'))
    reading = read(path, max_line_bytes=1024)
    assert only(reading).requests == 20
    assert reading.state.status == "partial"
    assert reading.state.detail == (
        "20 requests in 1 file (8 of 28 lines skipped: 4 not JSON, "
        "3 with a missing or impossible value, 1 over 0.000976562 MiB)"
    )


def test_deep_nesting_is_one_bad_line(tmp_path: Path) -> None:
    reading = read(written(tmp_path / "log", line(1), '{"x":' + "[" * 200_000, line(2)))
    assert only(reading).requests == 2


def test_only_the_window_counts(tmp_path: Path) -> None:
    timeless = {name: value for name, value in line(0).items() if name != "ts"}
    path = written(tmp_path / "log", line(-1), line(0), line(3599.5), line(3600), timeless)
    reading = read(path, format="openai_gateway")
    assert only(reading).requests == 2
    assert reading.state.detail == "2 requests in 1 file (not used: 2 outside the window, 1 without a time)"


def test_a_repeated_request_counts_once(tmp_path: Path) -> None:
    reading = read(
        written(
            tmp_path / "log",
            line(1, request_id="same"),
            line(2, request_id="same"),
            error(3, 502, request_id="retried"),
            line(4, request_id="retried"),
            line(5, prompt=7, request_id="session"),
            line(6, prompt=8, request_id="session"),
            line(7),
            line(7),
        )
    )
    log = only(reading)
    assert (log.served.n, log.failed) == (6, 0)
    assert "1 repeated" in reading.state.detail


def test_it_tells_deployments_and_strangers_apart(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def resolve(model: str, upstream: str) -> str | None:
        asked.append((model, upstream))
        return {"acme/m": "chat", "acme/code": "code"}.get(model)

    path = written(
        tmp_path / "log",
        *(line(i, model="alias") for i in range(3)),
        line(4, model="acme/code"),
        line(5, model="other"),
        line(6, model="other", upstream="r2:8000"),
        line(7, model="x" * 600),
    )
    reading = read(path, resolve=resolve, aliases={"alias": "acme/m"})
    assert {name: log.requests for name, log in reading.logs.items()} == {"chat": 3, "code": 1}
    assert reading.strangers == {"other": 2, "(others)": 1}
    assert len(asked) == len(set(asked)) == 4
    assert "3 of models that no deployment claims" in reading.state.detail


def test_arrivals_are_completions_less_durations(tmp_path: Path) -> None:
    # Arrived at 299, 300 and 598 s; the one without duration at its completion; the first before the window.
    path = written(
        tmp_path / "log", line(1), line(301), line(302), line(600), line(600) | {"duration_ms": None}, line(599)
    )
    assert only(read(path)).arrivals == {int(T0): 1, int(T0) + 300: 3, int(T0) + 600: 1}


def test_latencies_carry_the_load_they_were_measured_under(tmp_path: Path) -> None:
    # Decoding 1-11 s and 3-13 s: each sees the other for 8 s of 10: 1.8, rounded to 2. In flight 0-11 and 2-13:
    # over 1-11 s (10 + 9) / 10, over 3-13 s (10 + 8) / 10. The third is alone on its replica.
    path = written(
        tmp_path / "log",
        line(11, output=101, duration_ms=11000),
        line(13, output=101, duration_ms=11000),
        line(16, output=1, upstream="r2:8000", duration_ms=1000),
    )
    sample = only(read(path)).latency
    assert sample is not None
    rows = {(int(c), int(f)): k for k, (c, f) in enumerate(zip(sample.concurrency, sample.in_flight, strict=True))}
    assert set(rows) == {(2, 2), (1, 1)}
    # 10 s for 100 gaps: 0.1 s, in a bin that ends at most 1 % above.
    assert 0.1 <= sample.tpot_seconds[rows[2, 2]] <= 0.101
    assert np.isnan(sample.tpot_seconds[rows[1, 1]])
    assert (sample.ttft_seconds == 1.0).all()
    assert sample.counts.sum() == 3


def test_latencies_are_of_the_present_epoch_and_lengths_of_the_window(tmp_path: Path) -> None:
    log = only(read(written(tmp_path / "log", line(100), line(200)), since=T0 + 150))
    assert log.served.n == 2
    assert log.latency is not None
    assert log.latency.counts.sum() == 1


@pytest.mark.parametrize("lack", ["upstream", "ttft_ms", "duration_ms"])
def test_no_latency_without_replica_and_times(tmp_path: Path, lack: str) -> None:
    log = only(read(written(tmp_path / "log", line(1) | {lack: None})))
    assert log.latency is None
    assert log.served.n == 1


def test_files_of_several_formats_add_up(tmp_path: Path) -> None:
    litellm = {
        "id": "c",
        "call_type": "acompletion",
        "model_group": "acme/m",
        "prompt_tokens": 5,
        "completion_tokens": 5,
    }
    litellm |= {"status": "success", "startTime": T0 + 1, "endTime": T0 + 2}
    written(tmp_path / "a.jsonl", line(1))
    written(tmp_path / "b.jsonl", json.dumps(litellm), json.dumps(litellm | {"cache_hit": True, "id": "d"}))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(json.dumps(line(3)).encode()))
    reading = read(tmp_path)
    assert only(reading).requests == 3
    assert reading.state.detail == "3 requests in 3 files (not used: 1 answered by the gateway's cache)"


def test_a_field_map_reads_any_json(tmp_path: Path) -> None:
    fields = FieldMap(timestamp="t", prompt_tokens="in", output_tokens="out", model="m")
    path = written(tmp_path / "log", json.dumps({"t": T0 + 1, "in": 7, "out": 8, "m": "acme/m"}))
    assert only(read(path, fields=fields)).served.totals().lengths.tolist() == [15]


def test_a_truncated_gzip_keeps_what_came_before(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(json.dumps(line(i % 3600, i)).encode() + b"\n" for i in range(1, 5001)))
    path = tmp_path / "log.gz"
    path.write_bytes(packed[: len(packed) // 2])
    reading = read(path)
    assert reading.state.status == "partial"
    assert "breaks off" in reading.state.detail
    assert 1000 < only(reading).requests < 4000


def test_a_missing_file_leaves_the_others(tmp_path: Path) -> None:
    reading = read(written(tmp_path / "log", line(1)), tmp_path / "nowhere")
    assert reading.state.status == "partial"
    assert reading.state.name == "request log"
    assert only(reading).requests == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "no such file; check the path or glob"),
        ("plain words\n", "no known log format; name one, or map its fields"),
        (gzip.compress(b"")[:12], "breaks off"),
    ],
)
def test_nothing_readable_is_a_failed_source(tmp_path: Path, content: str | bytes | None, told: str) -> None:
    path = tmp_path / "log"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    reading = read(path)
    assert reading.logs == {}
    assert reading.state.status == "failed"
    assert told in reading.state.detail


def test_an_empty_log_is_no_failure(tmp_path: Path) -> None:
    reading = read(written(tmp_path / "log"))
    assert (reading.state.status, reading.state.detail) == ("ok", "0 requests in 1 file")


def test_many_batches_add_up(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("w") as file:
        for i in range(70_000):
            file.write(json.dumps(line(i * 0.05, 1 + i % 1000, i % 7)) + "\n")
    log = only(read(path))
    # prompt mod 1000 and output mod 7 run through all 7,000 pairs, ten times each.
    assert log.served.counts.tolist() == [10] * 7000
    assert log.latency is not None
    assert log.latency.counts.sum() == 69_960
    # The first 40 arrived before the window. 20 arrivals a second, each decoding for 1 s and in flight for 2 s.
    assert int(np.average(log.latency.concurrency, weights=log.latency.counts) + 0.5) == 20
    assert int(np.average(log.latency.in_flight, weights=log.latency.counts) + 0.5) == 40
