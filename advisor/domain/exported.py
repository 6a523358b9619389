"""Lengths of requests as the host agent counts and exposes them: which quantities, which outcomes, which buckets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from .histogram import Buckets, Floats
from .length_history import bin_of, upper_edge

Quantity = Literal["prompt", "output", "total", "declared", "refused"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
"""Prompt and output tokens of served requests, both together, prompt plus what the client asked for at most, and what
requests that were refused for their length would have needed."""

Outcome = Literal["served", "cut", "refused_length", "failed", "without_usage"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""Every request has one. `cut`: served, but ended with reason `length`."""

FAMILIES: Mapping[Quantity, str] = {quantity: f"advisor_request_{quantity}_tokens" for quantity in QUANTITIES}
REQUESTS = "advisor_requests"
"""Names of the metrics: a histogram for each quantity, and the counter `advisor_requests_total`."""

OTHER_MODELS = "(others)"
"""The label of all models that have no series of their own."""

LONGEST_TOKENS = 1 << 20
EDGES: Floats = np.unique(upper_edge(np.arange(bin_of(np.array([LONGEST_TOKENS]))[0] + 1)))
"""Upper edges of the buckets: whole numbers, sixteen an octave (4.4 % apart), 1 to 1,048,576. Powers of two are among
them, and so most limits. These are the buckets of a native histogram of schema 4."""


@dataclass(frozen=True, eq=False, slots=True)
class LengthCounts:
    """What was counted of one model since counting began. `histograms`: on EDGES."""

    histograms: Mapping[Quantity, Buckets]
    outcomes: Mapping[Outcome, float]

    @classmethod
    def nothing(cls) -> LengthCounts:
        """Every count is zero."""
        return cls(
            {quantity: Buckets(EDGES, np.zeros(EDGES.size + 1), 0.0) for quantity in QUANTITIES},
            dict.fromkeys(OUTCOMES, 0),
        )

    def plus(self, more: LengthCounts) -> LengthCounts:
        """Both together."""
        return LengthCounts(
            {q: _sum(one, more.histograms[q]) for q, one in self.histograms.items()},
            {outcome: count + more.outcomes[outcome] for outcome, count in self.outcomes.items()},
        )


def _sum(one: Buckets, other: Buckets) -> Buckets:
    return Buckets(EDGES, one.counts + other.counts, (one.total or 0.0) + (other.total or 0.0))


@dataclass(frozen=True, eq=False, slots=True)
class ExportedLengths:
    """What the host agents counted of one deployment over a window.

    outcomes: requests by how they ended. slots: total tokens by time, slots x (edges of the total's histogram + 1);
    each is `slot_seconds` wide and begins at `slot_start` (UNIX seconds).
    """

    histograms: Mapping[Quantity, Buckets]
    outcomes: Mapping[Outcome, float]
    slot_seconds: float
    slot_start: Floats
    slots: Floats
    source: str

    @property
    def requests(self) -> float:
        """All requests, however they ended."""
        return sum(self.outcomes.values())

    @property
    def span_seconds(self) -> float:
        """From the beginning of the first slot to the end of the last."""
        return float(self.slot_start[-1] - self.slot_start[0]) + self.slot_seconds if self.slot_start.size else 0.0
