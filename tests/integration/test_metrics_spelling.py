"""Engines whose series come under other names or labels, in one real Prometheus; how they are spelled is composed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from advisor.domain.errors import SourceError
from advisor.sources.metrics_reading import MetricsReading
from tests.integration.metrics_servers import HALF_AN_HOUR, counted, reading, reworded, served
from tests.recording.deployment import Recording, record
from tests.recording.situations import RECORDED_AT

pytestmark = pytest.mark.integration
PLACE = re.compile(r'job="vllm",instance="10\.0\.0\.(\d):8000"')
RUNNING = "vllm:num_requests_running"
RULE = "engine:vllm_num_requests_running:max"
SUM = "model:vllm_num_requests_running:sum"


def spelled(line: str) -> str:
    """One line of the recording as it would stand after federation, after Ray, and under rules.

    Ray's exporter names a node as instance; what is not vLLM's own there is one process of that node.
    """
    if line.startswith("#"):
        return "" if "EOF" in line else line
    own, first = line.startswith("vllm:"), 'instance="10.0.0.1:8000"' in line
    federated = r'job="federate",instance="prometheus:9090",exported_job="vllm",exported_instance="10.0.0.\1:8000"'
    worker = r'job="ray",instance="10.0.0.9:44217"' + (r',WorkerId="w\1"' if own else "")
    lines = [
        PLACE.sub(federated, line),
        PLACE.sub(r'job="ruled",instance="10.0.0.\1:8000"', line).replace(RUNNING, RULE),
    ]
    if own or first:
        lines.append(PLACE.sub(worker, line).replace("vllm:", "ray_vllm_", 1))
    if line.startswith(RUNNING) and first:
        lines.append(PLACE.sub('job="summed"', line).replace(RUNNING, SUM))
    return "".join(lines)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    two = replace(HALF_AN_HOUR, replicas=2, seconds=900)
    return record(two, RECORDED_AT + 7, tmp_path_factory.mktemp("spelling"))


@pytest.fixture(scope="module")
def url(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    target = tmp_path_factory.mktemp("spelled") / "metrics.om"
    reworded(recording.metrics, target, spelled)
    with target.open("a") as file:
        file.write("# EOF\n")
    with served("prometheus", target) as server:
        yield server


def of_job(url: str, recording: Recording, job: str, **settings: object) -> MetricsReading:
    return reading(url, recording, matchers={"job": job}, **settings)


def answered(recording: Recording, instance: str) -> int:
    rows = [json.loads(line) for line in recording.log.read_text().splitlines()]
    return sum(row["status"] == 200 and row["upstream"] == instance for row in rows)


def test_federated_engines_are_told_apart_by_their_own_labels(url: str, recording: Recording) -> None:
    (found,) = of_job(url, recording, "federate").deployments
    assert found.labels == {"job": "vllm", "model_name": HALF_AN_HOUR.model}
    assert found.instances == ("10.0.0.1:8000", "10.0.0.2:8000")
    for engine in found.engines:
        assert engine.windows.total("finished") == answered(recording, engine.instance)
        assert (engine.epoch_start, engine.epoch_cause) == (recording.start, "restarted")
    assert found.http is not None
    assert found.http.ok == sum(answered(recording, instance) for instance in found.instances)
    assert found.flags["max_model_len"].value == 16384


def test_engines_under_other_names_are_found_and_how_to_read_them_is_said(url: str, recording: Recording) -> None:
    unread = of_job(url, recording, "ray")
    assert (unread.deployments, unread.state.status) == ((), "partial")
    assert 'set names: {"vllm:": "ray_vllm_"} and instance_label: WorkerId' in unread.state.detail
    ruled = of_job(url, recording, "ruled")
    assert f'set names: {{"{RUNNING}": "{RULE}"}}' in ruled.state.detail


def test_engines_of_ray_are_told_apart_by_their_workers(url: str, recording: Recording) -> None:
    read = of_job(url, recording, "ray", names={"vllm:": "ray_vllm_"}, instance_label="WorkerId")
    (found,) = read.deployments
    assert found.instances == ("w1", "w2")
    assert found.flags["max_model_len"].value == 16384
    for engine, instance in zip(found.engines, ("10.0.0.1:8000", "10.0.0.2:8000"), strict=True):
        # no start of the engine's process is known, so that counting begins with the first reading
        assert engine.epoch_cause == "first_seen"
        assert engine.windows.total("finished") == pytest.approx(answered(recording, instance), rel=0.03)


def test_a_rule_that_keeps_engines_stands_for_their_series(url: str, recording: Recording) -> None:
    (ruled,) = of_job(url, recording, "ruled", names={RUNNING: RULE}).deployments
    (plain,) = of_job(url, recording, "federate").deployments
    assert counted(ruled) == counted(plain)
    assert [e.samples.running.tolist() for e in ruled.engines] == [e.samples.running.tolist() for e in plain.engines]


def test_a_rule_that_sums_engines_up_is_refused(url: str, recording: Recording) -> None:
    with pytest.raises(SourceError, match=r"have no label instance, .* let rules keep it"):
        of_job(url, recording, "summed", names={RUNNING: SUM})
