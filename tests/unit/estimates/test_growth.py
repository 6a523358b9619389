"""How demand grows from week to week, and what replicas are therefore to carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import as_floats
from advisor.domain.fact import Fact, computed
from advisor.domain.policy import Policy
from advisor.estimates import growth
from advisor.estimates.demand import Arrivals
from tests.unit.estimates.evidence import NOTHING, bounded, sheet

HOUR = 3600.0
STEPS = (1.10, 1.12, 1.08, 1.11, 1.09, 1.10, 1.10)
NOTHING_READ = Arrivals(np.empty(0), np.empty(0))


def two_weeks(steps: Sequence[float], missing: Sequence[int] = ()) -> tuple[tuple[float, float], ...]:
    """A week that swings by day and night and rests on its last two days, and one with each day so many times that."""
    before = [(2.0 if hour // 24 < 5 else 0.5) * (1.5 if 8 <= hour % 24 < 20 else 0.5) for hour in range(168)]
    rates = before + [rate * steps[hour // 24] for hour, rate in enumerate(before)]
    return tuple((hour * HOUR, rate) for hour, rate in enumerate(rates) if hour not in missing)


def facts(hours: tuple[tuple[float, float], ...], arrivals: Arrivals | None = None, **known: float) -> dict[str, Fact]:
    return growth.facts(replace(NOTHING, demand_hours=hours), arrivals or NOTHING_READ, sheet(**known))


def test_each_day_is_compared_with_the_same_day_a_week_before() -> None:
    # ln of the seven ratios: mean 0.09525, sd 0.01174; t(0.975, 6) = 2.4469: e^(0.09525 -+ 0.01085)
    told = facts(two_weeks(STEPS))["demand_growth_per_week"]
    assert (told.value, told.low, told.high, told.n) == pytest.approx((1.09994, 1.08806, 1.11194, 7), rel=1e-5)


def test_a_hole_in_one_day_leaves_six() -> None:
    assert facts(two_weeks(STEPS, missing=range(190, 210)))["demand_growth_per_week"].n == 6
    told = facts(two_weeks(STEPS, missing=range(170, 240)))["demand_growth_per_week"]
    assert "needs two weeks of arrivals" in (told.unknown or "")
    assert facts(())["demand_growth_per_week"].is_unknown


def test_what_was_read_now_counts_before_what_is_remembered() -> None:
    # the last day is read again in 5-minute slots, twice as high: its ratio is 2.2
    last = np.arange(312 * 12, 336 * 12)
    hours = two_weeks(STEPS)
    slots = Arrivals(as_floats(last * 300.0), np.array([2 * hours[slot // 12][1] for slot in last]))
    told = facts(hours, slots)["demand_growth_per_week"]
    assert told.value == pytest.approx(np.exp(np.mean(np.log([*STEPS[:-1], 2.2]))))


def test_sure_growth_and_imbalance_are_provided_for() -> None:
    # 10 x 1.09994 x 1.3
    grown = facts(two_weeks(STEPS), demand_requests_per_second_p99=10.0, replica_imbalance=1.3)["demand_to_carry"]
    assert grown.value == pytest.approx(14.299, rel=1e-4)
    assert grown.source == "10 requests/s x 1.10 growth of a week x 1.30 on the busiest replica"
    # more imbalance than 1.3 is the router's to mend, not replicas'
    routed = facts((), demand_requests_per_second_p99=10.0, replica_imbalance=3.07)["demand_to_carry"]
    assert routed.value == pytest.approx(13.0)
    # an uneven week is no growth, nor is a fall; a little imbalance is chance
    for steps in ((0.7, 1.6, 0.8, 1.5, 1.0, 1.4, 0.9), (0.8,) * 7):
        told = facts(two_weeks(steps), demand_requests_per_second_p99=10.0, replica_imbalance=1.05)["demand_to_carry"]
        assert told.value == 10.0


def test_batch_work_waits_for_its_peaks() -> None:
    known = sheet(demand_requests_per_second_p99=10.0, demand_requests_per_second_mean=6.0)
    batch = replace(NOTHING, workload="batch", demand_hours=two_weeks((1.0,) * 7))
    assert growth.facts(batch, NOTHING_READ, known)["demand_to_carry"].value == 6.0


def weeks(growing: Fact, pressure: float | None) -> Fact:
    return growth.weeks_left(sheet(demand_growth_per_week=growing, demand_over_capacity=pressure))


def test_how_long_the_replicas_last() -> None:
    # ln(1 / 0.6) / ln(1.1) = 5.36 weeks
    ten_percent = computed(1.1, low=1.05, high=1.15, source="days")
    assert weeks(ten_percent, 0.6).value == pytest.approx(5.3596, rel=1e-4)
    assert weeks(ten_percent, 1.2).value == 0.0
    assert weeks(computed(1.1, low=0.95, high=1.3, source="days"), 0.6).is_unknown
    assert weeks(computed(1.001, low=1.0005, high=1.002, source="days"), 0.6).is_unknown
    assert weeks(ten_percent, None).is_unknown


def test_a_spare_replica_is_one_more() -> None:
    spare = Policy(spare_replicas=1)
    told = growth.with_spare(computed(3, source="demand"), spare)
    assert (told.value, told.source) == (4, "demand; 1 to spare")
    assert growth.with_spare(bounded(2, 4), spare).low == 3
    assert growth.with_spare(computed(3, source="demand"), Policy()).value == 3


@given(st.lists(st.floats(0.2, 5.0), min_size=7, max_size=7), st.floats(0.01, 1e4), st.floats(1.0, 8.0))
def test_nothing_is_ever_carried_below_what_arrives(steps: list[float], demand: float, uneven: float) -> None:
    known = sheet(demand_requests_per_second_p99=demand, replica_imbalance=uneven)
    hours = replace(NOTHING, demand_hours=two_weeks(steps))
    told = growth.facts(hours, NOTHING_READ, known)["demand_to_carry"].number
    assert told is not None
    assert told >= demand


def test_a_launch_is_no_rate_of_growth() -> None:
    # 200 times the week before, every day: the next week is not provided for 200 times over
    told = facts(two_weeks([200.0] * 7), demand_requests_per_second_p99=4.0)
    assert told["demand_growth_per_week"].value == pytest.approx(200.0)
    assert told["demand_to_carry"].value == 4.0
