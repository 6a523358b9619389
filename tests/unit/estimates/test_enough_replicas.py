"""The fewest replicas with which prompts of others slow few enough answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import Evidence, Slo
from advisor.domain.fact import Fact
from advisor.estimates.enough_replicas import recommended_replicas
from advisor.estimates.full_step import FullStep
from advisor.estimates.shared_steps import SharedSteps
from tests.unit.estimates.evidence import NOTHING, bounded, sheet

PROMISED = replace(NOTHING, slo=Slo(tpot_seconds=0.040, percentile=99))
# prompts of 1,000 tokens in steps of 0.1 ms a token: at 3, 2 and 1 requests a second 27 %, 6.9 % and 0.84 % are slowed
SHARED = SharedSteps(np.array([1000.0]), np.array([10.0]), np.array([1.0]), FullStep(0.020, 0.0, 1e-4, 100), 2048)


def told(evidence: Evidence = PROMISED, shared: SharedSteps | None = SHARED, **known: float | Fact | None) -> Fact:
    given = {"replicas": 1.0, "slo_target": 0.99, "demand_to_carry": 3.0, "recommended_replicas": 2.0}
    return recommended_replicas(evidence, sheet(**given | known), shared)


def slowed(rate: float) -> float:
    return SHARED.missed_at(rate, 0.040)


def test_replicas_are_added_until_few_enough_are_slowed() -> None:
    assert slowed(1.5) > 0.01 > slowed(1.0)
    found = told()
    assert (found.value, found.low, found.high) == (3, 2, 3)
    assert "with 3" in (found.source or "")


def test_where_capacity_asks_for_enough_it_is_believed() -> None:
    assert told(recommended_replicas=4.0).value == 4


def test_where_demand_fits_and_nothing_is_missed_none_is_added() -> None:
    assert told(replicas=3.0, recommended_replicas=1.0, slo_attainment_tpot=0.999).value == 1


def test_misses_ask_for_one_more_at_least() -> None:
    # at 1/s a replica 0.84 % are told and 1.5 % miss, so 1.8 times as many; 0.75/s are told 0.37 %, which is 0.7 %
    assert slowed(0.75) * 0.015 / slowed(1.0) < 0.01
    assert told(replicas=3.0, recommended_replicas=3.0, slo_attainment_tpot=0.985).value == 4


@pytest.mark.parametrize(("imbalance", "replicas"), [(1.2, 4), (3.07, 3)])
def test_misses_of_one_replica_that_is_fed_unevenly_ask_for_none(imbalance: float, replicas: int) -> None:
    uneven = told(replicas=3.0, recommended_replicas=3.0, slo_attainment_tpot=0.985, replica_imbalance=imbalance)
    assert uneven.value == replicas


@pytest.mark.parametrize(
    ("longest", "told_"),
    [
        (30_000, (3, None)),
        (31_000, (None, 3)),
        (bounded(20_000, 28_000), (3, None)),
        (bounded(20_000, 50_000), (None, 3)),
        (bounded(20_000, None), (None, 3)),  # up to the limit of 60,000
    ],
)
def test_requests_that_take_the_cache_leave_only_the_least(
    longest: float | Fact, told_: tuple[int | None, int | None]
) -> None:
    # a cache of 60,000 tokens: half of it is 30,000
    cache = {"kv_pool_tokens": 60_000.0, "max_model_len": 60_000.0}
    found = told(PROMISED, SHARED, recommended_replicas=3.0, total_tokens_p999=longest, **cache)
    assert (found.value, found.low) == told_


def test_more_misses_than_are_told_ask_for_more() -> None:
    # 1/s would do, but 2.5 times as many miss now as are told at 3/s
    assert told(slo_attainment_tpot=1 - 2.5 * slowed(3.0)).value == 4


def test_misses_that_are_not_told_decide_themselves() -> None:
    # 30 % miss and 0.37 % are told: 4 x (0.3 / 0.01)^(1/3) = 12.4
    found = told(replicas=4.0, slo_attainment=0.70, slo_attainment_tpot=0.70)
    assert found.value == 13
    assert "cube" in (found.source or "")


def test_late_first_tokens_decide_first_and_slow_answers_after_them() -> None:
    # (0.02 / 0.01)^(1/3) asks for two; with two 2.9 % would be slowed, with three 0.84 %
    found = told(slo_attainment=0.98, slo_attainment_ttft=0.98, recommended_replicas=1.0)
    assert found.value == 3


def test_where_replicas_hardly_help_there_is_no_number() -> None:
    # a prompt of 20,000 tokens: 2 s of full steps, and two answers in a hundred meet one even with four times the seats
    long = replace(SHARED, prompt=np.array([10.0, 20_000.0]), gaps=np.array([10.0, 10.0]), share=np.array([0.9, 0.1]))
    found = told(shared=long)
    assert (found.value, found.low, found.high) == (None, 2, None)
    assert "even with 4 replicas" in (found.source or "")
    assert "pool for long prompts" in (found.source or "")


def test_bounds_stay_bounds_where_nothing_is_known_to_miss() -> None:
    open_ = bounded(2, 9)
    assert told(recommended_replicas=open_) == open_
    # where misses are known the first number that holds is one: 27 % are told, and as many miss
    assert told(recommended_replicas=open_, slo_attainment_tpot=1 - slowed(3.0)).value == 3


@pytest.mark.parametrize(
    ("evidence", "shared", "known"),
    [
        (PROMISED, None, {}),
        (NOTHING, SHARED, {}),
        (PROMISED, SHARED, {"demand_to_carry": bounded(None, None)}),
        (PROMISED, SHARED, {"replicas": bounded(None, None)}),
    ],
)
def test_without_the_time_of_a_step_misses_and_capacity_decide(
    evidence: Evidence, shared: SharedSteps | None, known: dict[str, Fact]
) -> None:
    assert told(evidence, shared, **known).value == 2
