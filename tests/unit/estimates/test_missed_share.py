"""Replicas from the share of requests that miss their objectives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.fact import Fact
from advisor.estimates.missed_share import recommended_replicas
from tests.unit.estimates.evidence import bounded, sheet

SHARES = st.floats(0.31, 1)


def told(**known: float | Fact | None) -> Fact:
    return recommended_replicas(sheet(**known))


@pytest.mark.parametrize(
    ("present", "attained", "asked", "replicas"),
    # (0.217 / 0.01)^(1/3) = 2.79; (0.436 / 0.05)^(1/3) = 2.06; (0.109 / 0.05)^(1/3) = 1.30; (0.6 / 0.01)^(1/3) = 3.91
    [(2, 0.783, 0.99, 6), (1, 0.564, 0.95, 3), (1, 0.891, 0.95, 2), (3, 0.4, 0.99, 12)],
)
def test_misses_fall_with_the_cube_of_the_load(present: int, attained: float, asked: float, replicas: int) -> None:
    found = told(replicas=present, slo_attainment=attained, slo_target=asked, recommended_replicas=1)
    assert found.value == replicas
    assert found.low is not None
    assert found.high is not None
    assert found.low <= replicas <= found.high


def test_where_demand_does_not_fit_most_misses_end_once_it_does() -> None:
    # 2 x 13.3^(1/3) = 4.7, but capacity asks for 3
    missed = {"replicas": 2, "slo_attainment": 0.867, "slo_target": 0.99}
    assert told(**missed, recommended_replicas=3, demand_over_capacity=1.17).value == 3  # 2.34 of 3
    assert told(**missed, recommended_replicas=3, demand_over_capacity=1.35).value == 4  # 2.7 of 3 leave a tenth
    assert told(**missed, recommended_replicas=3, demand_over_capacity=bounded(0.6, 1.8)).value == 5
    assert told(**missed, recommended_replicas=3, demand_over_capacity=0.9).value == 5


def test_work_that_is_done_twice_is_no_load() -> None:
    thrash = {"replicas": 1, "slo_attainment": 0.42, "slo_target": 0.99, "recommended_replicas": 2}
    assert told(**thrash, preempted_share=0.75).value == 2
    assert told(**thrash, preempted_share=0.01).value == 4


def test_what_buckets_leave_open_stays_open() -> None:
    # between 60 % and 96 %: at least 2 x (0.04 / 0.01)^(1/3) = 3.2, at most 2 x (0.40 / 0.01)^(1/3) = 6.8
    found = told(replicas=2, slo_attainment=bounded(0.60, 0.96), slo_target=0.99)
    assert (found.value, found.low, found.high) == (None, 4, 7)
    # between 77 % and 79 % both ends ask for six
    assert told(replicas=2, slo_attainment=bounded(0.77, 0.79), slo_target=0.99).value == 6
    # where all may have missed in a queue there is no upper end
    assert told(replicas=2, slo_attainment=bounded(0.1, 0.96), slo_target=0.99).high is None
    # and where all may have met them nothing is asked for
    assert told(replicas=2, slo_attainment=bounded(0.6, 1.0), slo_target=0.99, recommended_replicas=2).value == 2


@pytest.mark.parametrize(
    "known",
    [
        {"slo_attainment": 0.995, "slo_target": 0.99},  # the objectives hold
        {"slo_attainment": 0.9},  # none are given
        {"slo_target": 0.99},
        {"slo_attainment": 0.5, "slo_target": 1.0},  # no miss at all is allowed: nothing tells when that holds
        {"slo_attainment": 0.98, "slo_target": 0.99, "replicas": None},
        {"slo_attainment": 0.94, "slo_target": 0.99},  # 1 x 1.8 = 2, and capacity asks for 5
        {"slo_attainment": 0.001, "slo_target": 0.99},  # a queue that never drained: what was served decides
    ],
)
def test_where_misses_ask_for_nothing_more_capacity_decides(known: dict[str, float | None]) -> None:
    assert told(**{"replicas": 1.0, "recommended_replicas": 5.0} | known).value == 5


@given(SHARES, SHARES, st.integers(1, 500))
def test_more_misses_never_ask_for_fewer(attained: float, other: float, present: int) -> None:
    fewer, more = sorted((attained, other), reverse=True)
    least = told(replicas=present, slo_attainment=fewer, slo_target=0.99, recommended_replicas=present).number
    most = told(replicas=present, slo_attainment=more, slo_target=0.99, recommended_replicas=present).number
    assert least is not None
    assert most is not None
    assert present <= least <= most
