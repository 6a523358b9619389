"""Load tests at rising concurrency: what they measured, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # evidence holds a sweep, and its flags have the values of evidence
    from .evidence import FlagValue

SloStatistic = Literal["mean", "p99"]


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One load level of a sweep. Seconds; None is not reported.

    computed: `concurrency` was not set but follows from throughput and latency (Little's law).
    at_most: the time per token was not reported; it is no more than `tpot_seconds`, so the level can hold but not fail.
    prompt_tokens, output_tokens: means of its requests.
    """

    concurrency: float
    tpot_seconds: float
    ttft_seconds: float | None = None
    requests_per_second: float | None = None
    statistic: SloStatistic = "mean"
    requests: int | None = None
    computed: bool = False
    at_most: bool = False
    prompt_tokens: float | None = None
    output_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """A load test of this deployment at rising concurrency, and where it came from.

    model, engine_version, flags: what it was run on, as far as its results say so. in_flight: concurrency is what a
    load generator kept in flight, which may be more than the engine had seats for; else it is sequences that ran.
    """

    points: tuple[SweepPoint, ...]
    source: str
    model: str | None = None
    engine_version: str | None = None
    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    in_flight: bool = False
