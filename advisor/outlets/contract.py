"""The models of the JSON document, schema_version "1".

Scripts and dashboards depend on these keys; they may grow, and what stands here keeps its meaning. Infinity and NaN are
no JSON and become null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from advisor.domain.advice import (
    AdviceState,
    Confidence,
    Severity,
    Status,
    Verdict,
)
from advisor.domain.canary import ComparedTo
from advisor.domain.evidence import EpochCause, FlagSource, Workload
from advisor.domain.fact import Basis
from advisor.domain.report import SourceStatus


def _carried(value: object) -> object:
    """What JSON can carry: nothing for NaN and infinity, and half a surrogate pair spelled out."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_carried(key): _carried(item) for key, item in value.items()}
    return [_carried(item) for item in value] if isinstance(value, list | tuple) else value


def _whole(value: object) -> object:
    carried = _carried(value)
    return int(carried) if isinstance(carried, float) and carried.is_integer() else carried


Text = Annotated[str, BeforeValidator(_carried)]
Number = Annotated[int | float | None, BeforeValidator(_carried)]
Setting = Annotated[int | float | None, BeforeValidator(_whole)]
Value = Annotated[int | float | str | None, BeforeValidator(_carried)]
Option = Annotated[JsonValue, BeforeValidator(_carried)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)


class WindowJson(_Model):
    """The span that was looked at, ISO-8601 in UTC."""

    start: str
    end: str


class SourceJson(_Model):
    """How reading one source went."""

    name: Text
    status: SourceStatus
    detail: Text


class SloJson(_Model):
    """Latency objectives; `percentile` (0..100) of requests must meet them."""

    tpot_seconds: Number
    itl_seconds: Number
    ttft_seconds: Number
    percentile: Setting


class FlagJson(_Model):
    """A flag's running value, who says so, and since when (ISO-8601)."""

    value: Annotated[bool | int | float | str | None, BeforeValidator(_carried)]
    source: FlagSource
    since: str | None


class RivalJson(_Model):
    """What else was told of the same thing, and is not believed."""

    value: Value
    low: Number
    high: Number
    source: Text | None
    basis: Basis


class FactJson(_Model):
    """One figure and its story; `unknown` is the reason why there is none."""

    value: Value
    unit: str
    low: Number
    high: Number
    n: int | None
    window: Text | None
    source: Text | None
    basis: Basis
    unknown: Text | None
    rivals: list[RivalJson] = Field(default_factory=list)


class EvidenceJson(_Model):
    """One condition of a rule and the figure that decided it."""

    fact: Text
    value: Value
    unit: Text
    condition: Text
    bound: Literal["low", "high"] | None = None


class PredictionJson(_Model):
    """What a metric should read after the change."""

    metric: Text
    now: Number
    low: Number
    high: Number
    unit: Text


class AdviceJson(_Model):
    """One recommendation."""

    id: Text
    rule: Text
    state: AdviceState
    verdict: Verdict
    knob: Text | None
    current: Setting
    recommended: Setting
    flag: Text | None
    severity: Severity
    confidence: Confidence
    confidence_basis: Text
    reason: Text
    evidence: list[EvidenceJson]
    prediction: list[PredictionJson]
    verify: Text
    undo: Text
    options: list[dict[str, Option]]
    title: Text = ""
    trial: Text = ""


class FindingJson(_Model):
    """A rule that held and asks for no change."""

    rule: Text
    title: Text
    evidence: list[EvidenceJson]


class NeedJson(_Model):
    """A fact that a rule lacked, and why nobody could tell it."""

    fact: Text
    reason: Text


class UndeterminedJson(_Model):
    """A rule that could not be decided."""

    rule: Text
    needs: list[NeedJson]


class ClosestJson(_Model):
    """The failed condition that came closest; `distance` is relative to its threshold."""

    condition: Text
    value: Value
    distance: Number
    low: Number = None
    high: Number = None


class NotFiredJson(_Model):
    """A rule that did not hold."""

    rule: Text
    closest: ClosestJson


class RolloutJson(_Model):
    """New settings are passing through."""

    reason: Text
    refuses_ceilings: bool


class ObservedJson(_Model):
    """What the figures rest on: requests in a log, requests given in a file, engines, and since when they run so.

    epoch_start: since when the last of the engines that are sized runs so, and why not for longer; measured_since: the
    first of them.
    """

    logged_requests: int | None = None
    given_requests: int | None = None
    engines: int = 0
    epoch_start: str | None = None
    epoch_cause: EpochCause | None = None
    measured_since: str | None = None
    rollout: RolloutJson | None = None


class LengthPictureJson(_Model):
    """Total tokens of requests in bins: one edge more than shares, which sum to 1."""

    edges: list[float]
    shares: list[float]
    requests: int
    p999_tokens: Number
    proposal_tokens: Number
    limit_tokens: Number
    source: Text


class CurvePointJson(_Model):
    """Latency at one concurrency."""

    concurrency: float
    seconds: float
    requests: float


class CurvePictureJson(_Model):
    """Seconds a token over concurrency; `line` is base and slope in seconds."""

    points: list[CurvePointJson]
    line: tuple[float, float] | None
    objective_seconds: Number
    memory_ceiling: Number
    latency_ceiling: Number
    cap: Number
    next_cap: Number
    source: Text


class PicturesJson(_Model):
    """The figures of the charts; null where there is nothing to draw."""

    lengths: LengthPictureJson | None = None
    curve: CurvePictureJson | None = None


class DifferenceJson(_Model):
    """One setting on both sides."""

    setting: Text
    canary: Annotated[bool | int | float | str | None, BeforeValidator(_carried)]
    siblings: Annotated[bool | int | float | str | None, BeforeValidator(_carried)]


class ReadingJson(_Model):
    """One figure on both sides over their common hours; `noise` is how far apart they may be without meaning it."""

    metric: Text
    unit: Text
    canary: Number
    siblings: Number
    noise: Number
    outcome: ComparedTo
    why: Text


class CanaryJson(_Model):
    """Replicas that run with other settings than the rest of their deployment, and what that did."""

    instances: list[Text]
    since: str | None
    differences: list[DifferenceJson]
    hours: int
    readings: list[ReadingJson]


class DeploymentJson(_Model):
    """Everything about one deployment. `advice[0]` is the one to act on."""

    name: Text
    engine: Text
    engine_version: Text | None
    replicas: int | None
    workload: Workload
    status: Status
    slo: SloJson
    flags: dict[Text, FlagJson]
    facts: dict[str, FactJson]
    advice: list[AdviceJson]
    findings: list[FindingJson]
    undetermined: list[UndeterminedJson]
    not_fired: list[NotFiredJson]
    observed: ObservedJson = ObservedJson()
    pictures: PicturesJson = PicturesJson()
    canaries: list[CanaryJson] = []


class Document(_Model):
    """The whole document."""

    schema_version: Literal["1"] = "1"
    generated_at: str
    window: WindowJson
    sources: list[SourceJson]
    deployments: list[DeploymentJson]
