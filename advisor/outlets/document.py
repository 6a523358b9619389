"""A report as the contract's document. A whole number of things that are counted becomes an integer."""

from __future__ import annotations

from datetime import UTC, datetime

from advisor.domain.advice import Advice, EvidenceLine, Finding, NotFired
from advisor.domain.catalogue import CATALOGUE
from advisor.domain.evidence import Evidence, Flag, Window
from advisor.domain.fact import Fact
from advisor.domain.report import DeploymentReport, Report

from .contract import (
    AdviceJson,
    ClosestJson,
    DeploymentJson,
    Document,
    EvidenceJson,
    FactJson,
    FindingJson,
    FlagJson,
    NotFiredJson,
    ObservedJson,
    PicturesJson,
    PredictionJson,
    SloJson,
    SourceJson,
    UndeterminedJson,
    WindowJson,
)

_COUNTED = frozenset({"tokens", "sequences", "requests", "replicas", "bytes"})
_YEAR_10000 = 253_402_300_800


def document(report: Report) -> Document:
    """The document of a report: every fact of the catalogue is there, Unknown or not."""
    return Document(
        generated_at=_instant(report.generated_at),
        window=_window(report.window),
        sources=[SourceJson.model_validate(source) for source in report.sources],
        deployments=[_deployment(deployment) for deployment in report.deployments],
    )


def _instant(unix_seconds: float) -> str:
    """1795968000 is `2026-11-29T16:00:00Z`. Raises ValueError beyond the year 9999."""
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _window(window: Window) -> WindowJson:
    return WindowJson(start=_instant(window.start), end=_instant(window.end))


def _deployment(deployment: DeploymentReport) -> DeploymentJson:
    evidence, judgement = deployment.evidence, deployment.judgement
    return DeploymentJson(
        name=evidence.name,
        engine=evidence.engine,
        engine_version=evidence.engine_version,
        replicas=evidence.replicas,
        workload=evidence.workload,
        status=judgement.status,
        slo=SloJson.model_validate(evidence.slo),
        flags={name: _flag(flag) for name, flag in evidence.flags.items()},
        facts={name: _fact(fact, CATALOGUE[name].unit) for name, fact in deployment.facts.items()},
        advice=[_advice(advice) for advice in judgement.advice],
        findings=[_finding(finding) for finding in judgement.findings],
        undetermined=[UndeterminedJson.model_validate(rule) for rule in judgement.undetermined],
        not_fired=[_not_fired(rule) for rule in judgement.not_fired],
        observed=_observed(evidence),
        pictures=PicturesJson.model_validate(deployment.pictures),
    )


def _observed(evidence: Evidence) -> ObservedJson:
    given = evidence.joint or evidence.totals
    starts = [engine.epoch_start for engine in evidence.engines]
    return ObservedJson(
        logged_requests=evidence.log.requests if evidence.log else None,
        given_requests=given.n if given else None,
        engines=len(evidence.engines),
        epoch_start=_instant(max(starts)) if starts and 0 <= max(starts) < _YEAR_10000 else None,
    )


def _flag(flag: Flag) -> FlagJson:
    """A process start time is as hostile as anything scraped: one that is no date is not told."""
    dated = flag.since is not None and 0 <= flag.since < _YEAR_10000
    return FlagJson(value=flag.value, source=flag.source, since=_instant(flag.since or 0) if dated else None)


def _counted(value: float | str | None, unit: str) -> float | str | None:
    return value if isinstance(value, str) else _number(value, unit)


def _number(value: float | None, unit: str) -> float | None:
    return int(value) if unit in _COUNTED and isinstance(value, float) and value.is_integer() else value


def _fact(fact: Fact, unit: str) -> FactJson:
    told = FactJson(
        value=_counted(fact.value, unit),
        unit=unit,
        low=_number(fact.low, unit),
        high=_number(fact.high, unit),
        n=fact.n,
        window=fact.window,
        source=fact.source,
        basis=fact.basis,
        unknown=fact.unknown,
    )
    silent = told.unknown is None and told.value is None and told.low is None and told.high is None
    return told.model_copy(update={"unknown": "it came out as no finite number"}) if silent else told


def _advice(advice: Advice) -> AdviceJson:
    values = {name: getattr(advice, name) for name in AdviceJson.model_fields}
    prediction = [
        PredictionJson(
            metric=p.metric,
            now=_number(p.now, p.unit),
            low=_number(p.low, p.unit),
            high=_number(p.high, p.unit),
            unit=p.unit,
        )
        for p in advice.prediction
    ]
    return AdviceJson.model_validate(values | {"evidence": _evidence(advice.evidence), "prediction": prediction})


def _evidence(lines: tuple[EvidenceLine, ...]) -> list[EvidenceJson]:
    return [
        EvidenceJson(fact=line.fact, value=_counted(line.value, line.unit), unit=line.unit, condition=line.condition)
        for line in lines
    ]


def _finding(finding: Finding) -> FindingJson:
    return FindingJson(rule=finding.rule, title=finding.title, evidence=_evidence(finding.evidence))


def _not_fired(rule: NotFired) -> NotFiredJson:
    return NotFiredJson(
        rule=rule.rule, closest=ClosestJson(condition=rule.condition, value=rule.value, distance=rule.distance)
    )
