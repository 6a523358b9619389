"""The JSON under /api/v1: the contract's document, whole and in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict

from advisor.domain.life import LifeState
from advisor.domain.report import DeploymentReport, Report
from advisor.outlets.contract import AdviceJson, DeploymentJson, Document, Number, Text
from advisor.outlets.document import document
from advisor.outlets.plain import plain

from .pages import sendable
from .state import WebState

NO_SUCH_NAME = "no deployment has this name: /api/v1/deployments lists those there are"


class DeployedAdvice(AdviceJson):
    """One recommendation, and the deployment that it is for."""

    deployment: Text


class AdviceList(BaseModel):
    """All advice of the fleet, open and queued."""

    schema_version: Literal["1"] = "1"
    generated_at: str
    advice: list[DeployedAdvice]


class Trends(BaseModel):
    """Facts of a deployment over time, oldest first, and until when it is only collecting. Times in UNIX seconds."""

    schema_version: Literal["1"] = "1"
    deployment: Text
    collecting_until: Number
    facts: dict[Text, list[tuple[float, float]]]


class ScoreJson(BaseModel):
    """One prediction held against what happened; `held` is null where the windows cannot be compared."""

    model_config = ConfigDict(from_attributes=True)

    metric: Text
    unit: Text
    low: Number
    high: Number
    before: Number
    after: Number
    held: bool | None
    note: Text
    hours: int | None


class RecordJson(BaseModel):
    """One piece of advice from its first sight to its end. Times in UNIX seconds."""

    model_config = ConfigDict(from_attributes=True)

    deployment: Text
    state: LifeState
    since: Number
    first_seen: Number
    last_seen: Number
    until: Number
    reason: Text | None
    applied_at: Number
    baseline: dict[Text, Number]
    advice: AdviceJson
    scores: list[ScoreJson]


class TrackRecordJson(BaseModel):
    """How often the advice of one rule, once followed, did what it said."""

    model_config = ConfigDict(from_attributes=True)

    rule: Text
    followed: int
    held: int
    regressed: int
    undecided: int


class History(BaseModel):
    """All advice that is remembered, and the score of each rule."""

    schema_version: Literal["1"] = "1"
    records: list[RecordJson]
    track_records: list[TrackRecordJson]


def router(state: WebState) -> APIRouter:
    """The routes of the API over what the state knows."""
    routes = APIRouter(prefix="/api/v1", responses={503: {"description": "nothing was evaluated yet"}})

    @routes.get("/deployments", response_model=Document)
    def deployments() -> Response:
        report = evaluated(state)
        told = (_deployment(report, d) for d in state.deployments())
        return _streamed(document(replace(report, deployments=())), told)

    @routes.get(
        "/deployments/{name:deployment}",
        response_model=DeploymentJson,
        responses={404: {"description": "no such name"}},
    )
    def deployment(name: str) -> Response:
        report = evaluated(state)
        found = find(state, report, name)
        if found is None:
            raise HTTPException(404, NO_SUCH_NAME)
        return Response(_deployment(report, found).model_dump_json(), media_type="application/json")

    @routes.get("/trends/{name:deployment}", responses={404: {"description": "no such name"}})
    def trends(name: str) -> Trends:
        found = find(state, evaluated(state), name)
        if found is None:
            raise HTTPException(404, NO_SUCH_NAME)
        own = found.evidence.name
        past = state.past(own)
        facts = {fact: list(series) for fact, series in past.trends.items() if series}
        return Trends(deployment=own, collecting_until=past.collecting_until, facts=facts)

    @routes.get("/advice", response_model=AdviceList)
    def advice() -> Response:
        report = evaluated(state)
        frame = document(replace(report, deployments=()))
        advised = (_deployment(report, d) for d in report.deployments if d.judgement.advice)
        told = (DeployedAdvice(**a.model_dump(), deployment=d.name) for d in advised for a in d.advice)
        return _streamed(AdviceList(generated_at=frame.generated_at, advice=[]), told)

    @routes.get("/history")
    def history() -> History:
        return History(
            records=[RecordJson.model_validate(record) for record in state.records()],
            track_records=[TrackRecordJson.model_validate(track) for track in state.track_records()],
        )

    return routes


def evaluated(state: WebState) -> Report:
    """The latest report. Raises a 503 with the reason before the first one."""
    latest = state.report()
    if latest is None:
        reason = plain(state.health().reason) or "nothing was evaluated yet"
        raise HTTPException(503, reason, {"retry-after": "60"})
    return latest[1]


def find(state: WebState, report: Report, name: str) -> DeploymentReport | None:
    """Everything about the deployment that is addressed by `name`, or None."""
    named = (d.evidence.name for d in report.deployments if sendable(d.evidence.name) == name)
    own = next(named, None)
    return None if own is None else state.deployment(own)


def _deployment(report: Report, deployment: DeploymentReport) -> DeploymentJson:
    return document(replace(report, deployments=(deployment,))).deployments[0]


def _streamed(frame: Document | AdviceList, members: Iterable[BaseModel]) -> Response:
    """The frame, whose last list is empty, with its members: a thousand are never in memory as JSON at once."""
    head, tail = frame.model_dump_json().rsplit("[]", 1)

    def pieces() -> Iterator[str]:
        yield f"{head}["
        for place, member in enumerate(members):
            yield ("," if place else "") + member.model_dump_json()
        yield f"]{tail}"

    return StreamingResponse(pieces(), media_type="application/json")
