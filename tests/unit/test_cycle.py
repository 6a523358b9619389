"""One evaluation from end to end, over files."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor import rule_pack
from advisor.cycle import SetFlag, run_once
from advisor.domain.errors import UsageError
from advisor.domain.evidence import Window
from advisor.domain.report import Report
from advisor.settings import Settings

pytestmark = pytest.mark.slow

WINDOW = Window(1_795_960_000.0, 1_795_970_000.0)
EXAMPLE = rule_pack.shipped_directory("config") / "examples" / "chat-70b.yaml"
TWO = "deployments: {chat: {flags: {max_num_seqs: 8}}, batch: {flags: {max_num_seqs: 256}}}"


@pytest.fixture
def fleet(tmp_path: Path) -> Settings:
    path = tmp_path / "fleet.yaml"
    path.write_text(TWO)
    return Settings.model_validate({"evidence": [path]})


def flag(value: int, deployment: str | None = None) -> SetFlag:
    return SetFlag(deployment, "max_num_seqs", value)


def caps(report: Report) -> dict[str, object]:
    return {d.evidence.name: d.evidence.flag("max_num_seqs") for d in report.deployments}


def test_the_contracts_worked_example() -> None:
    told: list[str] = []
    report = run_once(Settings.model_validate({"evidence": [EXAMPLE]}), WINDOW, tell=told.append)
    (chat,) = report.deployments
    assert chat.judgement.status == "advice"
    assert [(a.flag, a.state) for a in chat.judgement.advice if a.verdict == "change_flag"] == [
        ("--max-model-len 12288", "open"),
        ("--max-num-seqs 40", "open"),
    ]
    expected = {
        "recommended_max_model_len": 12_288,
        "max_model_len_cost_ratio": 1_048_576 / 12_288,
        "kv_pool_tokens_predicted": 587_158,
        "memory_ceiling_guaranteed": 47,
        "latency_ceiling": 40,
        "recommended_max_num_seqs": 40,
        "prefill_tokens_per_step_left": 2_008,
    }
    assert {name: chat.facts[name].number for name in expected} == expected
    assert chat.facts["binding_ceiling"].value == "latency"
    assert [line.split(":")[0] for line in told] == ["rules", "gather", "engine metrics", "judge"]


def test_deployments_come_by_name_and_one_may_be_asked_for(fleet: Settings) -> None:
    assert list(caps(run_once(fleet, WINDOW))) == ["batch", "chat"]
    assert list(caps(run_once(fleet, WINDOW, deployment="chat"))) == ["chat"]
    assert run_once(fleet, WINDOW, deployment="code").deployments == ()


def test_a_flag_is_set_for_the_deployment_it_names(fleet: Settings) -> None:
    report = run_once(fleet, WINDOW, set_flags=[flag(64, "chat")])
    assert caps(report) == {"batch": 256, "chat": 64}
    assert [(s.name, s.status) for s in report.sources[1:]] == [("flag max_num_seqs of chat", "partial")]
    assert report.sources[1].detail == "command line says 64, config says 8: the first is believed"


def test_an_unscoped_flag_is_for_the_only_deployment_or_the_one_asked_for(fleet: Settings) -> None:
    assert caps(run_once(fleet, WINDOW, set_flags=[flag(64)], deployment="chat")) == {"chat": 64}
    with pytest.raises(UsageError, match="--set max_num_seqs: 2 deployments, write --set DEPLOYMENT:max_num_seqs"):
        run_once(fleet, WINDOW, set_flags=[flag(64)])
    with pytest.raises(UsageError, match="--set code:max_num_seqs: no such deployment; there are chat, batch"):
        run_once(fleet, WINDOW, set_flags=[flag(64, "code")])


def test_disputes_of_other_deployments_are_not_told(fleet: Settings) -> None:
    report = run_once(fleet, WINDOW, set_flags=[flag(64, "chat")], deployment="batch")
    assert [s.name for s in report.sources] == ["evidence fleet.yaml"]


@pytest.mark.parametrize("scope", [None, "chat"])
def test_where_nothing_was_read_a_flag_does_not_hide_why(scope: str | None) -> None:
    down = Settings.model_validate({"prometheus": {"url": "http://127.0.0.1:9"}})
    report = run_once(down, WINDOW, set_flags=[flag(64, scope)])
    assert [(s.name, s.status) for s in report.sources] == [("prometheus", "failed")]


def test_policy_reaches_the_arithmetic() -> None:
    """9,500 x 1.5 = 14,250, rounded up to 14,336."""
    settings = Settings.model_validate({"evidence": [EXAMPLE], "policy": {"length_margin": "50%"}})
    (chat,) = run_once(settings, WINDOW).deployments
    assert chat.facts["recommended_max_model_len"].number == 14_336
