"""The configuration: what wins over what, and that nothing is silently ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor.domain.errors import ConfigError
from advisor.domain.evidence import Slo
from advisor.settings import Settings, read_settings


def configured(tmp_path: Path, text: str, **given: Any) -> Settings:
    path = tmp_path / "advisor.yaml"
    path.write_text(text)
    return read_settings(path, given)


def test_defaults() -> None:
    settings = read_settings()
    assert (settings.since, settings.workload, settings.strict) == (604_800.0, "interactive", False)
    assert settings.policy.policy().length_percentile == 99.9
    assert settings.slo_of("chat") == Slo(percentile=99.0)


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_SINCE", "2d")
    monkeypatch.setenv("ADVISOR_SLO__TTFT", "3s")
    text = "since: 1d\nworkload: batch\nslo: {tpot: 50ms, ttft: 2s, itl: 300ms}\n"
    settings = configured(tmp_path, text, slo={"tpot": "40ms"})
    assert (settings.since, settings.workload) == (172_800.0, "batch")
    assert settings.slo_of("chat") == Slo(0.04, 0.3, 3.0, 99.0)


def test_a_deployment_has_objectives_of_its_own_and_the_evidence_file_comes_last(tmp_path: Path) -> None:
    settings = configured(tmp_path, "slo: {ttft: 2s}\ndeployments: {chat: {slo: {tpot: 50ms, percentile: 95}}}\n")
    stated = Slo(0.06, 0.2, 5.0, 90.0)
    assert settings.slo_of("chat", stated) == Slo(0.05, 0.2, 2.0, 95.0)
    assert settings.slo_of("code", stated) == Slo(0.06, 0.2, 2.0, 90.0)


def test_the_command_line_wins_over_what_is_true_of_one_deployment(tmp_path: Path) -> None:
    text = "deployments: {chat: {workload: batch, slo: {tpot: 50ms, ttft: 1s}}}\n"
    settings = configured(tmp_path, text, slo={"tpot": "40ms"}, workload="interactive")
    assert settings.slo_of("chat") == Slo(0.04, None, 1.0, 99.0)
    assert settings.deployments["chat"].workload == "interactive"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sinse: 7d", r"advisor\.yaml:1:1: unknown key 'sinse' .*did you mean 'since'"),
        ("slo:\n  tpot: 40", r"advisor\.yaml:2:3: slo\.tpot: '40' is not plausible here; write it like 40ms"),
        ("slo: {tpot: 40msec}", "slo.tpot: '40msec' is not a quantity"),
        ("slo: {percentile: 0.99}", "slo.percentile"),
        ("slo: {percentile: 100}", "slo.percentile"),
        ("since: 0s", "since"),
        ("since: 20y", "since: '20y' is not a quantity"),
        ("since: 5000d", "since"),
        ("policy: {length_percentile: 0.999}", "length_percentile"),
        ("policy: {length_margin: 25}", "length_margin"),
        ("policy: {kv_overflow_risk: 50%}", "kv_overflow_risk"),
        ("workload: mixed", "workload"),
        ("prometheus: {url: 'prometheus:9090'}", "prometheus.url"),
        ("deployments: {chat: {flags: {max_num_sqs: 64}}}", "no flag .* 'max_num_sqs'; did you mean 'max_num_seqs'"),
        ("deployments: {chat: {flags: {max_num_seqs: 0}}}", "max_num_seqs lies between 1 and"),
        ("flags: {gpu_memory_utilization: 92}", "a share above 0 and at most 1"),
        ("- since", "expected|should be"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        configured(tmp_path, text)


def test_flags_are_written_as_on_the_command_line_or_as_in_a_file(tmp_path: Path) -> None:
    settings = configured(tmp_path, "flags: {--max-num-seqs: 64, max-model-len: 12K, enforce_eager: true}")
    assert settings.flags == {"max_num_seqs": 64, "max_model_len": 12_288, "enforce_eager": True}


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("ADVISOR_SINSE", "7d", "ADVISOR_SINSE names no setting: did you mean 'ADVISOR_SINCE'"),
        ("ADVISOR_SLO__TPOTT", "40ms", r"slo\.tpott"),
        ("ADVISOR_SLO__TPOT", "40", r"slo\.tpot: '40' is not plausible"),
        ("ADVISOR_ENGINES", "http://engine:8000", "write a list or a mapping as JSON"),
        ("ADVISOR_STRICT", "perhaps", "strict"),
    ],
)
def test_a_variable_that_cannot_be_meant_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, complaint: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=complaint):
        read_settings()


def test_a_value_that_may_be_a_secret_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_PROMETHEUS", '{"url": "http://p:9090", "headers": "hunter2"}')
    with pytest.raises(ConfigError) as refused:
        read_settings()
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"nothing\.yaml: no such file"):
        read_settings(Path("nothing.yaml"))
