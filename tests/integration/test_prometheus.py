"""Reading a real Prometheus: totals against the request log, many engines, foreign series, hostile names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from advisor.domain.errors import SourceError
from advisor.domain.evidence import HttpOutcomes, Window
from advisor.sources.metrics_reading import DeploymentMetrics
from advisor.sources.prometheus import PrometheusOptions, read_prometheus
from tests.conftest import Served, absent
from tests.prometheus_server import PrometheusMissingError, serve
from tests.recording.deployment import Deployment
from tests.recording.situations import DATA_PARALLEL, REFUSING, RESTARTED, TWO_REPLICAS

pytestmark = pytest.mark.integration
END = 1_795_737_600
HOSTILE = 'evil"}{<!channel>\\\n'


def reading_of(found: Served) -> DeploymentMetrics:
    """The recorded deployment as read over a day that ends four hours after its data does."""
    window = Window(found.recording.end - 20 * 3600, found.recording.end + 4 * 3600)
    reading = read_prometheus(PrometheusOptions(url=found.url), window)
    assert reading.state.status == "ok"
    assert reading.queries == 9
    (deployment,) = reading.deployments
    return deployment


def answered(found: Served) -> list[dict[str, object]]:
    """Rows of the request log with usage."""
    rows = [json.loads(line) for line in found.recording.log.read_text().splitlines()]
    return [row for row in rows if row["status"] == 200]


def usage(rows: list[dict[str, object]], field: str) -> int:
    return sum(row["usage"][field] for row in rows)  # type: ignore[index]


def test_totals_agree_with_the_request_log(served: Callable[[Deployment], Served]) -> None:
    found = served(TWO_REPLICAS)
    read, rows = reading_of(found), answered(found)
    assert read.labels == {"job": "vllm", "model_name": TWO_REPLICAS.model}
    assert read.replicas == 2
    for engine in read.engines:
        mine = [row for row in rows if row["upstream"] == engine.instance]
        assert engine.windows.total("finished") == len(mine)
        assert engine.lengths["prompt_tokens"].n == len(mine)
        assert engine.lengths["prompt_tokens"].total == usage(mine, "prompt_tokens")
        assert engine.lengths["output_tokens"].total == usage(mine, "completion_tokens")
        assert engine.windows.start[0] == engine.epoch_start == found.recording.start
        assert engine.windows.end[-1] == found.recording.end
        assert engine.samples.time.size == pytest.approx((found.recording.end - found.recording.start) / 15, rel=0.01)


def test_percentiles_lie_within_the_buckets_that_are_read(served: Callable[[Deployment], Served]) -> None:
    found = served(TWO_REPLICAS)
    read, rows = reading_of(found), answered(found)
    first = read.engines[0]
    lengths = sorted(r["usage"]["prompt_tokens"] for r in rows if r["upstream"] == first.instance)  # type: ignore[index]
    for q in (0.5, 0.9, 0.99):
        low, high = first.lengths["prompt_tokens"].quantile_bounds(q)
        assert low < lengths[int(q * len(lengths))] <= high


def test_a_restart_begins_an_epoch_and_lengths_reach_over_it(served: Callable[[Deployment], Served]) -> None:
    found = served(RESTARTED)
    (engine,) = reading_of(found).engines
    assert RESTARTED.restart is not None
    up_again = found.recording.start + RESTARTED.restart.at + RESTARTED.restart.down_seconds
    rows = answered(found)
    assert engine.epoch_start == up_again
    assert engine.samples.time[0] > up_again
    assert engine.windows.total("finished") == sum(float(str(row["ts"])) > up_again for row in rows)
    # what was answered between the last 300-second reading and the end of the process, nobody can see
    assert 0.97 * len(rows) < engine.lengths["prompt_tokens"].n <= len(rows)


def test_refusals_are_http_answers(served: Callable[[Deployment], Served]) -> None:
    found = served(REFUSING)
    read = reading_of(found)
    refused = len(found.recording.log.read_text().splitlines()) - len(answered(found))
    assert refused > 0
    assert read.http == HttpOutcomes(len(answered(found)), refused, 0)
    assert read.flags["max_model_len"].value == 4096


def test_ranks_are_engines_of_one_replica(served: Callable[[Deployment], Served]) -> None:
    read = reading_of(served(DATA_PARALLEL))
    assert read.replicas == 1
    assert [engine.engine for engine in read.engines] == ["0", "1"]
    assert read.reported_pool is not None
    assert read.reported_pool.tokens == 500_000


def sample(name: str, value: float, minute: int, **labels: str) -> str:
    escaped = {k: v.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for k, v in labels.items()}
    pairs = ",".join(f'{k}="{v}"' for k, v in escaped.items())
    return f"{name}{{{pairs}}} {value} {END - 3600 + 60 * minute}\n"


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A company's Prometheus for an hour: 60 engines of three models, and 40 services that are none of our business."""
    file: Path = tmp_path_factory.mktemp("company") / "metrics.om"
    models = {"small": 29, HOSTILE: 1, "large": 30}
    engines = [(m, f"{i}.{n}:8000") for i, (m, count) in enumerate(models.items()) for n in range(count)]
    families: dict[str, list[str]] = {}
    for minute in range(61):
        for model, instance in engines:
            mine = {"job": "llm", "instance": instance}
            labels = mine | {"model_name": model, "engine": "0"}
            usage = float("nan") if minute == 30 else 0.5
            families.setdefault("vllm:num_requests_running", []).append(
                sample("vllm:num_requests_running", minute % 7, minute, **labels)
            )
            families.setdefault("vllm:kv_cache_usage_perc", []).append(
                sample("vllm:kv_cache_usage_perc", usage, minute, **labels)
            )
            families.setdefault("vllm:generation_tokens", []).append(
                sample("vllm:generation_tokens_total", 1000 + 10 * minute, minute, **labels)
            )
            families.setdefault("http_requests", []).append(
                sample(
                    "http_requests_total",
                    minute,
                    minute,
                    **mine,
                    handler="/v1/completions",
                    method="POST",
                    status="2xx",
                )
            )
        for n in range(40):
            other = {"job": "web", "instance": f"web{n}"}
            families.setdefault("process_start_time_seconds", []).append(
                sample("process_start_time_seconds", END - 9999, minute, **other)
            )
            families["http_requests"].append(
                sample(
                    "http_requests_total",
                    minute,
                    minute,
                    **other,
                    handler="/v1/completions",
                    method="POST",
                    status="2xx",
                )
            )
    with file.open("w") as out:
        for family, samples in families.items():
            out.write(f"# TYPE {family} {'counter' if '_total' in samples[0] else 'gauge'}\n")
            out.writelines(sorted(samples, key=lambda line: line.rsplit(" ", 2)[0]))
        out.write("# EOF\n")
    with ExitStack() as server:
        try:
            url = server.enter_context(serve(file))
        except PrometheusMissingError as error:
            absent(str(error))
        yield url


HOUR = Window(END - 3600, END)


def test_a_fleet_costs_as_many_queries_as_one_engine(company: str) -> None:
    reading = read_prometheus(PrometheusOptions(url=company), HOUR)
    assert [(d.labels["model_name"], d.replicas) for d in reading.deployments] == [
        (HOSTILE, 1),
        ("large", 30),
        ("small", 29),
    ]
    alone = read_prometheus(PrometheusOptions(url=company, matchers={"model_name": HOSTILE}), HOUR)
    assert [d.labels["model_name"] for d in alone.deployments] == [HOSTILE]
    assert alone.queries == reading.queries == 10  # the tenth asks why neither settings nor histograms are there
    assert "vllm:cache_config_info is missing for 60 engines" in reading.state.detail


def test_what_other_services_expose_is_left_alone(company: str) -> None:
    reading = read_prometheus(PrometheusOptions(url=company, matchers={"model_name": HOSTILE}), HOUR)
    (found,) = reading.deployments
    assert found.http == HttpOutcomes(60, 0, 0)
    assert found.engines[0].windows.total("generation_tokens") == 600
    assert found.engines[0].epoch_start == END - 3600  # no start of a process known: since the data begin
    assert "samples without a finite value" in reading.state.detail


def test_a_large_fleet_is_read_within_the_budget(company: str) -> None:
    fine = read_prometheus(PrometheusOptions(url=company), HOUR)
    coarse = read_prometheus(PrometheusOptions(url=company, sample_budget=60_000), HOUR)
    assert coarse.samples < fine.samples
    assert coarse.samples < 60_000
    assert {d.labels["model_name"] for d in coarse.deployments} == {d.labels["model_name"] for d in fine.deployments}


def test_a_window_before_the_data_is_empty(company: str) -> None:
    reading = read_prometheus(PrometheusOptions(url=company), Window(END - 9e6, END - 8e6))
    assert (reading.deployments, reading.state.status) == ((), "partial")


def test_a_wrong_path_prefix_is_said(company: str) -> None:
    with pytest.raises(SourceError, match="does url lack a path prefix"):
        read_prometheus(PrometheusOptions(url=company + "/prometheus"), HOUR)
