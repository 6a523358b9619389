"""What the pages show, as the daemon offers it. Every call answers at once from what is known; none evaluates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from advisor.domain.life import AdviceRecord, TrackRecord
from advisor.domain.report import Report


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the advice can be relied on now. `reason`: one line for people why not; empty while it can."""

    ready: bool
    reason: str = ""


class WebState(Protocol):
    """Called from threads of the server, several at a time."""

    def report(self) -> tuple[float, Report] | None:
        """The latest evaluation and its time in UNIX seconds; None before the first one."""

    def records(self) -> tuple[AdviceRecord, ...]:
        """Every piece of advice that is remembered, ended ones included."""

    def track_records(self) -> tuple[TrackRecord, ...]:
        """How the advice of each rule did once it was followed."""

    def health(self) -> Health:
        """Ready once the first evaluation is done, until it is too old."""

    def metrics(self) -> bytes:
        """The advisor's own metrics in Prometheus' text format 0.0.4."""
