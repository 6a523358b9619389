"""How much of what a replica serves demand may use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.policy import Policy
from advisor.estimates.service_rate import headroom_for, serves_with
from advisor.estimates.step_time import StepTime
from tests.unit.estimates.evidence import NOTHING, engine, gauges, joint, windows


def test_a_request_holds_its_seat_while_its_prompt_is_computed_too() -> None:
    # 40 windows of 60 s: 3 run, and 300 finish in a window: 3 x 60 / 300 = 0.6 s, of which 3 gaps are 60 ms
    counted = windows(
        {"finished": [300.0] * 40, "itl_sum": [12.0] * 40, "itl_count": [600.0] * 40, "steps": [300.0] * 40}
    )
    label = replace(NOTHING, joint=joint((600, 2, 5_000)), engines=(engine(gauges([3.0] * 160, every=15.0), counted),))
    told = serves_with(label, "not identified", 6.0)
    assert told is not None
    assert told.residence == pytest.approx(0.6)
    # two decode in a step: between 2 / 0.6 and 6 / 0.6 a second
    assert (told.low, told.high) == pytest.approx((2 / 0.6, 10.0))


def test_outputs_that_vary_by_more_than_their_mean_ask_for_more_room() -> None:
    steady, wild = joint((10, 200, 50), (10, 300, 50)), joint((10, 10, 95), (10, 2_000, 5))
    assert headroom_for(replace(NOTHING, joint=steady), Policy()) == 0.9
    assert headroom_for(replace(NOTHING, joint=wild), Policy()) == 0.75
    assert headroom_for(NOTHING, Policy()) == 0.9


def test_batch_work_may_use_nearly_all_of_it() -> None:
    wild = joint((10, 10, 95), (10, 2_000, 5))
    assert headroom_for(replace(NOTHING, joint=wild, workload="batch"), Policy()) == 0.95


@pytest.mark.parametrize(("few", "many", "seats"), [(1.0, 100.0, 30.0), (2.0, 40.0, 15.0), (2.0, 40.0, 38.0)])
def test_the_bounds_hold_however_unequal_the_batches_were(few: float, many: float, seats: float) -> None:
    # a gap takes 10 ms and 0.5 ms for each that decodes; half of the windows run few, half run many
    batch = np.repeat([few, many], 100)
    gap = 0.01 + 0.0005 * batch
    steps = 60 / gap
    counted = {"itl_count": batch * steps, "itl_sum": batch * steps * gap, "steps": steps}
    counted["finished"] = batch * 60 / (201 * gap)
    evidence = replace(
        NOTHING,
        joint=joint((10, 200, 1_000)),
        engines=(engine(gauges(batch, every=60.0), windows({name: v.tolist() for name, v in counted.items()})),),
    )
    told = serves_with(evidence, "not identified", seats)
    assert told is not None
    assert told.high is not None
    assert told.low <= seats / (201 * (0.01 + 0.0005 * seats)) <= told.high


def test_where_lengths_changed_both_kinds_bound_what_is_served() -> None:
    # 100 windows of 200 tokens, then 100 of 600; a gap takes 20 ms throughout, and 10 decode
    outputs, finished = np.repeat([200.0, 600.0], 100), 30.0
    counted = {
        "finished": [finished] * 200,
        "prompt_tokens": [finished * 10] * 200,
        "generation_tokens": (finished * outputs).tolist(),
    }
    step = StepTime(0.010, 0.001, None, None, 0.9, 0.001, 100, 10.0)
    evidence = replace(NOTHING, joint=joint((10, 200, 5_000)), engines=(engine(counters=windows(counted)),))
    told = serves_with(evidence, step, 10.0)
    assert told is not None
    # 10 / (201 x 20 ms) and 10 / (601 x 20 ms)
    assert (told.low, told.high) == pytest.approx((10 / 12.02, 10 / 4.02))
