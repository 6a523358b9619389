"""Capacity by measurement: what was served while requests waited all the time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, Samples, Window, as_floats
from advisor.domain.fact import Fact, computed
from advisor.domain.policy import Policy
from advisor.estimates import saturation
from tests.unit.estimates.evidence import bounded, joint, sheet

SLOT = 300.0
POLICY = Policy()


def _engine(waiting: list[float], finished_per_slot: list[float]) -> EngineSeries:
    """One engine: one `waiting` value a slot, scraped every 30 s, and so many finished requests in each slot."""
    slots = len(waiting)
    times = as_floats(np.arange(slots * 10) * 30.0 + 15.0)
    queue = np.repeat(as_floats(waiting), 10)
    starts = as_floats(np.arange(slots) * SLOT)
    windows = CounterWindows(starts, as_floats(starts + SLOT), {"finished": as_floats(finished_per_slot)})
    return EngineSeries("a:1", "0", 0.0, Samples(times, np.full(times.size, 8.0), queue, None), windows, {}, {})


def _evidence(*engines: EngineSeries) -> Evidence:
    return Evidence("x", Window(0.0, 3600.0), engines=engines, replicas=len(engines))


def arriving(per_second: float) -> dict[str, float]:
    return {"demand_requests_per_second_p99": per_second, "demand_to_carry": per_second}


def test_the_saturated_rate_is_what_finished_while_something_always_waited() -> None:
    # Slots 2 to 5 always had a queue: (57 + 57 + 60 + 54) / 4 = 57 a slot = 0.19/s; demand 0.25 / (0.19 x 0.9) = 146 %.
    evidence = _evidence(_engine([0, 5, 9, 7, 4], [100, 57, 57, 60, 54]))
    facts = saturation.facts(evidence, POLICY, sheet(**arriving(0.25), recommended_replicas=1))
    assert facts["saturated_requests_per_second"].number == pytest.approx(0.19)
    assert facts["demand_over_saturated_rate"].number == pytest.approx(0.25 / (0.19 * 0.9))
    assert facts["recommended_replicas"].number == 2


def test_two_replicas_serve_twice_the_rate_of_one() -> None:
    one = _engine([1, 1, 1], [30, 30, 30])
    facts = saturation.facts(_evidence(one, replace(one, instance="b:1")), POLICY, sheet())
    assert facts["saturated_requests_per_second"].number == pytest.approx(0.2)


def test_a_queue_that_drains_in_every_slot_says_nothing() -> None:
    engine = _engine([1, 1, 1], [30, 30, 30])
    waiting = engine.samples.waiting.copy()
    waiting[::10] = 0
    drained = replace(engine, samples=replace(engine.samples, waiting=waiting))
    facts = saturation.facts(_evidence(drained), POLICY, sheet(**arriving(9.0)))
    assert facts["demand_over_saturated_rate"].is_unknown
    assert facts["saturated_requests_per_second"].unknown == saturation.NEVER


def test_the_model_keeps_its_word_where_it_asks_for_more_replicas() -> None:
    evidence = _evidence(_engine([1, 1, 1], [300, 300, 300]))
    facts = saturation.facts(evidence, POLICY, sheet(**arriving(0.5), recommended_replicas=3))
    assert facts["recommended_replicas"].value == 3


def test_where_the_model_only_bounds_them_the_measurement_tells() -> None:
    # 0.92 requests/s in the slowest tenth of 0.9, 1 and 1, and 80 % of it: 2.4 / 0.736 = 3.3
    evidence = _evidence(_engine([1] * 3, [0.9 * 300, 300, 300]))
    for told, wanted in ((bounded(1, 30), 4), (bounded(6, 30), 6), (computed(3, source="model"), 4)):
        known = sheet(**arriving(2.4), recommended_replicas=told)
        assert saturation.facts(evidence, POLICY, known)["recommended_replicas"].value == wanted


def test_batch_work_may_wait() -> None:
    # 3.16/s on average, 2/s served saturated, 95 % of it: 1.66; promises would ask for 3.16 / 1.47 = 2.1
    evidence = _evidence(_engine([1] * 3, [1.8 * 300, 2.1 * 300, 2.1 * 300]))
    known = sheet(**arriving(3.16), recommended_replicas=1)
    assert saturation.facts(evidence, POLICY, known)["recommended_replicas"].value == 3
    batch = replace(evidence, workload="batch")
    assert saturation.facts(batch, POLICY, known)["recommended_replicas"].value == 2


def test_the_more_unequal_requests_are_the_less_a_replica_is_used() -> None:
    # one in a hundred holds 199 times as much work as the others: mean 2.98, cv 6.6; u / (1 - u) = 4 x 2 / 45
    rows = (100, 10, 990), (19_995, 10, 10)
    unequal = replace(_evidence(_engine([1, 1, 1], [300, 300, 300])), joint=joint(*rows))
    mean = (0.99 * 105 + 0.01 * 20_000) * 10
    cv2 = (0.99 * (1_050 - mean) ** 2 + 0.01 * (200_000 - mean) ** 2) / mean**2
    ratio = 8 / (1 + cv2)
    facts = saturation.facts(unequal, POLICY, sheet(**arriving(1.0), recommended_replicas=1))
    assert facts["recommended_replicas"].value == math.ceil((1 + ratio) / ratio)


def test_an_engine_that_finished_nothing_while_requests_waited_has_no_rate_to_compare_with() -> None:
    evidence = _evidence(_engine([1, 1, 1], [0, 0, 0]))
    facts = saturation.facts(evidence, POLICY, sheet(**arriving(0.5)))
    assert facts["demand_over_saturated_rate"].is_unknown


def test_slots_in_which_a_fifth_was_preempted_do_not_tell_what_a_lower_cap_serves() -> None:
    thrashing = _engine([5, 9, 7, 4], [57, 57, 57, 57])
    steady = facts_with_preemptions(thrashing, [5, 5, 5, 5])
    assert steady["saturated_requests_per_second"].number == pytest.approx(0.19)
    # 12 of 57 are more than a fifth in two of the four slots, and two slots are too few
    assert facts_with_preemptions(thrashing, [12, 12, 5, 5])["saturated_requests_per_second"].is_unknown


def facts_with_preemptions(engine: EngineSeries, preemptions: list[float]) -> dict[str, Fact]:
    deltas = {**engine.windows.deltas, "preemptions": as_floats(preemptions)}
    counted = replace(engine, windows=replace(engine.windows, deltas=deltas))
    return saturation.facts(_evidence(counted), POLICY, sheet(**arriving(0.25)))


@pytest.mark.parametrize(("then", "gain"), [(0.26, 0.26 / 0.19), (0.1, 0.1 / 0.19), (None, None)])
def test_what_the_next_cap_serves_beside_what_thrashing_leaves(then: float | None, gain: float | None) -> None:
    # 57 finish in each slot, 0.19/s, and 20 preemptions are more than a fifth of them
    deltas = {"finished": [57.0] * 4, "preemptions": [20.0] * 4}
    thrashing = _engine([5, 9, 7, 4], [57] * 4)
    counted = replace(
        thrashing, windows=replace(thrashing.windows, deltas={n: as_floats(v) for n, v in deltas.items()})
    )
    told = saturation.gain_of_next_cap(_evidence(counted), sheet(capacity_at_next_cap=then))
    assert told.number == pytest.approx(gain)
    # without preemptions nothing is done twice
    assert saturation.gain_of_next_cap(_evidence(thrashing), sheet(capacity_at_next_cap=then)).is_unknown
