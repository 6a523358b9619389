"""What the formats of load generators share: bounded figures out of foreign JSON, and concurrency of open-loop runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from advisor.domain.evidence import FlagValue
from advisor.domain.sweep import SweepPoint

Run = Mapping[str, Any]

LEAST_COMPLETED = 0.9
LARGEST = 1e15
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class RanOn:
    """What a run was made on, as far as its result says: the model, flags under vLLM's names, other conditions.

    `conditions` are words that must be the same in all runs of one sweep: lengths, hardware, sharding, data set.
    """

    model: str | None = None
    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SweepFormat:
    """How one tool's results are read.

    runs: the load levels in a parsed file, empty when it is not of this tool. point: one of them as a point; raises
    ValueError with the reason why it cannot be one. ran_on: what it was made on.
    """

    name: str
    runs: Callable[[Any], Iterable[Run]]
    point: Callable[[Run], SweepPoint]
    ran_on: Callable[[Run], RanOn]


def at(run: Run, *keys: str) -> Any:
    """What lies under nested keys, or None."""
    value: Any = run
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def figure(run: Run, *keys: str) -> float | None:
    """A positive number of a plausible size under nested keys, or None."""
    value = at(run, *keys)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < LARGEST else None


def milliseconds(run: Run, *keys: str) -> float | None:
    """A figure in milliseconds, as seconds."""
    value = figure(run, *keys)
    return None if value is None else value / 1000


def name(run: Run, *keys: str) -> str | None:
    """A name under nested keys, cut to a length that can be shown; None where there is none."""
    value = at(run, *keys)
    return value[:LONGEST_NAME] if isinstance(value, str) and value else None


def decoding_sequences(gap_seconds: float, output_tokens: float, requests: float, duration_seconds: float) -> float:
    """Mean number of sequences that decoded during a run: all gaps between tokens together / the run's duration.

    Little's law on decoding. 500 requests with 366,152 tokens and a mean gap of 9.83 ms in 41.73 s: 86.1. It includes
    the ramps at both ends, so it is rather too low, and a ceiling read off it rather too careful.
    """
    return gap_seconds * (output_tokens - requests) / duration_seconds


def mean_of(total: float | None, requests: float) -> float | None:
    """Of one request, or None where no total is told: 1,000,000 tokens of 500 requests are 2,000."""
    return None if total is None else total / requests


def check_completed(completed: float | None, sent: float | None) -> float:
    """How many requests completed. Raises ValueError when few did: latencies of survivors say little."""
    if completed is None:
        raise ValueError("no request completed")
    if sent is not None and completed < LEAST_COMPLETED * sent:
        raise ValueError(f"only {completed:g} of {sent:g} requests completed")
    return completed
