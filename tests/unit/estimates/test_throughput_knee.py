from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence
from advisor.domain.sweep import Sweep, SweepPoint
from advisor.estimates import throughput_knee
from tests.unit.estimates.evidence import NOTHING


def swept(*points: SweepPoint, in_flight: bool = False) -> Evidence:
    return replace(NOTHING, sweep=Sweep(points, "bench", in_flight=in_flight))


def knee(evidence: Evidence) -> tuple[float | str | None, float | None, float | str | None]:
    facts = throughput_knee.facts(evidence)
    return facts["throughput_knee"].value, facts["throughput_knee"].low, facts["throughput_beyond_knee"].value


def test_tokens_per_second_of_all_users_together() -> None:
    """8 x 62 = 496, 24 x 41 = 984, 40 x 26 = 1,040, 48 x 19 = 912; 24 stay just under 95 % of 1,040, which is 988."""
    points = [SweepPoint(c, 1 / speed) for c, speed in ((8, 62), (24, 41), (40, 26), (48, 19))]
    value, _, beyond = knee(swept(*points))
    assert value == 40
    assert beyond == pytest.approx(912 / 1040)


def test_flat_from_a_hundred_on() -> None:
    """11,198 and 11,218 tokens/s at 100 and 1,000 at once."""
    flat = swept(SweepPoint(100, 100 / 11198), SweepPoint(1000, 1000 / 11218))
    value, _, beyond = knee(flat)
    assert value == 100
    assert beyond == pytest.approx(11218 / 11198)


def test_one_that_still_rises_is_bounded() -> None:
    rising = swept(SweepPoint(8, 0.02, requests_per_second=1.0), SweepPoint(16, 0.02, requests_per_second=2.0))
    assert knee(rising) == (None, 16, None)


def test_what_a_load_generator_keeps_in_flight_is_not_what_runs() -> None:
    """Without requests per second, tokens of those that wait would be counted as served."""
    assert knee(swept(SweepPoint(8, 0.02), SweepPoint(64, 0.02), in_flight=True)) == (None, None, None)
    counted = [SweepPoint(8, 0.02, requests_per_second=2.0), SweepPoint(64, 0.02, requests_per_second=2.0)]
    assert knee(swept(*counted, in_flight=True)) == (8, None, 1.0)


def test_one_level_says_nothing() -> None:
    assert knee(swept(SweepPoint(8, 0.02))) == (None, None, None)
    assert knee(NOTHING) == (None, None, None)
    assert knee(swept(SweepPoint(8, 0.02), SweepPoint(16, 0.03, statistic="p99"))) == (None, None, None)


@given(st.lists(st.floats(0.001, 1.0), min_size=2, max_size=12))
def test_the_knee_is_a_level_and_nothing_later_is_much_better(tpots: list[float]) -> None:
    points = [SweepPoint(8.0 * (n + 1), tpot) for n, tpot in enumerate(tpots)]
    value, low, beyond = knee(swept(*points))
    at = value if value is not None else low
    rates = {p.concurrency: p.concurrency / p.tpot_seconds for p in points}
    assert at in rates
    assert all(rate <= rates[float(at)] / 0.95 * 1.000001 for rate in rates.values())
    assert beyond is None or isinstance(beyond, float)
