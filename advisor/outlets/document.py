"""A report as the contract's document. A whole number of things that are counted becomes an integer."""

from __future__ import annotations

from datetime import UTC, datetime

from advisor.domain.advice import Advice, EvidenceLine, Finding, NotFired
from advisor.domain.canary import Canary
from advisor.domain.catalogue import CATALOGUE
from advisor.domain.evidence import Evidence, Flag, Window
from advisor.domain.fact import Fact
from advisor.domain.report import DeploymentReport, Report

from .contract import (
    AdviceJson,
    CanaryJson,
    ClosestJson,
    DeploymentJson,
    DifferenceJson,
    Document,
    EvidenceJson,
    FactJson,
    FindingJson,
    FlagJson,
    NotFiredJson,
    ObservedJson,
    PicturesJson,
    PredictionJson,
    ReadingJson,
    RivalJson,
    RolloutJson,
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
        generated_at=instant(report.generated_at),
        window=_window(report.window),
        sources=[SourceJson.model_validate(source) for source in report.sources],
        deployments=[_deployment(deployment) for deployment in report.deployments],
    )


def instant(unix_seconds: float) -> str:
    """1795968000 is `2026-11-29T16:00:00Z`. Raises ValueError beyond the year 9999."""
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _window(window: Window) -> WindowJson:
    return WindowJson(start=instant(window.start), end=instant(window.end))


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
        canaries=[_canary(canary) for canary in deployment.canaries],
    )


def _observed(evidence: Evidence) -> ObservedJson:
    given = evidence.joint or evidence.totals
    starts = sorted(evidence.sized_engines, key=lambda engine: engine.epoch_start)
    first, last = (starts[0], starts[-1]) if starts else (None, None)
    return ObservedJson(
        logged_requests=evidence.log.requests if evidence.log else None,
        given_requests=given.n if given else None,
        engines=len(evidence.every_engine),
        epoch_start=_dated(last.epoch_start if last else None),
        epoch_cause=last.epoch_cause if last else None,
        measured_since=_dated(first.epoch_start if first else None),
        rollout=RolloutJson.model_validate(evidence.rollout) if evidence.rollout else None,
    )


def _canary(canary: Canary) -> CanaryJson:
    return CanaryJson(
        instances=list(canary.instances),
        since=_dated(canary.since),
        differences=[DifferenceJson.model_validate(difference) for difference in canary.differences],
        hours=canary.hours,
        readings=[ReadingJson.model_validate(reading) for reading in canary.readings],
    )


def _dated(since: float | None) -> str | None:
    """A process start time is as hostile as anything scraped: one that is no date is not told."""
    return instant(since) if since is not None and 0 <= since < _YEAR_10000 else None


def _flag(flag: Flag) -> FlagJson:
    return FlagJson(value=flag.value, source=flag.source, since=_dated(flag.since))


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
        rivals=[_rival(rival, unit) for rival in fact.rivals],
    )
    silent = told.unknown is None and told.value is None and told.low is None and told.high is None
    return told.model_copy(update={"unknown": "it came out as no finite number"}) if silent else told


def _rival(rival: Fact, unit: str) -> RivalJson:
    return RivalJson(
        value=_counted(rival.value, unit),
        low=_number(rival.low, unit),
        high=_number(rival.high, unit),
        source=rival.source,
        basis=rival.basis,
    )


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
        EvidenceJson(
            fact=line.fact,
            value=_counted(line.value, line.unit),
            unit=line.unit,
            condition=line.condition,
            bound=line.bound,
        )
        for line in lines
    ]


def _finding(finding: Finding) -> FindingJson:
    return FindingJson(rule=finding.rule, title=finding.title, evidence=_evidence(finding.evidence))


def _not_fired(rule: NotFired) -> NotFiredJson:
    return NotFiredJson(rule=rule.rule, closest=ClosestJson.model_validate(rule))
