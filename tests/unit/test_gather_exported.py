"""What host agents counted finds its deployment, or becomes a line."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from advisor.domain.report import SourceState
from advisor.gather import Gathered, names_of
from advisor.gather.exported import join_exporters
from advisor.settings import Settings
from advisor.sources.metrics_reading import DeploymentMetrics
from tests.unit.sources.http_server import answering
from tests.unit.sources.test_exporter_histograms import DAY, Series, answer_with, bucket, outcome


def counted(model: str) -> list[Series]:
    return [*(bucket(le, 0, 3, model=model) for le in ("1024.0", "+Inf")), outcome("served", 0, 3, model=model)]


def joined(models: tuple[str, ...], *labels: Mapping[str, str], **logs: object) -> Gathered:
    """Agents that counted these models, beside engines that serve those."""
    out = Gathered()
    with answering(answer_with(*(series for model in models for series in counted(model)))) as url:
        settings = Settings.model_validate({"prometheus": {"url": url}, **({"logs": logs} if logs else {})})
        join_exporters(settings, DAY, names_of(DeploymentMetrics(one, (), ()) for one in labels), out)
    return out


def told(out: Gathered) -> dict[str, float]:
    return {name: e.exported.requests for name, e in out.deployments.items() if e.exported is not None}


CHAT, CODE = {"job": "a", "model_name": "chat"}, {"job": "a", "model_name": "code"}


def test_by_the_models_name() -> None:
    out = joined(("chat",), CHAT, CODE)
    assert told(out) == {"chat": 3}
    assert [source.status for source in out.sources] == ["ok"]
    assert out.queries == 2


def test_by_an_alias() -> None:
    assert told(joined(("gpt-4o", "chat"), CHAT, paths=["x"], aliases={"gpt-4o": "chat"})) == {"chat": 6}


def test_without_metrics_the_agents_say_which_deployments_there_are() -> None:
    assert told(joined(("chat", "code"))) == {"chat": 3, "code": 3}


def test_what_nobody_serves_is_a_line() -> None:
    out = joined(("other", "(others)"), CHAT)
    assert told(out) == {}
    (_, line) = out.sources
    assert (line.name, line.status) == ("exporter models", "partial")
    assert "no single deployment claims other (3), (others) (3): map them in logs.aliases; (others) are" in line.detail


def test_two_deployments_of_one_model_are_not_told_apart() -> None:
    out = joined(("chat",), CHAT, {"job": "b", "model_name": "chat"})
    assert told(out) == {}
    assert "chat (3)" in out.sources[-1].detail


@pytest.mark.parametrize("status", ["ok", "failed"])
def test_a_server_that_failed_is_not_asked_again(status: str) -> None:
    out = Gathered(sources=[SourceState("prometheus", status, "")])  # type: ignore[arg-type]
    asked: list[str] = []
    with answering(answer_with(agents=0, asked=asked)) as url:
        join_exporters(Settings.model_validate({"prometheus": {"url": url}}), DAY, {}, out)
    assert len(asked) == (status == "ok")
    assert len(out.sources) == 1
