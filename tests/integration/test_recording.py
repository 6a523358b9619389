"""The recorder against a real Prometheus: what it writes can be backfilled, and says what the situation's name says."""

from __future__ import annotations

import gzip
import json
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Served
from tests.recording.__main__ import main
from tests.recording.deployment import Deployment, Recording
from tests.recording.situations import (
    CACHE_CHURN,
    CAP_PINNED,
    DATA_PARALLEL,
    HEALTHY,
    RECORDED_AT,
    REFUSING,
    RESTARTED,
    TWO_REPLICAS,
)

pytestmark = pytest.mark.integration

DEMO = Path(__file__).parents[2] / "config" / "demo"


def ask(served: Served, query: str, time: float = RECORDED_AT) -> dict[str, float]:
    """An instant query's answer: value by the labels of its series, joined by slashes."""
    parameters = urllib.parse.urlencode({"query": query, "time": time})
    with urllib.request.urlopen(f"{served.url}/api/v1/query?{parameters}", timeout=20) as answer:
        series = json.load(answer)["data"]["result"]
    return {"/".join(one["metric"].values()): float(one["value"][1]) for one in series}


def only(served: Served, query: str) -> float:
    """The value of a query that answers with one series."""
    (value,) = ask(served, query).values()
    return value


def rows(recording: Recording) -> list[dict[str, Any]]:
    """The request log."""
    return [json.loads(line) for line in recording.log.read_text().splitlines()]


def test_a_pinned_cap_queues_while_the_cache_is_free(served: Callable[[Deployment], Served]) -> None:
    fleet = served(CAP_PINNED)
    at_cap = "vllm:num_requests_running == 16 and vllm:num_requests_waiting > 0"
    assert only(fleet, "max(max_over_time(vllm:num_requests_running[6h]))") == 16
    assert only(fleet, f"sum(count_over_time(({at_cap})[6h:15s]))") / 1440 > 0.2
    assert only(fleet, "max(max_over_time(vllm:kv_cache_usage_perc[6h]))") < 0.1
    assert only(fleet, "sum(vllm:num_preemptions_total)") == 0


def test_a_small_pool_is_full_and_preempts(served: Callable[[Deployment], Served]) -> None:
    fleet = served(CACHE_CHURN)
    assert only(fleet, "max(quantile_over_time(0.95, vllm:kv_cache_usage_perc[6h]))") > 0.95
    assert only(fleet, "sum(vllm:num_preemptions_total) / sum(vllm:request_success_total)") > 0.1
    assert only(fleet, "max(max_over_time(vllm:num_requests_running[6h]))") < 256


def test_a_low_limit_refuses_and_cuts(served: Callable[[Deployment], Served]) -> None:
    fleet = served(REFUSING)
    log = rows(fleet.recording)
    refused = [row for row in log if row["status"] == 400]
    cut = [row for row in log if row.get("finish_reason") == "length"]
    assert len(refused) == only(fleet, 'sum(http_requests_total{status="4xx"})') > 100
    assert len(cut) == only(fleet, 'sum(vllm:request_success_total{finished_reason="length"})') > 50
    assert all(row["usage"]["total_tokens"] == 4096 for row in cut)


def test_log_and_metrics_tell_the_same_story(served: Callable[[Deployment], Served]) -> None:
    fleet = served(HEALTHY)
    usage = [row["usage"] for row in rows(fleet.recording)]
    prompt = sum(one["prompt_tokens"] for one in usage)
    output = sum(one["completion_tokens"] for one in usage)
    assert len(usage) == only(fleet, "sum(vllm:request_success_total)") == only(fleet, "sum(http_requests_total)")
    assert prompt == only(fleet, "sum(vllm:request_prompt_tokens_sum)")
    assert output == only(fleet, "sum(vllm:request_generation_tokens_sum)")
    assert only(fleet, "max(vllm:num_requests_waiting)") == 0


def test_a_restart_begins_counters_anew(served: Callable[[Deployment], Served]) -> None:
    fleet = served(RESTARTED)
    assert only(fleet, "process_start_time_seconds") == RECORDED_AT - 3 * 3600 + 60
    assert only(fleet, "changes(process_start_time_seconds[6h])") == 1
    assert only(fleet, "resets(vllm:prompt_tokens_total[6h])") == 1
    assert only(fleet, "max_over_time(vllm:num_requests_running[2h])") > 16


def test_replicas_and_ranks_are_labelled(served: Callable[[Deployment], Served]) -> None:
    replicas = ask(served(TWO_REPLICAS), "count by (instance, engine) (vllm:num_requests_running)")
    ranks = ask(served(DATA_PARALLEL), "count by (instance, engine) (vllm:num_requests_running)")
    assert set(replicas) == {"0/10.0.0.1:8000", "0/10.0.0.2:8000"}
    assert set(ranks) == {"0/10.0.0.1:8000", "1/10.0.0.1:8000"}
    assert only(served(DATA_PARALLEL), "count(up)") == 1


def test_the_pool_gives_back_the_length_limit(served: Callable[[Deployment], Served]) -> None:
    # 500,000 tokens / 16,384 per request = 30.517578125 requests
    labels = 'kv_cache_size_tokens="500000",kv_cache_max_concurrency="30.517578125",num_gpu_blocks="31250"'
    assert only(served(HEALTHY), f"count(vllm:cache_config_info{{{labels}}})") == 1


def test_the_demo_is_what_the_recorder_makes(tmp_path: Path) -> None:
    main(tmp_path)
    for name in ("metrics.om.gz", "requests.jsonl.gz"):
        assert gzip.decompress((tmp_path / name).read_bytes()) == gzip.decompress((DEMO / name).read_bytes()), name
        assert (DEMO / name).stat().st_size < 2_000_000


def test_another_seed_is_another_recording(recorded: Callable[[Deployment], Recording]) -> None:
    short = replace(HEALTHY, seconds=600)
    other = replace(short, traffic=replace(short.traffic, seed=99))
    assert recorded(short).log.read_bytes() != recorded(other).log.read_bytes()
