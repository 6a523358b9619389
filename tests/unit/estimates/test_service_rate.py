"""How much of what a replica serves demand may use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.policy import Policy
from advisor.estimates.service_rate import headroom_for, serves_with
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
