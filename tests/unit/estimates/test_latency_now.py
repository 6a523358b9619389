"""Whether the objectives hold in the last hour."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, Slo, Window, as_floats
from advisor.estimates.latency_now import attainment_last_hour
from tests.unit.estimates.evidence import NOTHING, engine

BOTH = Slo(tpot_seconds=0.05, ttft_seconds=2.0)
EDGES = as_floats([0.05, 1.0])


def day(tpot_missed: float, ttft_missed: float = 0.0, requests: float = 60.0) -> EngineSeries:
    """A day of minutes of so many requests; in the last hour these shares miss their targets."""
    start = as_floats(60.0 * np.arange(1440))
    last = start >= 86_400 - 3_600

    def counted(missed: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        late = np.where(last, missed * requests, 0.0)
        return np.stack([requests - late, late, np.zeros_like(late)], axis=1)

    times = as_floats([2.0, 10.0])
    windows = CounterWindows(
        start, start + 60, {}, tpot_edges=EDGES, tpot=counted(tpot_missed), ttft_edges=times, ttft=counted(ttft_missed)
    )
    return engine(counters=windows)


def read(*engines: EngineSeries, slo: Slo = BOTH) -> Evidence:
    return replace(NOTHING, engines=engines, slo=slo, window=Window(0.0, 86_400.0))


def test_only_the_last_hour_counts() -> None:
    told = attainment_last_hour(read(day(0.08), slo=Slo(tpot_seconds=0.05)))
    assert (told.value, told.n) == pytest.approx((0.92, 3_600))


def test_of_two_targets_the_share_that_met_both_is_bounded() -> None:
    told = attainment_last_hour(read(day(0.08, 0.01)))
    assert told.value is None
    assert (told.low, told.high) == pytest.approx((0.91, 0.92))


def test_all_engines_count() -> None:
    told = attainment_last_hour(read(day(0.08), day(0.0), slo=Slo(tpot_seconds=0.05)))
    assert told.value == pytest.approx(0.96)


def test_a_target_between_two_edges_leaves_it_open() -> None:
    told = attainment_last_hour(read(day(0.08), slo=Slo(tpot_seconds=0.5)))
    assert (told.low, told.high) == pytest.approx((0.92, 1.0))


@pytest.mark.parametrize(
    "evidence", [read(day(0.08), slo=Slo()), read(engine()), read(day(0.5, requests=1.0)), read(day(0.08), engine())]
)
def test_without_targets_histograms_or_requests_nobody_knows(evidence: Evidence) -> None:
    known = len(evidence.engines) == 2
    assert attainment_last_hour(evidence).is_unknown is not known
