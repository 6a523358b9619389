"""Sources joined by deployment; one that fails is a line and stops nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from advisor.domain.errors import ConfigError, UsageError
from advisor.domain.evidence import Slo, Window
from advisor.gather import Gathered, gather, names_of
from advisor.settings import Settings
from advisor.sources.metrics_reading import DeploymentMetrics
from tests.unit.sources.engine_process import running
from tests.unit.sources.http_server import Answering, answering, reply

WINDOW = Window(1_795_960_000.0, 1_795_970_000.0)
NOWHERE = "http://127.0.0.1:9"
CAPTURES = Path(__file__).parents[1] / "captures" / "vllm-0.32.0"
EVIDENCE = """deployments:
  chat: {flags: {max_num_seqs: 256}, slo: {tpot: 60ms}, workload: batch}
"""
STARTUP = (
    "INFO 11-26 00:00:01 [api_utils.py:286] non-default args: "
    "{'model': '/m', 'served_model_name': ['%s'], 'max_num_seqs': %d}\n"
)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def gathered(**stated: Any) -> Gathered:
    return gather(Settings.model_validate(stated), WINDOW)


def log(path: Path, *models: str) -> str:
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    lines = [{"ts": WINDOW.start + 60, "model": m, "status": 200, "usage": usage} for m in models]
    return str(written(path, "".join(json.dumps(line) + "\n" for line in lines)))


def named(*labels: dict[str, str]) -> list[str]:
    return list(names_of(DeploymentMetrics(one, (), ()) for one in labels))


def test_a_deployment_is_called_by_its_model_where_that_is_unique() -> None:
    a, b = {"job": "blue", "model_name": "chat"}, {"job": "green", "model_name": "chat"}
    assert named(a) == ["chat"]
    assert named(a, b) == ["blue/chat", "green/chat"]
    assert named(a, {"job": "green", "model_name": "code"}) == ["chat", "code"]
    assert named({"job": "", "model_name": ""}) == ["unnamed"]


def test_a_source_that_fails_is_a_line(tmp_path: Path) -> None:
    path = written(tmp_path / "chat.yaml", EVIDENCE)
    found = gathered(
        evidence=[path],
        prometheus={"url": NOWHERE},
        engines=[{"url": NOWHERE}],
        logs={"paths": [str(tmp_path / "none.jsonl")]},
        startup_logs=[tmp_path / "none.log"],
        sweeps=[tmp_path / "none.json"],
        model_config_file=tmp_path / "config.json",
    )
    assert list(found.deployments) == ["chat"]
    assert [(s.name.split()[0], s.status) for s in found.sources] == [
        ("evidence", "ok"),
        ("prometheus", "failed"),
        ("engine", "failed"),
        ("request", "failed"),
        ("start-up", "failed"),
        ("sweep", "failed"),
        ("model", "failed"),
    ]


def test_an_evidence_file_that_is_wrong_stops_everything(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"chat\.yaml:1:1"):
        gathered(evidence=[written(tmp_path / "chat.yaml", "deploymants: {}")])


def test_each_evidence_file_is_counted_by_itself(tmp_path: Path) -> None:
    one = written(tmp_path / "one.yaml", "deployments: {a: {}, b: {}}")
    two = written(tmp_path / "two.yaml", "deployments: {c: {}}")
    found = gathered(evidence=[one, two])
    assert [s.detail for s in found.sources] == ["2 deployments", "1 deployment"]
    with pytest.raises(UsageError, match=r"two\.yaml: another evidence file states 'c' too"):
        gathered(evidence=[two, written(tmp_path / "three.yaml", "deployments: {d: {}}"), two])


def test_a_log_joins_by_model_and_brings_deployments_of_its_own(tmp_path: Path) -> None:
    found = gathered(
        evidence=[written(tmp_path / "chat.yaml", EVIDENCE)],
        logs={"paths": [log(tmp_path / "log.jsonl", "chat", "chat", "code", "alias")], "aliases": {"alias": "code"}},
    )
    assert {name: e.log.served.n for name, e in found.deployments.items() if e.log} == {"chat": 2, "code": 2}
    assert found.deployments["chat"].flag("max_num_seqs") == 256
    assert (found.deployments["chat"].engine, found.deployments["code"].engine) == ("vllm", "unknown")


def test_a_start_up_log_joins_by_the_name_it_serves(tmp_path: Path) -> None:
    path = written(tmp_path / "fleet.yaml", "deployments: {chat: {}, code: {}}")
    found = gathered(evidence=[path], startup_logs=[written(tmp_path / "s.log", STARTUP % ("code", 16))])
    assert [e.flag("max_num_seqs") for e in found.deployments.values()] == [None, 16]
    with pytest.raises(UsageError, match=r"2 deployments, so say which one .*deployments\.NAME\.startup_logs"):
        gathered(evidence=[path], startup_logs=[written(tmp_path / "s.log", STARTUP % ("other", 16))])


def test_a_start_up_log_alone_is_a_deployment_over_the_window(tmp_path: Path) -> None:
    found = gathered(startup_logs=[written(tmp_path / "s.log", STARTUP % ("chat", 16))])
    assert found.deployments["chat"].window == WINDOW


def test_a_start_up_log_of_another_name_is_joined_to_the_only_deployment_and_said(tmp_path: Path) -> None:
    evidence = written(tmp_path / "chat.yaml", EVIDENCE)
    found = gathered(evidence=[evidence], startup_logs=[written(tmp_path / "s.log", STARTUP % ("other", 16))])
    state = next(s for s in found.sources if s.name == "start-up log s.log")
    assert state.status == "partial"
    assert "it serves other and is taken for chat, the only deployment" in state.detail
    assert found.deployments["chat"].flag("max_num_seqs") == 16


def test_a_log_that_goes_on_shows_the_load_where_no_metrics_do(tmp_path: Path) -> None:
    at = datetime.fromtimestamp(WINDOW.end - 60, UTC).strftime("%m-%d %H:%M:%S")
    line = (
        f"INFO {at} [loggers.py:335] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 "
        "tokens/s, Running: 8 reqs, Waiting: 16 reqs, GPU KV cache usage: 12.5%, Prefix cache hit rate: 0.0%\n"
    )
    text = STARTUP % ("chat", 16) + "\n" + line
    logs = [written(tmp_path / f"{name}.log", text) for name in ("a", "b")]
    found = gathered(startup_logs=logs)
    chat = found.deployments["chat"]
    assert [engine.samples.running.tolist() for engine in chat.engines] == [[8], [8]]
    assert chat.replicas == 2
    assert found.sources[0].detail.endswith("load of 1 engine")


def test_a_start_up_log_may_be_said_to_be_of_one_deployment(tmp_path: Path) -> None:
    found = gathered(
        evidence=[written(tmp_path / "fleet.yaml", "deployments: {chat: {}, code: {}}")],
        deployments={"chat": {"startup_logs": [written(tmp_path / "s.log", STARTUP % ("other", 16))]}, "gone": {}},
    )
    assert found.deployments["chat"].flag("max_num_seqs") == 16
    assert [s.name for s in found.sources if s.status == "partial"] == ["deployment gone"]


def test_flags_of_the_configuration(tmp_path: Path) -> None:
    path = written(tmp_path / "chat.yaml", EVIDENCE)
    found = gathered(evidence=[path], flags={"max_model_len": "12K"})
    assert found.deployments["chat"].flag("max_model_len") == 12_288
    found = gathered(evidence=[path], deployments={"chat": {"flags": {"max-num-seqs": 64}}})
    assert found.deployments["chat"].disagreements[0].other.value == 64
    fleet = written(tmp_path / "fleet.yaml", "deployments: {chat: {}, code: {}}")
    with pytest.raises(UsageError, match=r"flags: 2 deployments, so say which one .*deployments\.NAME\.flags"):
        gathered(evidence=[fleet], flags={"max_model_len": 4096})


@pytest.mark.parametrize(
    ("stated", "workload", "tpot"),
    [
        ({}, "batch", 0.06),
        ({"workload": "interactive", "slo": {"tpot": "40ms"}}, "interactive", 0.04),
        ({"workload": "interactive", "deployments": {"chat": {"workload": "batch"}}}, "batch", 0.06),
        ({"slo": {"tpot": "40ms"}, "deployments": {"chat": {"slo": {"tpot": "50ms"}}}}, "batch", 0.05),
    ],
)
def test_workload_and_objectives(tmp_path: Path, stated: dict[str, Any], workload: str, tpot: float) -> None:
    found = gathered(evidence=[written(tmp_path / "chat.yaml", EVIDENCE)], **stated)
    assert found.deployments["chat"].workload == workload
    assert found.deployments["chat"].slo == Slo(tpot_seconds=tpot, percentile=99)


def serving(pages: dict[str, bytes]) -> Answering:
    return lambda handler, _: reply(handler, pages.get(handler.path, b""), 200 if handler.path in pages else 404)


def test_engines_asked_one_by_one_are_replicas_of_one_deployment() -> None:
    """The capture is of a server with two data-parallel engines that serves tiny-llama; the cap is in no metric."""
    pages = {"/metrics": (CAPTURES / "metrics_dp2.txt").read_bytes()}
    told = pages | {"/server_info?config_format=json": (CAPTURES / "server_info.json").read_bytes()}
    with answering(serving(pages)) as one, answering(serving(told)) as two:
        found = gathered(engines=[{"url": one}, {"url": two}])
    (deployment,) = found.deployments.values()
    assert (deployment.name, deployment.replicas, len(deployment.engines)) == ("tiny-llama", 2, 4)
    assert deployment.flags["max_num_seqs"].value == 4
    assert [s.status for s in found.sources] == ["ok", "ok"]


def test_flags_of_single_replicas_make_a_canary_of_them() -> None:
    """Of three engines one is said to try another cap; a replica that no source shows is a line."""
    pages = {"/metrics": (CAPTURES / "metrics_cap_pinned.txt").read_bytes()}
    with answering(serving(pages)) as one, answering(serving(pages)) as two, answering(serving(pages)) as three:
        tried = three.removeprefix("http://")
        found = gathered(
            engines=[{"url": one}, {"url": two}, {"url": three}],
            deployments={
                "tiny-llama": {
                    "flags": {"max_num_seqs": 4},
                    "replica_flags": {tried: {"max-num-seqs": 8}, "gone:8000": {"max_num_seqs": 8}},
                }
            },
        )
    (deployment,) = found.deployments.values()
    assert [e.instance for e in deployment.apart] == [tried]
    assert (deployment.flag("max_num_seqs"), deployment.replicas) == (4, 3)
    assert [s.name for s in found.sources if s.status == "partial"] == ["replica gone:8000 of tiny-llama"]


MANIFEST = """kind: Deployment
metadata: {name: chat-deployment}
spec:
  replicas: 2
  template:
    spec:
      containers:
        - image: vllm/vllm-openai:v0.11.0
          args: [--model, /m, --served-model-name, %s, --max-num-seqs, "256", -tp, "4"]
"""


def test_a_manifest_is_believed_after_the_engine_and_before_the_configuration(tmp_path: Path) -> None:
    found = gathered(
        evidence=[written(tmp_path / "fleet.yaml", "deployments: {chat: {}, code: {}}")],
        startup_logs=[written(tmp_path / "s.log", STARTUP % ("chat", 16))],
        manifests=[written(tmp_path / "m.yaml", MANIFEST % "chat"), tmp_path / "none.yaml"],
        deployments={"chat": {"flags": {"tensor_parallel_size": 8}}},
    ).deployments["chat"]
    told = {name: (flag.value, flag.source) for name, flag in found.flags.items()}
    assert told["max_num_seqs"] == (16, "startup_log")
    assert [(d.flag, d.believed.source, d.other.source) for d in found.disagreements] == [
        ("max_num_seqs", "startup_log", "manifest"),
        ("tensor_parallel_size", "manifest", "default"),
        ("tensor_parallel_size", "manifest", "config"),
    ]
    assert (found.replicas, found.engine_version) == (2, "0.11.0")


def test_a_manifest_may_be_said_to_be_of_one_deployment(tmp_path: Path) -> None:
    found = gathered(
        evidence=[written(tmp_path / "fleet.yaml", "deployments: {chat: {}, code: {}}")],
        deployments={"chat": {"manifests": [written(tmp_path / "m.yaml", MANIFEST % "other")]}},
    )
    assert [e.flag("max_num_seqs") for e in found.deployments.values()] == [256, None]
    assert [s.name for s in found.sources] == ["evidence fleet.yaml", "manifest m.yaml"]


def test_the_processes_of_this_host_are_a_source_when_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "chat.yaml", EVIDENCE)
    assert "processes" not in [s.name for s in gathered(evidence=[path]).sources]
    (state,) = (s for s in gathered(evidence=[path], processes=True).sources if s.name == "processes")
    assert "processes that this account sees" in state.detail


def test_a_process_that_nobody_scrapes_joins_by_its_model(tmp_path: Path) -> None:
    path = written(tmp_path / "fleet.yaml", "deployments: {chat: {flags: {max_num_seqs: 256}}, code: {}}")
    words = ("vllm", "serve", "/m", "--served-model-name", "chat", "--max-num-seqs", "64")
    with running(tmp_path, *words):
        found = gathered(evidence=[path], processes=True).deployments
    flags = {name: (flag.value, flag.source) for name, flag in found["chat"].flags.items()}
    # The command line hides nothing, so that its silence about -tp says 1.
    assert (flags["max_num_seqs"], flags["tensor_parallel_size"]) == ((64, "process"), (1, "process"))
    assert [(d.flag, d.other.source, d.other.value) for d in found["chat"].disagreements] == [
        ("max_num_seqs", "config", 256)
    ]
    assert found["code"].flags == {}
