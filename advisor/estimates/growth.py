"""How demand grows from week to week, and what replicas are therefore to carry.

The last seven days are compared with the seven before, hour by hour of the week, so that a weekend is no decline. Each
day gives one ratio; their mean and its 95 % interval (Student's t over days, in logarithms) are the growth of a week.
Only growth that is sure, its whole interval above 1, is provided for, one week ahead. A fall is never extrapolated. The
busiest replica is what has to hold: imbalance is provided for, too, up to what calls for another router instead.

Worked: days at 1.10, 1.12, 1.08, 1.11, 1.09, 1.10 and 1.10 times the week before are 1.100 a week, 1.088 to 1.112.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.stats import t as student

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.hours import HOUR_SECONDS
from advisor.domain.policy import Policy

from .demand import Arrivals

DAY_HOURS, WEEK_HOURS = 24, 168
LEAST_DAYS, LEAST_HOURS_A_DAY = 6, 12
CONFIDENCE = 0.95
UNEVEN, FAULTY = 1.1, 1.3
"""Imbalance from 1.1 on is more than chance; from 1.3 on it is to be mended (health/uneven-replicas)."""
LONGEST_WEEKS, MOST_GROWTH = 52.0, 1.5
TOO_SHORT = "needs two weeks of arrivals: the service remembers them, or give a longer window (--since 14d)"


def facts(evidence: Evidence, arrivals: Arrivals, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """The growth of a week, and demand p99 with it and with the imbalance of the replicas; of batch work the mean."""
    growth = _a_week(_by_hour(evidence, arrivals))
    waits = evidence.workload == "batch"
    told = known["demand_requests_per_second_mean" if waits else "demand_requests_per_second_p99"]
    return {"demand_growth_per_week": growth, "demand_to_carry": _to_carry(told, growth, known["replica_imbalance"])}


def sure_growth(growth: Fact) -> float:
    """The growth of a week where all of its interval is above 1, else 1; also 1 beyond one half a week.

    A launch, or the return from a holiday, has a narrow interval as well: 200 times the week before is no rate at which
    the next one grows.
    """
    sure = growth.number is not None and (growth.low or 0.0) > 1
    return growth.number if sure and growth.number is not None and growth.number <= MOST_GROWTH else 1.0


def weeks_left(known: Mapping[str, Fact]) -> Fact:
    """Weeks until demand p99 exceeds what the replicas carry, ln(1 / pressure) / ln(growth): 60 %, 10 % a week, 5.4."""
    pressure, growth = known["demand_over_capacity"].number, known["demand_growth_per_week"]
    if growth.is_unknown or not pressure:
        return unknown("needs how demand grows (two weeks of arrivals) and the capacity of the replicas")
    rate = sure_growth(growth)
    left = math.inf if rate <= 1 else max(math.log(1 / pressure), 0.0) / math.log(rate)
    if left > LONGEST_WEEKS:
        return unknown("demand does not surely grow, jumps by more than half a week, or fits for longer than a year")
    return computed(left, source=f"{pressure:.0%} of capacity, {rate - 1:+.1%} a week")


def with_spare(told: Fact, policy: Policy) -> Fact:
    """So many replicas more as may fail without being felt."""
    spare = policy.spare_replicas
    if told.is_unknown or not spare:
        return told
    parts = [None if part is None else part + spare for part in (told.number, told.low, told.high)]
    return computed(parts[0], low=parts[1], high=parts[2], n=told.n, source=f"{told.source}; {spare} to spare")


def _to_carry(told: Fact, growth: Fact, imbalance: Fact) -> Fact:
    if told.number is None:
        return told
    grown, uneven = sure_growth(growth), max(imbalance.number or 1.0, 1.0)
    uneven = min(uneven, FAULTY) if uneven >= UNEVEN else 1.0
    story = f"{told.number:.3g} requests/s"
    story += f" x {grown:.2f} growth of a week" if grown > 1 else ""
    story += f" x {uneven:.2f} on the busiest replica" if uneven > 1 else ""
    return computed(told.number * grown * uneven, n=told.n, source=story)


def _by_hour(evidence: Evidence, arrivals: Arrivals) -> dict[int, float]:
    """Mean requests per second by hour since 1970; what was read in this window over what is remembered."""
    slots: dict[int, list[float]] = {}
    for start, rate in zip(arrivals.start.tolist(), arrivals.per_second.tolist(), strict=True):
        slots.setdefault(int(start // HOUR_SECONDS), []).append(rate)
    remembered = {int(start // HOUR_SECONDS): rate for start, rate in evidence.demand_hours}
    return remembered | {hour: float(np.mean(rates)) for hour, rates in slots.items() if len(rates) >= DAY_HOURS // 2}


def _a_week(rates: Mapping[int, float]) -> Fact:
    """The growth between the last seven days and the seven before, of days with enough hours in both."""
    last = max(rates, default=0)
    pairs = [(last - hour, rates[hour], rates[hour - WEEK_HOURS]) for hour in rates if hour - WEEK_HOURS in rates]
    days: dict[int, list[tuple[float, float]]] = {}
    for ago, now, before in pairs:
        if ago < WEEK_HOURS:
            days.setdefault(ago // DAY_HOURS, []).append((now, before))
    sums = [np.sum(hours, axis=0) for hours in days.values() if len(hours) >= LEAST_HOURS_A_DAY]
    steps = np.array([math.log(now / before) for now, before in sums if now > 0 and before > 0])
    if steps.size < LEAST_DAYS:
        return unknown(TOO_SHORT)
    mean, half = float(steps.mean()), float(steps.std(ddof=1)) / math.sqrt(steps.size)
    half *= float(student.ppf((1 + CONFIDENCE) / 2, steps.size - 1))
    low, value, high = (math.exp(mean + sign * half) for sign in (-1, 0, 1))
    return computed(value, low=low, high=high, n=int(steps.size), source="days against the same days a week before")
