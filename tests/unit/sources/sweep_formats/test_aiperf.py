"""Keys as AIPerf 0.13 and genai-perf 0.0.16 write them; figures of our own making."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.domain.errors import SourceError
from advisor.domain.sweep import SweepPoint
from advisor.sources.sweep import read_sweep

RESULT: dict[str, Any] = {
    "request_throughput": {"unit": "requests/sec", "avg": 8.0},
    "request_latency": {"unit": "ms", "avg": 2600.0, "p99": 4000.0},
    "request_count": {"unit": "requests", "avg": 400.0},
    "time_to_first_token": {"unit": "ms", "avg": 100.0, "p99": 310.0},
    "inter_token_latency": {"unit": "ms", "avg": 12.5, "p99": 19.0},
    "inter_chunk_latency": {"unit": "ms", "avg": 25.0, "p99": 90.0},
    "input_sequence_length": {"unit": "tokens", "avg": 1021.5},
    "output_sequence_length": {"unit": "tokens", "avg": 201.0},
    "input_config": {"endpoint": {"model_names": ["org/model"]}, "loadgen": {"concurrency": 20}},
}


def point(folder: Path, **changes: Any) -> SweepPoint:
    file = folder / "profile_export_aiperf.json"
    file.write_text(json.dumps({key: value for key, value in (RESULT | changes).items() if value is not None}))
    (read,) = read_sweep(file).points
    return read


def test_inter_token_latency_is_our_time_per_output_token(tmp_path: Path) -> None:
    timed = SweepPoint(20, 0.019, 0.31, 8.0, "p99", 400)
    assert point(tmp_path) == replace(timed, prompt_tokens=1021.5, output_tokens=201.0)


@pytest.mark.parametrize(
    "config",
    [
        {"phases": [{"name": "warmup", "concurrency": 2}, {"name": "profiling", "concurrency": 20}]},
        {"perf_analyzer": {"stimulus": {"concurrency": 20}}},
    ],
)
def test_concurrency_lies_elsewhere_in_other_releases(tmp_path: Path, config: dict[str, Any]) -> None:
    read = point(tmp_path, input_config=config)
    assert (read.concurrency, read.computed) == (20, False)


def test_a_paced_run_has_its_concurrency_by_littles_law(tmp_path: Path) -> None:
    read = point(tmp_path, input_config={"loadgen": {"request_rate": 8}})
    # 8 requests/s x (2.6 s - 0.1 s) of decoding
    assert read.concurrency == pytest.approx(20)
    assert read.computed


def test_units_are_read(tmp_path: Path) -> None:
    read = point(tmp_path, inter_token_latency={"unit": "ns", "avg": 12_500_000, "p99": 19_000_000})
    assert read.tpot_seconds == pytest.approx(0.019)


def test_without_percentiles_it_is_a_mean(tmp_path: Path) -> None:
    read = point(tmp_path, inter_token_latency={"unit": "ms", "avg": 12.5})
    assert (read.statistic, read.tpot_seconds, read.ttft_seconds) == ("mean", 0.0125, 0.1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"inter_token_latency": None}, "run it with --streaming"),
        ({"inter_token_latency": {"unit": "parsecs", "avg": 1, "p99": 1}}, "run it with --streaming"),
        ({"error_request_count": {"unit": "requests", "avg": 100.0}}, "only 400 of 500 requests completed"),
        ({"input_config": {}, "time_to_first_token": None}, "its concurrency is unknown"),
        ({"request_count": {"unit": "requests", "avg": -4}}, "no request completed"),
    ],
)
def test_a_result_that_is_no_point_says_why(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        point(tmp_path, **changes)
