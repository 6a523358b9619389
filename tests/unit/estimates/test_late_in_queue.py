"""Whether first tokens are late for waiting or for their own prompts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.evidence import Slo
from advisor.domain.fact import Fact
from advisor.estimates.late_in_queue import attainment_unqueued
from tests.unit.estimates.evidence import NOTHING, bounded, buckets, engine, sheet


def told(attained: float | Fact | None = 0.8, edge: float = 3.0, ttft: float | None = 6.0, waited: float = 131) -> Fact:
    """Of 1,000 requests 164 get their first token after 9 s or later, and `waited` wait longer than `edge`."""
    latencies = {
        "queue": buckets([edge, 60.0], [1_000 - waited, waited, 0]),
        "ttft": buckets([6.0, 9.0, 60.0], [800, 36, 164, 0]),
    }
    evidence = replace(NOTHING, engines=(engine(latencies=latencies),), slo=Slo(ttft_seconds=ttft))
    return attainment_unqueued(evidence, sheet(slo_attainment_ttft=attained))


@pytest.mark.parametrize(
    ("edge", "waited", "high"),
    [
        (3.0, 131, 0.967),  # 16.4 % take longer than 6 + 3 s, and 13.1 % wait longer than 3 s
        (3.0, 164, 1.0),  # as many wait as are late
        (2.0, 131, 0.967),  # longer than 8 s take at least the 16.4 %
        (3.5, 131, 1.0),  # whether anybody takes longer than 9.5 s is open
    ],
)
def test_late_by_their_own_prompts(edge: float, waited: float, high: float) -> None:
    share = told(edge=edge, waited=waited)
    assert (share.value, share.low, share.high) == pytest.approx((None, 0.8, high))


def test_bounds_of_what_is_now_stay_bounds() -> None:
    share = told(bounded(0.70, 0.836))
    assert (share.low, share.high) == pytest.approx((0.70, 0.967))


def test_a_wait_of_half_the_target_does_not_make_a_prompt_late_by_itself() -> None:
    # 5 s are promised, everybody waits 2.5 s at most and computes 3.2 s: without the wait nobody is late
    latencies = {"queue": buckets([2.5, 10.0], [1_000, 0, 0]), "ttft": buckets([5.0, 7.5], [720, 280, 0])}
    evidence = replace(NOTHING, engines=(engine(latencies=latencies),), slo=Slo(ttft_seconds=5.0))
    assert attainment_unqueued(evidence, sheet(slo_attainment_ttft=0.72)).high == 1.0


@pytest.mark.parametrize(("attained", "ttft"), [(None, 6.0), (0.9, None)])
def test_without_an_objective_or_latencies_nobody_knows(attained: float | None, ttft: float | None) -> None:
    assert told(attained, ttft=ttft).is_unknown
