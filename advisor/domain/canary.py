"""Replicas whose settings differ from the rest of their deployment: what differs, and what both sides did at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # evidence carries arrays, and one line of status must not wait for numpy
    from .evidence import FlagValue

ComparedTo = Literal["lower", "higher", "same", "unknown"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting on both sides: a flag under vLLM's name, `version`, or `pool_tokens`."""

    setting: str
    canary: FlagValue
    siblings: FlagValue


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure on both sides over their common hours: `metric` in `unit`, each side the mean of its hourly values.

    noise: how far apart the two may be without meaning anything. outcome: the canary's figure against its siblings';
    `same` is no difference beyond noise, `unknown` has its reason in `why`.
    """

    metric: str
    unit: str
    canary: float | None
    siblings: float | None
    noise: float | None
    outcome: ComparedTo
    why: str = ""


@dataclass(frozen=True, slots=True)
class Canary:
    """Replicas of one deployment that run alike, and unlike the others, since `since` (UNIX seconds).

    hours: whole hours in which both sides were read.
    """

    instances: tuple[str, ...]
    since: float
    differences: tuple[Difference, ...]
    hours: int
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class Rollout:
    """New settings are passing through a deployment. `refuses_ceilings`: no side of it has run long enough to size."""

    reason: str
    refuses_ceilings: bool
