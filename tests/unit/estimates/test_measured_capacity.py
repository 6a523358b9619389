"""What one engine was seen to serve within its objectives, against windows whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, Slo, as_floats
from advisor.estimates.measured_capacity import Served, served_within, steady_slot, wilson_lower
from tests.unit.estimates.evidence import NOTHING, engine, gauges

TPOT = Slo(tpot_seconds=0.05, percentile=99.0)


def slots(*rows: tuple[float, float], tpot_edge: float = 0.05, running: float = 5.0) -> EngineSeries:
    """5-minute windows of so many requests a second, of which such a share is within `tpot_edge`."""
    edges = as_floats(300.0 * np.arange(len(rows) + 1))
    n = np.array([rate * 300 for rate, _ in rows])
    within = np.array([n_slot * share for n_slot, (_, share) in zip(n, rows, strict=True)])
    counted = np.stack([within, n - within, np.zeros(len(rows))], axis=1)
    bounds = as_floats([tpot_edge, 10.0])
    counters = CounterWindows(edges[:-1], edges[1:], {"finished": n}, tpot_edges=bounds, tpot=counted)
    return engine(gauges(np.full(len(rows), running), every=300.0), counters)


def seen(*engines: EngineSeries, slo: Slo = TPOT) -> Evidence:
    return replace(NOTHING, engines=engines, slo=slo)


def test_wilson() -> None:
    # p = 0.995, n = 2,000, z = 1.2816: centre 0.995411, spread 0.002062, over 1.000821
    assert wilson_lower(0.995, 2_000) == pytest.approx((0.995411 - 0.002062) / 1.000821, abs=2e-6)


def test_the_largest_rate_that_holds_and_the_first_that_does_not() -> None:
    # 1,500 requests a slot at 5/s, 3,000 at 10/s, 4,500 at 15/s
    engines = [slots((5, 1.0), (10, 0.998), (15, 0.95)), slots((5, 0.999), (10, 0.997), (15, 0.93))]
    assert served_within(seen(*engines)) == Served(10.0, 15.0, 18_000)


def test_what_never_failed_has_no_end() -> None:
    assert served_within(seen(slots((5, 1.0), (10, 0.998)))) == Served(10.0, None, 4_500)


def test_a_lucky_slot_above_an_unlucky_one_does_not_hold() -> None:
    found = served_within(seen(slots((5, 1.0), (10, 0.95), (12, 1.0))))
    assert found is not None
    assert found.holds == 5.0
    assert found.fails == 10.0


def test_quiet_slots_are_pooled_until_they_say_something() -> None:
    # 60 requests a slot: 17 slots are needed for 1,000
    assert served_within(seen(slots(*[(0.2, 1.0)] * 16))) is None
    found = served_within(seen(slots(*[(0.2, 1.0)] * 40)))
    assert found is not None
    assert found.holds == pytest.approx(0.2)
    assert found.fails is None
    assert found.requests == 2_400


@pytest.mark.parametrize(
    "evidence",
    [
        seen(slots((10, 0.9), (15, 0.8))),  # never held
        seen(slots((10, 1.0)), slo=Slo()),  # nothing is promised
        seen(slots((10, 1.0), tpot_edge=0.06)),  # 60 ms are not within 50 ms
        seen(slots((10, 1.0)), slo=Slo(tpot_seconds=0.05, ttft_seconds=1.0)),  # half of the promise is not measured
        seen(engine()),
    ],
)
def test_what_was_not_seen_to_hold_is_no_capacity(evidence: Evidence) -> None:
    assert served_within(evidence) is None


def test_of_two_objectives_both_must_be_met() -> None:
    one = slots((10, 0.997))
    w = one.windows
    both = replace(w, ttft_edges=w.tpot_edges, ttft=w.tpot)
    slo = Slo(tpot_seconds=0.05, ttft_seconds=0.05, percentile=99.0)
    # 0.3 % miss one and 0.3 % the other: 99.4 % surely meet both, which 3,000 requests tell from 99 %
    assert served_within(seen(replace(one, windows=both), slo=slo)) == Served(10.0, None, 3_000)
    stricter = replace(slo, percentile=99.5)
    assert served_within(seen(replace(one, windows=both), slo=stricter)) is None


@pytest.mark.parametrize(
    ("rate", "running", "seconds"),
    [
        (10.0, 5.0, 300.0),  # 400 requests in 40 s
        (0.25, 5.0, 1800.0),  # 400 / 0.25 = 1,600 s
        (1.0, 150.0, 600.0),  # 150 s each: four stays
        (0.1, 5.0, 3600.0),  # 4,000 s, but hours change of themselves
        (0.013, 5.0, None),  # 47 an hour
    ],
)
def test_slots_are_so_long_that_chance_is_no_load(rate: float, running: float, seconds: float | None) -> None:
    assert steady_slot(seen(slots(*[(rate, 1.0)] * 12, running=running))) == seconds
    assert steady_slot(seen(engine())) is None


def test_scrapes_that_failed_do_not_count() -> None:
    read = slots(*[(1.0, 1.0)] * 12, running=150.0)
    gone = np.where(np.arange(12) < 6, np.nan, read.samples.running)
    assert steady_slot(seen(replace(read, samples=replace(read.samples, running=gone)))) == 600.0
    assert steady_slot(seen(replace(read, samples=replace(read.samples, running=np.full(12, np.nan))))) is None


def test_what_chance_let_finish_is_not_taken_for_a_load_that_held() -> None:
    # 24 engines, a day each at 0.25/s: the busiest 1,000 of some 500,000 requests came in slots of 1.4 times the load
    rng = np.random.default_rng(7)
    fleet = seen(*(slots(*[(n / 300, 1.0) for n in rng.poisson(75, 288)]) for _ in range(24)))
    short, steady = served_within(fleet), served_within(fleet, steady_slot(fleet) or 0.0)
    assert short is not None
    assert steady is not None
    assert short.holds / 0.25 == pytest.approx(1.4, abs=0.05)
    assert steady.holds / 0.25 < 1.16
