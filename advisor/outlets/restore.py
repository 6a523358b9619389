"""A report again, from the document that it was kept as: enough to render every format, not to evaluate anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from advisor.domain.canary import Canary, Difference, Reading, Rollout
from advisor.domain.catalogue import CATALOGUE
from advisor.domain.errors import SourceError
from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, Flag, RequestLog, Samples, Slo, Window
from advisor.domain.evidence import as_floats as floats
from advisor.domain.fact import Fact, FactSheet
from advisor.domain.histogram import JointCounts, TokenCounts
from advisor.domain.pictures import CurvePicture, CurvePoint, LengthPicture, Pictures
from advisor.domain.report import DeploymentReport, Report, SourceState

from .contract import Document
from .judgements import restore_judgement

Part = Mapping[str, Any]


def restore(document_json: str | bytes) -> Report:
    """The report of a document. Raises SourceError where it is none of schema_version 1, with the place.

    Requests and engines come back as their numbers only; of lengths, latencies and gauges the facts and charts tell.
    """
    try:
        document = Document.model_validate_json(document_json)
        return _report(document.model_dump())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SourceError(f"no report of this version of advisor: {where}: {first['msg']}", permanent=True) from None
    except ValueError as error:
        raise SourceError(f"no report of this version of advisor: {error}", permanent=True) from None


def _report(document: Part) -> Report:
    window = Window(_unix(document["window"]["start"]), _unix(document["window"]["end"]))
    return Report(
        generated_at=_unix(document["generated_at"]),
        window=window,
        sources=tuple(SourceState(**source) for source in document["sources"]),
        deployments=tuple(_deployment(part, window) for part in document["deployments"]),
    )


def _deployment(part: Part, window: Window) -> DeploymentReport:
    return DeploymentReport(
        _evidence(part, window),
        FactSheet({name: _fact(told) for name, told in part["facts"].items() if name in CATALOGUE}),
        restore_judgement(part),
        Pictures(_lengths(part["pictures"]["lengths"]), _curve(part["pictures"]["curve"])),
        tuple(_canary(told) for told in part["canaries"]),
    )


def _evidence(part: Part, window: Window) -> Evidence:
    observed = part["observed"]
    logged, given = observed["logged_requests"], observed["given_requests"]
    return Evidence(
        window=window,
        slo=Slo(**part["slo"]),
        flags={name: _flag(flag) for name, flag in part["flags"].items()},
        log=None if logged is None else _log(logged, window),
        joint=None if given is None else JointCounts.of([0], [0], [given]),
        engines=tuple(_engines(observed, window)),
        rollout=None if observed["rollout"] is None else Rollout(**observed["rollout"]),
        **{name: part[name] for name in ("name", "engine", "engine_version", "replicas", "workload")},
    )


_MOST_ENGINES = 100_000


def _flag(told: Part) -> Flag:
    return Flag(told["value"], told["source"], None if told["since"] is None else _unix(told["since"]))


def _fact(told: Part) -> Fact:
    rivals = tuple(Fact(**rival) for rival in told.get("rivals", ()))
    return Fact(**{name: value for name, value in told.items() if name not in ("unit", "rivals")}, rivals=rivals)


def _log(requests: int, window: Window) -> RequestLog:
    """So many requests, of which the document keeps no more than their number."""
    nothing = TokenCounts.of([])
    return RequestLog(
        served=JointCounts.of([0], [0], [requests]),
        declared=nothing,
        refused_needs=nothing,
        cut=nothing,
        refused=0,
        failed=0,
        without_usage=0,
        first_seconds=window.start,
        last_seconds=window.end,
        arrivals={},
        latency=None,
        source="as reported",
    )


def _engines(observed: Part, window: Window) -> Iterator[EngineSeries]:
    """So many engines, of which the document keeps when the first and the last of them began."""
    nothing = floats([])
    samples, windows = Samples(nothing, nothing, nothing, None), CounterWindows(nothing, nothing, {})
    first, last, cause = (observed[name] for name in ("measured_since", "epoch_start", "epoch_cause"))
    for number in range(min(observed["engines"], _MOST_ENGINES)):
        since = last if number else first or last
        start = window.start if since is None else _unix(since)
        why = cause if since == last else None
        yield EngineSeries(f"engine {number}", "0", start, samples, windows, {}, {}, epoch_cause=why)


def _canary(told: Part) -> Canary:
    return Canary(
        instances=tuple(told["instances"]),
        since=0.0 if told["since"] is None else _unix(told["since"]),
        differences=tuple(Difference(**difference) for difference in told["differences"]),
        hours=told["hours"],
        readings=tuple(Reading(**reading) for reading in told["readings"]),
    )


def _lengths(told: Part | None) -> LengthPicture | None:
    if told is None:
        return None
    return LengthPicture(**{**told, "edges": tuple(told["edges"]), "shares": tuple(told["shares"])})


def _curve(told: Part | None) -> CurvePicture | None:
    if told is None:
        return None
    return CurvePicture(**{**told, "points": tuple(CurvePoint(**point) for point in told["points"])})


def _unix(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
