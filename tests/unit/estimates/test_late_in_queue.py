"""Whether first tokens are late for waiting or for their own prompts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import Slo, as_floats
from advisor.domain.fact import Fact
from advisor.domain.histogram import BucketHours
from advisor.estimates.full_step import FullStep
from advisor.estimates.late_in_queue import attainment_unqueued
from tests.unit.estimates.evidence import NOTHING, bounded, buckets, engine, sheet


def told(attained: float | Fact | None = 0.8, edge: float = 3.0, ttft: float | None = 6.0, waited: float = 131) -> Fact:
    """Of 1,000 requests 164 get their first token after 9 s or later, and `waited` wait longer than `edge`."""
    latencies = {
        "queue": buckets([edge, 60.0], [1_000 - waited, waited, 0]),
        "ttft": buckets([6.0, 9.0, 60.0], [800, 36, 164, 0]),
    }
    evidence = replace(NOTHING, engines=(engine(latencies=latencies),), slo=Slo(ttft_seconds=ttft))
    return attainment_unqueued(evidence, "not identified", sheet(slo_attainment_ttft=attained))


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


def test_what_is_in_time_today_stays_possible() -> None:
    share = told(0.98)
    assert (share.low, share.high) == pytest.approx((0.98, 0.98))


def test_bounds_of_what_is_now_stay_bounds() -> None:
    share = told(bounded(0.70, 0.836))
    assert (share.low, share.high) == pytest.approx((0.70, 0.967))


def test_a_wait_of_half_the_target_does_not_make_a_prompt_late_by_itself() -> None:
    # 5 s are promised, everybody waits 2.5 s at most and computes 3.2 s: without the wait nobody is late
    latencies = {"queue": buckets([2.5, 10.0], [1_000, 0, 0]), "ttft": buckets([5.0, 7.5], [720, 280, 0])}
    evidence = replace(NOTHING, engines=(engine(latencies=latencies),), slo=Slo(ttft_seconds=5.0))
    assert attainment_unqueued(evidence, "not identified", sheet(slo_attainment_ttft=0.72)).high == 1.0


@pytest.mark.parametrize(("attained", "ttft"), [(None, 6.0), (0.9, None)])
def test_without_an_objective_or_latencies_nobody_knows(attained: float | None, ttft: float | None) -> None:
    assert told(attained, ttft=ttft).is_unknown


def test_a_prompt_that_alone_takes_longer_than_the_target_is_late_on_every_replica() -> None:
    # 0.1 ms a token, 80 us surely: 6 s are 75,000 tokens, and 40 of 1,000 prompts are of 100,000 or more
    prompts = {"prompt_tokens": buckets([2_000, 100_000], [900, 60, 40])}
    evidence = replace(NOTHING, engines=(engine(lengths=prompts),), slo=Slo(ttft_seconds=6.0))
    work = FullStep(0.02, 0.0001, 0.0001, 500)
    share = attainment_unqueued(evidence, work, sheet(slo_attainment_ttft=0.8))
    assert (share.low, share.high) == pytest.approx((0.8, 0.96))
    # half of the prompt is found in the prefix cache: only beyond 150,000 tokens, which nobody is known to have
    hit = attainment_unqueued(evidence, work, sheet(slo_attainment_ttft=0.8, prefix_cache_hit_rate=0.5))
    assert hit.high == 1.0


def test_prompts_of_before_the_present_epoch_do_not_dilute_it() -> None:
    hours = BucketHours(as_floats([0, 3_600]), as_floats([2_000, 100_000]), np.array([[9_000.0, 0, 0], [900, 60, 40]]))
    now = replace(engine(), epoch_start=3_600.0, length_hours={"prompt_tokens": hours})
    evidence = replace(NOTHING, engines=(now,), slo=Slo(ttft_seconds=6.0))
    share = attainment_unqueued(evidence, FullStep(0.02, 0.0001, 0.0001, 500), sheet(slo_attainment_ttft=0.8))
    assert (share.high, share.n) == pytest.approx((0.96, 1_000))
