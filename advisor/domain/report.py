"""The outcome of one evaluation: what was read and what is said of each deployment. Outlets render it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .advice import Judgement
from .canary import Canary
from .evidence import Evidence, Window
from .fact import FactSheet
from .pictures import Pictures

SourceStatus = Literal["ok", "partial", "failed"]


@dataclass(frozen=True, slots=True)
class SourceState:
    """How reading one source went. `detail` is one line for people, without secrets."""

    name: str
    status: SourceStatus
    detail: str


@dataclass(frozen=True, slots=True)
class DeploymentReport:
    """One deployment: what was observed, what follows from it, what is advised."""

    evidence: Evidence
    facts: FactSheet
    judgement: Judgement
    pictures: Pictures = field(default_factory=Pictures)
    canaries: tuple[Canary, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """One evaluation of a fleet. Times in UNIX seconds."""

    generated_at: float
    window: Window
    sources: tuple[SourceState, ...]
    deployments: tuple[DeploymentReport, ...]
