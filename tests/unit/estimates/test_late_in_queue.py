"""Whether first tokens are late for waiting or for their own prompts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.evidence import Slo
from advisor.domain.fact import Fact
from advisor.estimates.late_in_queue import attainment_unqueued
from tests.unit.estimates.evidence import NOTHING, bounded, buckets, engine, sheet


def told(attained: float | Fact | None, edge: float = 3.0, ttft: float | None = 6.0, waited: float = 131) -> Fact:
    queue = buckets([edge, 60.0], [1_000 - waited, waited, 0])
    evidence = replace(NOTHING, engines=(engine(latencies={"queue": queue}),), slo=Slo(ttft_seconds=ttft))
    return attainment_unqueued(evidence, sheet(slo_attainment_ttft=attained))


@pytest.mark.parametrize(
    ("attained", "edge", "low", "high"),
    [
        (0.836, 3.0, 0.836, 0.967),  # 16.4 % are late and 13.1 % wait longer than 3 s
        (0.95, 3.0, 0.95, 1.0),  # as many wait as are late
        (bounded(0.70, 0.836), 3.0, 0.70, 0.967),
        (0.836, 2.0, 0.836, 0.967),  # no edge at 3 s: all beyond 2 s may have waited for so long
        (0.836, 4.0, 0.836, 1.0),  # all of them may have waited for more than 3 s
    ],
)
def test_late_by_their_own_prompts(attained: float | Fact, edge: float, low: float, high: float) -> None:
    share = told(attained, edge)
    assert (share.value, share.low, share.high) == pytest.approx((None, low, high))


@pytest.mark.parametrize(("attained", "ttft"), [(None, 6.0), (0.9, None)])
def test_without_an_objective_or_latencies_nobody_knows(attained: float | None, ttft: float | None) -> None:
    assert told(attained, ttft=ttft).is_unknown
