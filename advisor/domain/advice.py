"""What comes out: findings, advice, and the rules that could not be decided or did not fire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["critical", "warning", "opportunity", "info"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "opportunity", "info")
Verdict = Literal[
    "change_flag",
    "add_replicas",
    "remove_replicas",
    "reshard",
    "split_workload",
    "run_sweep",
    "fix_instrumentation",
    "investigate",
]
Confidence = Literal["high", "medium", "low"]
AdviceState = Literal["open", "queued", "snoozed", "rejected", "applied", "verified", "regressed", "superseded"]
"""The arbiter says open or queued; the others come with the memory of a daemon (domain/life.py)."""
Status = Literal["advice", "ok", "cannot_tell", "no_data"]


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """One condition of a rule with the figure that decided it.

    bound: which end of a bounded fact `value` is, its `low` or its `high`; None where the fact is known.
    """

    fact: str
    value: float | str | None
    unit: str
    condition: str
    bound: Literal["low", "high"] | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a metric should read after the change; the next window can refute it."""

    metric: str
    now: float | None
    low: float | None
    high: float | None
    unit: str


@dataclass(frozen=True, slots=True)
class Advice:
    """One recommendation, with everything needed to judge, try, verify and undo it.

    trial: how to try it on one replica first, what that costs, and what a canary already shows; may be empty.
    """

    id: str
    rule: str
    title: str
    state: AdviceState
    verdict: Verdict
    knob: str | None
    current: float | None
    recommended: float | None
    flag: str | None
    severity: Severity
    confidence: Confidence
    confidence_basis: str
    reason: str
    evidence: tuple[EvidenceLine, ...]
    prediction: tuple[Prediction, ...]
    verify: str
    undo: str
    options: tuple[Mapping[str, object], ...] = ()
    trial: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that held and asks for no change."""

    rule: str
    title: str
    evidence: tuple[EvidenceLine, ...]


@dataclass(frozen=True, slots=True)
class Need:
    """A fact that a rule wanted and nobody could tell."""

    fact: str
    reason: str


@dataclass(frozen=True, slots=True)
class Undetermined:
    """A rule that could not be decided, and what it would take."""

    rule: str
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class NotFired:
    """A rule that did not hold: the failed condition that came closest, and how far it is from holding.

    `distance` is relative to the threshold: 0.5 means that the value would have to change by half the threshold.
    `low` and `high` are the bounds of what is bounded. A rule that held and gave way has the reason for a condition.
    """

    rule: str
    condition: str
    value: float | str | None
    distance: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything the rules say of one deployment."""

    status: Status
    advice: tuple[Advice, ...] = ()
    findings: tuple[Finding, ...] = ()
    undetermined: tuple[Undetermined, ...] = ()
    not_fired: tuple[NotFired, ...] = field(default=())
