"""The life of a piece of advice, and what became of its prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .advice import Advice, AdviceState

LifeState = AdviceState
LIVE: tuple[LifeState, ...] = ("open", "queued", "snoozed", "rejected", "applied")
"""States in which a piece of advice can still change by itself."""


@dataclass(frozen=True, slots=True)
class Score:
    """One prediction held against what happened. `held` is None where the two windows cannot be compared.

    low, high: what was predicted; before, after: the metric in the window before the change and in the one after, or
    on the same hours of both where `hours` says how many were compared; then low and high are for these hours, too.
    """

    metric: str
    unit: str
    low: float | None
    high: float | None
    before: float | None
    after: float | None
    held: bool | None
    note: str = ""
    hours: int | None = None


@dataclass(frozen=True, slots=True)
class AdviceRecord:
    """One piece of advice from its first sight to its end. Times in UNIX seconds.

    since: when it entered its state. until: the end of a snooze. reason: of a snooze, a rejection or a superseding.
    baseline: facts at the moment it was applied, the "before" of its scores.
    """

    deployment: str
    advice: Advice
    state: LifeState
    since: float
    first_seen: float
    last_seen: float
    until: float | None = None
    reason: str | None = None
    applied_at: float | None = None
    baseline: Mapping[str, float] = field(default_factory=dict)
    scores: tuple[Score, ...] = ()

    @property
    def id(self) -> str:
        """The id of the advice, which is stable while deployment, rule and value are."""
        return self.advice.id


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """How often the advice of one rule, once followed, did what it said."""

    rule: str
    followed: int
    held: int
    regressed: int
    undecided: int
