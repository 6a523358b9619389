"""The figures of the charts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import Evidence, LatencySample, Slo, Window
from advisor.domain.sweep import Sweep, SweepPoint
from advisor.estimates.pictures import MOST_POINTS, pictures
from tests.unit.estimates.evidence import joint, log, sheet

BARE = Evidence("x", Window(0.0, 3600.0))


def _sample(concurrency: list[int], tpot: list[float], counts: list[int]) -> LatencySample:
    levels = np.array(concurrency)
    return LatencySample(np.full(levels.size, 0.1), np.array(tpot), levels, levels, np.array(counts))


def test_nothing_known_draws_nothing() -> None:
    drawn = pictures(BARE, sheet())
    assert drawn.lengths is None
    assert drawn.curve is None


def test_the_length_bins_hold_every_request_once() -> None:
    evidence = replace(BARE, joint=joint((100, 20, 3), (5000, 100, 1)))
    drawn = pictures(evidence, sheet(recommended_max_model_len=7168, max_model_len=16384)).lengths
    assert drawn is not None
    assert (drawn.requests, drawn.proposal_tokens, drawn.limit_tokens) == (4, 7168, 16384)
    assert sum(drawn.shares) == pytest.approx(1.0)
    # 120 tokens is the shortest: three quarters of the requests lie in the first bin, the rest in the last.
    assert drawn.shares[0] == pytest.approx(0.75)
    assert drawn.shares[-1] == pytest.approx(0.25)


def test_requests_of_one_length_are_one_bin_not_a_crash() -> None:
    drawn = pictures(replace(BARE, joint=joint((10, 1, 7))), sheet()).lengths
    assert drawn is not None
    assert sum(drawn.shares) == pytest.approx(1.0)


def test_live_points_are_means_by_concurrency() -> None:
    logged = log(joint((10, 5, 4)), latency=_sample([2, 2, 4], [0.010, 0.020, 0.050], [3, 1, 2]))
    curve = pictures(replace(BARE, log=logged), sheet(max_num_seqs=16)).curve
    assert curve is not None
    # Two sequences: (3 x 10 + 1 x 20) / 4 = 12.5 ms.
    assert [(p.concurrency, p.requests) for p in curve.points] == [(2, 4), (4, 2)]
    assert [p.seconds for p in curve.points] == pytest.approx([0.0125, 0.05])
    assert curve.cap == 16


def test_many_levels_are_grouped() -> None:
    levels = list(range(1, 301))
    logged = log(joint((10, 5, 4)), latency=_sample(levels, [0.01] * 300, [1] * 300))
    curve = pictures(replace(BARE, log=logged), sheet()).curve
    assert curve is not None
    assert len(curve.points) <= MOST_POINTS + 1


def test_a_sweep_is_drawn_instead_of_live_traffic() -> None:
    sweep = Sweep((SweepPoint(8, 1 / 62), SweepPoint(40, 1 / 26)), "stated")
    evidence = replace(BARE, sweep=sweep, slo=Slo(tpot_seconds=0.04))
    curve = pictures(evidence, sheet(latency_ceiling=40, memory_ceiling_guaranteed=47)).curve
    assert curve is not None
    assert [p.concurrency for p in curve.points] == [8, 40]
    assert (curve.objective_seconds, curve.latency_ceiling, curve.memory_ceiling) == (0.04, 40, 47)
