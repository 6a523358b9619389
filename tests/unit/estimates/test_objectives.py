"""What is sure of the objectives."""

from __future__ import annotations

import pytest

from advisor.domain.fact import Fact
from advisor.estimates.objectives import surely_met, surely_missed
from tests.unit.estimates.evidence import bounded, sheet


@pytest.mark.parametrize(
    ("attained", "met", "missed"),
    [
        (0.99, True, False),
        (0.98, False, True),
        (bounded(0.991, 0.998), True, False),
        (bounded(0.97, 0.98), False, True),
        (bounded(0.98, 0.995), False, False),
        (bounded(None, 0.98), False, True),
        (bounded(0.995, None), True, False),
        (None, False, False),
    ],
)
def test_only_what_no_bucket_leaves_open_is_sure(attained: float | Fact | None, met: bool, missed: bool) -> None:
    known = sheet(slo_target=0.99, slo_attainment=attained)
    assert (surely_met(known), surely_missed(known)) == (met, missed)


def test_without_an_objective_nothing_is_met_or_missed() -> None:
    known = sheet(slo_attainment=0.5)
    assert not surely_met(known)
    assert not surely_missed(known)
