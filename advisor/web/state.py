"""What the pages show, as the daemon offers it. Every call answers at once from what is known; none evaluates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from advisor.domain.life import AdviceRecord, TrackRecord
from advisor.domain.report import DeploymentReport, Report


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the advice can be relied on now. `reason`: one line for people why not; empty while it can."""

    ready: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Past:
    """What is remembered of one deployment.

    trends: facts over time, (UNIX seconds, value) oldest first. collecting_until: when it will have been watched for
    long enough, in UNIX seconds; None when it was.
    """

    records: tuple[AdviceRecord, ...] = ()
    trends: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    collecting_until: float | None = None


class WebState(Protocol):
    """Called from threads of the server, several at a time."""

    def report(self) -> tuple[float, Report] | None:
        """The latest evaluation and its time in UNIX seconds; None before the first one.

        In outline: of each deployment what it is, what runs and what is advised; no facts, charts, or silent rules.
        """

    def deployments(self) -> Iterator[DeploymentReport]:
        """Everything about each deployment of the latest evaluation, one after the other, never all at once."""

    def deployment(self, name: str) -> DeploymentReport | None:
        """Everything about the deployment of this name; None when there is none."""

    def past(self, name: str) -> Past:
        """What is remembered of the deployment of this name."""

    def collecting(self) -> Mapping[str, float]:
        """Until when (UNIX seconds) each deployment that is watched too briefly yet is collecting."""

    def records(self) -> tuple[AdviceRecord, ...]:
        """Every piece of advice that is remembered, ended ones included."""

    def track_records(self) -> tuple[TrackRecord, ...]:
        """How the advice of each rule did once it was followed."""

    def health(self) -> Health:
        """Ready once the first evaluation is done, until it is too old."""

    def metrics(self) -> bytes:
        """The advisor's own metrics in Prometheus' text format 0.0.4."""
