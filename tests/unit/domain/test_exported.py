"""The buckets of the host agent."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.domain.exported import EDGES, FAMILIES, OUTCOMES, QUANTITIES, LengthCounts
from advisor.domain.histogram import Buckets


def test_edges_are_whole_narrow_and_hold_the_usual_limits() -> None:
    assert (EDGES[0], EDGES[-1]) == (1, 2**20)
    assert not (EDGES % 1).any()
    steps = np.diff(EDGES)
    # 2^(1/16) = 1.0443; where that is less than a token, a bucket holds one length, or two next to each other
    assert (steps <= np.maximum(0.0443 * EDGES[:-1] + 1, 1)).all()
    assert {2.0**power for power in range(21)} <= set(EDGES.tolist())
    # sixteen an octave over the fifteen octaves from 32 on
    assert EDGES[EDGES >= 32].size == 15 * 16 + 1


def test_every_quantity_has_a_family() -> None:
    assert FAMILIES["total"] == "advisor_request_total_tokens"
    assert tuple(FAMILIES) == QUANTITIES == ("prompt", "output", "total", "declared", "refused")


def test_counts_add_up() -> None:
    counts = np.zeros(EDGES.size + 1)
    counts[7] = 3
    some = LengthCounts(
        {q: Buckets(EDGES, counts, 24.0) for q in QUANTITIES}, {outcome: n for n, outcome in enumerate(OUTCOMES)}
    )
    both = LengthCounts.nothing().plus(some).plus(some)
    assert both.histograms["total"].counts[7] == both.histograms["total"].n == 6
    assert both.histograms["total"].mean == pytest.approx(8.0)
    assert both.outcomes == {"served": 0, "cut": 2, "refused_length": 4, "failed": 6, "without_usage": 8}
