from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.sources.sweep_formats import content
from advisor.sources.sweep_formats.content import parsed

PRINTED = """\
Traffic request rate: inf
Maximum request concurrency: 32
============ Serving Benchmark Result ============
Successful requests:                     500
Benchmark duration (s):                  41.73
Total generated tokens:                  366152
Request throughput (req/s):              11.98
---------------Time to First Token----------------
Mean TTFT (ms):                          498.67
P99 TTFT (ms):                           1134.59
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          11.35
P99 TPOT (ms):                           45.24
==================================================
"""


def test_a_printed_result() -> None:
    (run,) = parsed(PRINTED)
    assert run == {
        "request_rate": float("inf"),
        "max_concurrency": 32,
        "completed": 500,
        "duration": 41.73,
        "total_output_tokens": 366152,
        "request_throughput": 11.98,
        "mean_ttft_ms": 498.67,
        "p99_ttft_ms": 1134.59,
        "mean_tpot_ms": 11.35,
        "p99_tpot_ms": 45.24,
    }
    assert len(parsed(PRINTED * 3)) == 3


def test_a_table() -> None:
    assert parsed("completed,request_rate,label\n500,inf,\n") == [
        {"completed": 500.0, "request_rate": float("inf"), "label": None}
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Hardware,Batch Size,Latency\nA100,1,1.65\n", r"its columns: Hardware, Batch Size, Latency"),
        ("", "neither JSON nor a table"),
        ('{"completed": 1', "cut off"),
        ('{"a": 1}\n{"a": ', "cut off"),
        ("[" * 100_000, "cut off"),
        ("completed,a\n" + "1,2\n" * 1_001, "more than 1,000 runs"),
        ('{"completed": 1}\n' * 100_000, "more than 1,000 runs"),
        (PRINTED * 1_001, "more than 1,000 runs"),
    ],
)
def test_what_cannot_be_held_is_refused_in_one_line(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        parsed(text)
    assert "\n" not in str(caught.value)


def test_the_number_of_values_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MOST_VALUES", 100)
    with pytest.raises(ValueError, match="write it without details"):
        parsed(json.dumps([0] * 200))


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: raw.decode("utf-8", "replace")))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert parsed(text) is None or isinstance(parsed(text), list | dict)
