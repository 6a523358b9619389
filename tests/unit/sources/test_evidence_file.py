from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from advisor.domain.errors import ConfigError
from advisor.domain.evidence import Evidence, Flag, GpuInfo, ModelInfo, ReportedPool, Slo, Window
from advisor.domain.fact import Fact
from advisor.sources.evidence_file import read_evidence_file

WINDOW = Window(0.0, 604_800.0)
EXAMPLE = Path(__file__).parents[3] / "config" / "examples" / "chat-70b.yaml"


def read(folder: Path, text: str, name: str = "fleet.yaml") -> tuple[Evidence, ...]:
    file = folder / name
    file.write_text(text)
    return read_evidence_file(file, WINDOW)


def one(folder: Path, part: str) -> Evidence:
    (evidence,) = read(folder, f"deployments:\n  chat: {{{part}}}\n")
    return evidence


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{folder}/")


def test_the_example_reads_as_it_is_written() -> None:
    (evidence,) = read_evidence_file(EXAMPLE, WINDOW)
    assert (evidence.name, evidence.engine, evidence.workload, evidence.window) == (
        "chat-70b",
        "vllm",
        "interactive",
        WINDOW,
    )
    assert evidence.slo == Slo(tpot_seconds=0.04)
    assert evidence.flags["max_num_seqs"] == Flag(256, "config")
    assert evidence.model == ModelInfo(None, 70e9, 327_680, 1_048_576)
    assert evidence.gpu == GpuInfo(80e9, 8e9, None)
    assert evidence.percentiles is not None
    assert evidence.percentiles.total == {50: 1400, 90: 3800, 99: 6200, 99.9: 9500}
    assert evidence.sweep is not None
    assert [(p.concurrency, p.statistic) for p in evidence.sweep.points] == [(n, "mean") for n in (8, 24, 40, 48)]
    assert evidence.sweep.points[2].tpot_seconds == pytest.approx(0.0384615, abs=1e-7)  # 1 / 26
    assert evidence.sweep.source == "stated in chat-70b.yaml"


def test_json_reads_like_yaml(tmp_path: Path) -> None:
    text = json.dumps({"deployments": {"chat": {"flags": {"max_num_seqs": 64}, "replicas": 2}}})
    (evidence,) = read(tmp_path, text, "fleet.json")
    assert (evidence.count_flag("max_num_seqs"), evidence.replicas) == (64, 2)


def test_every_further_part(tmp_path: Path) -> None:
    evidence = one(
        tmp_path,
        "reported: {kv_pool_tokens: 587000}, max_concurrency_seen: 24, engine_version: '0.32.0', workload: batch,"
        " slo: {itl: 200ms, ttft: 2s, percentile: 95}, gpu: {kv_available: 8.11GiB}",
    )
    assert evidence.reported_pool == ReportedPool(587_000, "stated in fleet.yaml")
    assert (evidence.max_concurrency_seen, evidence.engine_version, evidence.workload) == (24, "0.32.0", "batch")
    assert evidence.slo == Slo(None, 0.2, 2.0, 95.0)
    assert evidence.gpu.kv_available_bytes == pytest.approx(8.11 * 2**30)


def test_an_empty_deployment_knows_nothing(tmp_path: Path) -> None:
    read_nothing, nothing = one(tmp_path, ""), Evidence("chat", WINDOW)
    for part in fields(Evidence):
        assert getattr(read_nothing, part.name) == getattr(nothing, part.name)


def test_lengths(tmp_path: Path) -> None:
    joint = one(tmp_path, "requests: {joint: [[100, 50, 3], [100, 50, 1], [2000, 0, 1]]}").joint
    assert joint is not None
    assert (joint.n, joint.prompts().largest, joint.totals().mean) == (5, 2000, (4 * 150 + 2000) / 5)
    totals = one(tmp_path, "requests: {total: [[9500, 1], [1400, 9]]}").totals
    assert totals is not None
    np.testing.assert_array_equal(totals.lengths, [1400, 9500])


def test_the_model_config_by_path_or_inline(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "config.json").write_text('{"num_hidden_layers": 80}')
    for config in ("models/config.json", "models", "{num_hidden_layers: 80}"):
        assert one(tmp_path, f"model: {{config: {config}}}").model.config == {"num_hidden_layers": 80}


def test_stated_facts_have_units_and_say_where_they_come_from(tmp_path: Path) -> None:
    stated = one(
        tmp_path,
        "facts: {running_p95: 8, kv_usage_p95: 6%, preempted_share: 1.5, ttft_p99: 800ms, binding_ceiling: memory}",
    ).stated
    assert stated["kv_usage_p95"] == Fact(value=0.06, source="stated in fleet.yaml")
    assert {name: fact.value for name, fact in stated.items()} == {
        "running_p95": 8,
        "kv_usage_p95": 0.06,
        "preempted_share": 1.5,
        "ttft_p99": 0.8,
        "binding_ceiling": "memory",
    }


def test_flags_as_people_write_them(tmp_path: Path) -> None:
    flags = one(
        tmp_path,
        "flags: {max-num-seqs: 64, --max-model-len: 32K, max_num_batched_tokens: null, enable_lora: true,"
        " speculative_config: {method: ngram}}",
    ).flags
    assert {name: flag.value for name, flag in flags.items()} == {
        "max_num_seqs": 64,
        "max_model_len": 32_768,
        "enable_lora": True,
        "speculative_config": '{"method": "ngram"}',
    }


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("flgs: {}", "2:10: unknown key 'flgs' in deployments.chat.flgs; did you mean 'flags'?"),
        ("gpu: {memory: 80}", "2:16: deployments.chat.gpu.memory: '80' is not plausible here; write it like 80GB"),
        (
            "gpu: {memory: -80GB}",
            "2:16: deployments.chat.gpu.memory: '-80GB' is not plausible here; write it like 80GB",
        ),
        ("gpu: {memory: lots}", "2:16: deployments.chat.gpu.memory: 'lots' is not a quantity in"),
        ("gpu: {memory: [80]}", "2:16: deployments.chat.gpu.memory: '[80]' is not a quantity in"),
        ("slo: {tpot: 40}", "2:16: deployments.chat.slo.tpot: '40' is not plausible here; write it like 40ms"),
        ("slo: {percentile: 0.99}", "2:16: deployments.chat.slo.percentile: expected greater than or equal to 50"),
        (
            "flags: {gpu_memory_utilization: 1.2}",
            "2:18: deployments.chat.flags.gpu_memory_utilization: gpu_memory_utilization is a share",
        ),
        ("flags: {max_num_seqs: 0}", "2:18: deployments.chat.flags.max_num_seqs: max_num_seqs lies between 1 and"),
        ("flags: {max_num_seq: 8}", "2:18: unknown flag 'max_num_seq'; did you mean 'max_num_seqs'?"),
        ("total_tokens: {p50: 900, p99: 800}", "2:10: deployments.chat.total_tokens: p99 is 800, below p50 with 900"),
        ("total_tokens: {p999: 900}", "2:10: deployments.chat.total_tokens: 'p999' is no percentile; write p50"),
        (
            "total_tokens: {p99: 1000000000000}",
            "2:25: deployments.chat.total_tokens.p99: '1000000000000' is not plausible",
        ),
        ("requests: {joint: [[1000000000000, 5, 1]]}", "2:30: deployments.chat.requests.joint.0.0: expected less than"),
        ("requests: {joint: [[10, 5, 0]]}", "2:37: deployments.chat.requests.joint.0.2: expected greater than"),
        ("requests: {joint: [[10, -5, 1]]}", "2:34: deployments.chat.requests.joint.0.1: expected greater than"),
        ("requests: {total: [[10, 5, 1]]}", "2:29: deployments.chat.requests.total.0: "),
        ("requests: {}", "2:10: deployments.chat.requests: give joint or total, with at least one row"),
        ("sweep: [{concurrency: 0, tpot: 9ms}]", "2:19: deployments.chat.sweep.0.concurrency: '0' is not plausible"),
        ("replicas: 0", "2:10: deployments.chat.replicas: '0' is not plausible here"),
        ("replicas: true", "2:10: deployments.chat.replicas: 'True' is not a quantity"),
        ("engine_version: 0.30", "2:10: deployments.chat.engine_version: expected a valid string, got a number"),
        (
            "engine: vlm",
            "2:10: deployments.chat.engine: expected 'vllm', 'sglang', 'tgi', 'trtllm', 'llamacpp', 'dynamo'",
        ),
        ("facts: {running_p94: 8}", "2:18: unknown fact 'running_p94'; did you mean 'running_p95'?"),
        (
            "facts: {kv_usage_p95: 6}",
            "2:18: deployments.chat.facts.kv_usage_p95: '6' lies outside 0 to 1; six percent is 6%",
        ),
        ("facts: {running_p95: -1}", "2:18: deployments.chat.facts.running_p95: '-1' lies outside 0 to"),
        ("facts: {running_p95: .nan}", "2:18: deployments.chat.facts.running_p95: 'nan' is not a quantity in"),
        ("facts: {binding_ceiling: sky}", "2:18: deployments.chat.facts.binding_ceiling: expected one of memory"),
        ("model: {config: gone.json}", "2:18: "),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path: Path, part: str, message: str) -> None:
    assert refusal(tmp_path, f"deployments:\n  chat: {{{part}}}\n").startswith(f"fleet.yaml:{message}")


@pytest.mark.parametrize(
    "text", ["", "[]", "deployments: {}", "deployments: [a]", "deployment: {}", "deployments: {a: 1}"]
)
def test_a_file_without_deployments_is_refused(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, text).startswith("fleet.yaml")


def test_long_lists_are_quick_in_json(tmp_path: Path) -> None:
    rows = [[prompt, 10, 1] for prompt in range(200_000)]
    (evidence,) = read(tmp_path, json.dumps({"deployments": {"a": {"requests": {"joint": rows}}}}), "fleet.json")
    assert evidence.joint is not None
    assert evidence.joint.n == 200_000
