"""Prometheus 2 and 3, VictoriaMetrics old and new, for real: same figures, same advice, their limits explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from advisor.cycle import SetFlag, run_once
from advisor.domain.errors import SourceError
from advisor.domain.evidence import Window
from advisor.settings import Settings
from tests.integration.metrics_servers import PROMETHEUS, VICTORIA_METRICS, counted, half_an_hour, reading, served
from tests.recording.deployment import Recording

pytestmark = pytest.mark.integration
CAPTURE = Path(__file__).parents[1] / "captures" / "vllm-0.32.0" / "metrics_cap_pinned.txt"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return half_an_hour(tmp_path_factory.mktemp("half-an-hour"))


@pytest.fixture(scope="module")
def gauges(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only the gauges, so that a server is there in no time."""
    target = tmp_path_factory.mktemp("gauges") / "metrics.om"
    lines = recording.metrics.read_text().splitlines(keepends=True)
    target.write_text("".join(x for x in lines if re.search("num_requests|kv_cache_usage|cache_config|# EOF", x)))
    return target


@pytest.mark.parametrize("program", [*PROMETHEUS, *VICTORIA_METRICS])
def test_every_server_tells_the_same(recording: Recording, program: str) -> None:
    rows = [json.loads(line) for line in recording.log.read_text().splitlines()]
    usage = [row["usage"] for row in rows if row["status"] == 200]
    prompts, outputs = (sum(row[field] for row in usage) for field in ("prompt_tokens", "completion_tokens"))
    with served(program, recording.metrics) as url:
        found = reading(url, recording)
        settings = Settings.model_validate({"prometheus": {"url": url}, "slo": {"tpot": "50ms"}})
        window = Window(recording.start, recording.end)
        (report,) = run_once(settings, window, set_flags=[SetFlag(None, "max_num_seqs", 16)]).deployments
    assert (found.state.status, found.queries) == ("ok", 9), found.state.detail
    (deployment,) = found.deployments
    (engine,) = deployment.engines
    assert engine.windows.total("finished") == engine.lengths["prompt_tokens"].n == len(usage)
    assert (engine.lengths["prompt_tokens"].total, engine.lengths["output_tokens"].total) == (prompts, outputs)
    assert (engine.windows.start[0], engine.windows.end[-1]) == (recording.start, recording.end)
    assert engine.samples.time.size == pytest.approx(120, abs=1)  # 1,800 s, scraped every 15 s
    assert (deployment.replicas, deployment.flags["max_model_len"].value) == (1, 16384)
    first = report.judgement.advice[0]
    assert (first.rule, first.flag) == ("concurrency/cap-pinned-cache-free", "--max-num-seqs 24")


@pytest.mark.parametrize("program", ["prometheus", "victoria-metrics"])
def test_at_wide_steps_nothing_is_lost(recording: Recording, program: str) -> None:
    with served(program, recording.metrics) as url:
        fine, coarse = (reading(url, recording, sample_budget=budget) for budget in (5_000_000, 10_000))
    assert coarse.samples < 0.4 * fine.samples
    assert counted(coarse.deployments[0]) == counted(fine.deployments[0])


LIMITS = [
    ("victoria-metrics", "-search.maxUniqueTimeseries=1", r"matching timeseries exceeds 1; narrow matchers, or raise"),
    ("victoria-metrics-new", "-search.maxUniqueTimeseries=1", r"exceeds 1; .*raise -search\.maxUniqueTimeseries"),
    (
        "victoria-metrics",
        "-search.maxPointsPerTimeseries=9",
        r"too many points .*raise -search\.maxPoints",
    ),
    ("victoria-metrics-new", "-search.maxSamplesPerQuery=9", r"more than -search\.maxSamples.*maxSamplesPerQuery"),
    ("prometheus", "--query.max-samples=9", r"load too many samples .*narrow matchers, .*raise --query\.max-samples"),
    ("prometheus-3", "--query.max-samples=9", r"load too many samples .*narrow matchers, .*--query\.max-samples"),
]


@pytest.mark.parametrize(("program", "limit", "line"), LIMITS, ids=[f"{program} {flag}" for program, flag, _ in LIMITS])
def test_a_limit_is_named_with_what_raises_it(
    recording: Recording, gauges: Path, program: str, limit: str, line: str
) -> None:
    with served(program, gauges, limit) as url, pytest.raises(SourceError, match=line) as caught:
        reading(url, recording)
    assert len(str(caught.value)) < 350
    assert "__name__" not in str(caught.value)


def with_all_labels(gauges: Path, target: Path, place: str) -> Path:
    """The gauges, and the config series as vLLM 0.32 exposes it: 37 labels, then those of the scraped process."""
    line = next(x for x in CAPTURE.read_text().splitlines() if x.startswith("vllm:cache_config_info"))
    labels = line.rpartition("}")[0]
    kept = [x for x in gauges.read_text().splitlines() if "cache_config" not in x]
    times = [x.split()[-1] for x in kept if x.startswith("vllm:num_requests_running{")]
    config = [f"{labels},{place}}} 1 {time}" for time in times]
    target.write_text("\n".join(["# TYPE vllm:cache_config_info gauge", *config, *kept]) + "\n")
    return target


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("victoria-metrics", "vllm:cache_config_info (has lost its labels job and instance|is missing for 1 engines)"),
        ("victoria-metrics-new", "vllm:cache_config_info is missing for 1 engines"),
    ],
)
def test_victoria_metrics_limit_of_labels_is_found(
    recording: Recording, gauges: Path, tmp_path: Path, program: str, line: str
) -> None:
    place = 'job="vllm",instance="10.0.0.1:8000",pod="vllm-0",node="gpu-7",namespace="llm",cluster="eu-1"'
    metrics = with_all_labels(gauges, tmp_path / "metrics.om", place)
    with served(program, metrics) as url:
        limited = reading(url, recording)
    with served(program, metrics, "-maxLabelsPerTimeseries=60") as url:
        whole = reading(url, recording)
    assert limited.state.status == "partial"
    assert re.search(line, limited.state.detail), limited.state.detail
    assert "let a series have 60 labels (VictoriaMetrics: -maxLabelsPerTimeseries" in limited.state.detail
    assert limited.deployments[0].reported_pool is None
    assert "cache_config" not in whole.state.detail
    assert whole.deployments[0].flags["max_model_len"].value == 2048
