"""What the charts of a deployment show, as figures: the same for the terminal, the page and the pictures on Slack."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LengthPicture:
    """Total tokens of requests in bins: `edges` has one entry more than `shares`, which sum to 1. Marks in tokens."""

    edges: tuple[float, ...]
    shares: tuple[float, ...]
    requests: int
    p999_tokens: float | None
    proposal_tokens: float | None
    limit_tokens: float | None
    source: str


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Latency at one concurrency: `seconds` a token, told by `requests` requests (or windows)."""

    concurrency: float
    seconds: float
    requests: float


@dataclass(frozen=True, slots=True)
class CurvePicture:
    """Seconds a token over concurrency. `line` is (base, slope) in seconds; ceilings, cap and next cap in sequences."""

    points: tuple[CurvePoint, ...]
    line: tuple[float, float] | None
    objective_seconds: float | None
    memory_ceiling: float | None
    latency_ceiling: float | None
    cap: float | None
    next_cap: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Pictures:
    """The charts of one deployment; None where the evidence does not allow one."""

    lengths: LengthPicture | None = None
    curve: CurvePicture | None = None
