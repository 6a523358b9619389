"""Figures of a published result (inference-perf demos/kubecon-na-2025, Apache-2.0), rounded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from advisor.domain.errors import SourceError
from advisor.domain.sweep import SweepPoint
from advisor.sources.sweep import read_sweep


def stage(**latency: dict[str, float]) -> dict[str, Any]:
    measured = {
        "request_latency": {"mean": 11.3969, "p99": 13.1602},
        "time_per_output_token": {"mean": 0.0261033, "p99": 0.028195},
        "time_to_first_token": {"mean": 4.6867, "p99": 6.1058},
        "inter_token_latency": {"mean": 0.0261033, "p99": 0.0949748},
    }
    return {
        "load_summary": {"count": 4852, "requested_rate": 80.88, "achieved_rate": 39.07},
        "successes": {
            "count": 4852,
            "latency": measured | latency,
            "throughput": {"requests_per_sec": 37.0118, "output_tokens_per_sec": 4760.5},
            "prompt_len": {"mean": 1021.3},
            "output_len": {"mean": 128.6224},
        },
        "failures": {"count": 0, "request_latency": None},
    }


def point(folder: Path, result: dict[str, Any]) -> SweepPoint:
    file = folder / "stage_3_lifecycle_metrics.json"
    file.write_text(json.dumps(result))
    (read,) = read_sweep(file).points
    return read


def test_a_time_per_token_that_counted_every_token_twice_is_not_believed(tmp_path: Path) -> None:
    read = point(tmp_path, stage())
    # (11.3969 - 4.6867) / 127.6224 = 52.58 ms, not 26.1; 37.0118 requests/s x 6.7102 s = 248.4 decoding
    assert read.tpot_seconds == pytest.approx(0.05258, abs=1e-5)
    assert (read.statistic, read.ttft_seconds) == ("mean", 4.6867)
    assert read.concurrency == pytest.approx(248.36, abs=0.01)
    assert read.computed
    assert (read.prompt_tokens, read.output_tokens) == (1021.3, 128.6224)


def test_one_that_agrees_is_taken_as_the_percentile_it_is(tmp_path: Path) -> None:
    read = point(tmp_path, stage(time_per_output_token={"mean": 0.0526, "p99": 0.0571}))
    assert (read.statistic, read.tpot_seconds, read.ttft_seconds) == ("p99", 0.0571, 6.1058)


def test_a_concurrency_that_was_set_is_taken(tmp_path: Path) -> None:
    read = point(tmp_path, stage() | {"load_summary": {"count": 4852, "concurrency": 64}})
    assert (read.concurrency, read.computed) == (64, False)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"load_summary": {"count": 9}}, "give the files of the single stages"),
        ({"failures": {"count": 4852}}, "only 4852 of 9704 requests completed"),
    ],
)
def test_what_is_no_stage_is_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        point(tmp_path, stage() | change)


def test_without_streaming_there_is_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="run it with streaming on"):
        point(tmp_path, stage(time_to_first_token={}))
