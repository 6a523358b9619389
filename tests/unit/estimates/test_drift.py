from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, as_floats
from advisor.domain.histogram import BucketHours, Floats, Ints
from advisor.domain.length_history import LengthHistory, bin_of
from advisor.domain.policy import Policy
from advisor.estimates import drift
from advisor.estimates.length_slots import Slots
from tests.unit.estimates.evidence import NOTHING, engine, joint, log

HOUR, DAY = 3600.0, 86_400.0
START = 1_800_000_000 // 86_400 * 86_400


def history(
    seconds: Floats, lengths: Ints, client: Ints | None = None, names: tuple[str, ...] = ("",)
) -> LengthHistory:
    start = ((START + seconds) // 300 * 300).astype(np.int64)
    who = np.zeros(lengths.size, np.int64) if client is None else client
    merged = LengthHistory.merge([LengthHistory(300, start, who, bin_of(lengths), np.ones_like(lengths), names)])
    assert merged is not None
    return merged


def logged(past: LengthHistory) -> Evidence:
    return replace(NOTHING, log=replace(log(joint((100, 10, past.n))), history=past))


def traffic(n: int, days: float, seed: int = 0, *, nights: bool = False) -> tuple[Floats, Ints]:
    """Lognormal lengths; at night three in ten are sixteen times longer."""
    random = np.random.default_rng(seed)
    t = np.sort(random.random(n) * days * DAY)
    x = np.exp(random.normal(7, 0.6, n)).astype(np.int64)
    long = (t % DAY < 6 * HOUR) & (random.random(n) < 0.3) if nights else np.zeros(n, bool)
    return t, np.where(long, 16 * x, x)


def told(evidence: Evidence) -> dict[str, float | str | None]:
    return {name: fact.value for name, fact in drift.facts(evidence, Policy()).items()}


def test_stability_by_hand() -> None:
    # halves that become 60 % and 40 %: 0.1 ln 1.2 - 0.1 ln 0.8 = 0.04055
    psi, bins = drift.stability(np.array([500.0, 500.0]), np.array([600.0, 400.0]))
    assert psi == pytest.approx(0.040547, abs=1e-6)
    assert bins == 2


def test_what_never_came_before_is_taken_for_half_a_request() -> None:
    psi, _ = drift.stability(np.array([100.0, 0.0]), np.array([50.0, 50.0]))
    # both bins begin within the first and the last tenth: (0.5 - 1) ln 0.5 + (0.5 - 0.005) ln 100
    assert psi == pytest.approx(0.5 * np.log(2) + 0.495 * np.log(100), abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=30))
def test_stability_is_a_number_and_zero_for_the_same(rows: list[tuple[int, int]]) -> None:
    reference, now = (np.array([row[k] for row in rows], float) + 1 for k in range(2))
    psi, bins = drift.stability(reference, now)
    assert np.isfinite(psi)
    assert psi >= -1e-12
    assert 1 <= bins <= 10
    assert drift.stability(reference, 3 * reference)[0] == pytest.approx(0.0, abs=1e-12)


def test_tail_excess_by_hand() -> None:
    # 40 of 10,000 in each half where 10 are promised: the 0.1 % lower bound on 40 counts is 23.26, so 2.3 times
    before = Slots(300.0, as_floats(300.0 * np.arange(100)), np.tile([1_000.0, 0.0], (100, 1)), np.array([10.0, 20.0]))
    since = Slots(
        300.0, as_floats(30_000.0 + 300.0 * np.arange(200)), np.tile([99.6, 0.4], (200, 1)), np.array([10.0, 20.0])
    )
    assert drift.tail_excess(before, since, 99.9) == pytest.approx(2.33, abs=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_a_week_with_nights_of_its_own_has_not_changed(seed: int) -> None:
    facts = told(logged(history(*traffic(30_000, 7, seed, nights=True))))
    shift, noise, excess = facts["length_shift"], facts["length_shift_noise"], facts["length_tail_excess"]
    assert isinstance(shift, float)
    assert isinstance(noise, float)
    assert shift < max(0.1, 3 * noise)
    assert excess == 0
    assert facts["length_decision_drift"] == 0


def test_a_body_that_moved_is_found_with_its_day() -> None:
    t, x = traffic(30_000, 7, nights=True)
    past = history(t, np.where(t > 5 * DAY, x * 13 // 10, x))
    facts = drift.facts(logged(past), Policy())
    shift = facts["length_shift"]
    # 30 % longer is 0.44 standard deviations: about 0.44^2 = 0.19 for a normal logarithm
    assert shift.value == pytest.approx(0.19, abs=0.06)
    assert "since 2027-01-20T00:00Z" in (shift.source or "")
    assert "same hours" in (shift.source or "")


def test_a_new_class_of_long_requests_is_found_in_the_tail() -> None:
    t, x = traffic(30_000, 7)
    new = (t > 5 * DAY) & (np.arange(t.size) % 50 == 0)
    facts = told(logged(history(t, np.where(new, 80_000, x))))
    # 2 % where 0.1 % is promised, less what chance may add
    assert isinstance(facts["length_tail_excess"], float)
    assert 10 < facts["length_tail_excess"] < 20
    assert isinstance(facts["length_shift"], float)
    assert facts["length_shift"] < 0.1
    assert facts["length_decision_drift"] == pytest.approx(80_000 / 8_000 - 1, rel=0.25)


NAMES = ("", "aaa", "bbb", "ccc")


def test_the_client_who_changed_is_named() -> None:
    t, x = traffic(30_000, 7)
    who = np.arange(t.size) % 4
    facts = told(logged(history(t, np.where((who == 2) & (t > 5 * DAY), 9 * x, x), who, NAMES)))
    assert facts["length_shift_client"] == "bbb"


def test_a_change_of_everybody_is_nobodys() -> None:
    t, x = traffic(30_000, 7)
    facts = told(logged(history(t, np.where(t > 5 * DAY, 2 * x, x), np.arange(t.size) % 4, NAMES)))
    assert facts["length_shift_client"] == "many"


def test_a_log_without_clients_says_so() -> None:
    assert told(logged(history(*traffic(3_000, 1))))["length_shift_client"] == "not logged"


def test_a_day_is_compared_by_its_24ths() -> None:
    t, x = traffic(20_000, 0.5)
    facts = drift.facts(logged(history(t, np.where(t > 8 * HOUR, 6 * x, x))), Policy())
    assert "since 2027-01-15T08:00Z" in (facts["length_shift"].source or "")


def test_too_few_requests_are_not_compared() -> None:
    reason = drift.facts(logged(history(*traffic(400, 1))), Policy())["length_shift"].unknown
    assert reason == "too few requests to compare earlier with later ones (300 each)"
    assert drift.facts(NOTHING, Policy())["length_shift"].unknown == (
        "needs request lengths over time: a request log (--logs), sql or the exporter, or engine metrics"
    )


def by_hour(rows: list[list[float]]) -> BucketHours:
    return BucketHours(as_floats(START + HOUR * np.arange(len(rows))), as_floats([100.0, 1_000.0]), as_floats(rows))


def test_histograms_by_the_hour_tell_it_as_far_as_their_buckets_do() -> None:
    steady, moved = (
        by_hour([[600.0, 400.0, 0.0]] * 24),
        by_hour([[600.0, 400.0, 0.0]] * 16 + [[300.0, 600.0, 100.0]] * 8),
    )
    seen = engine()
    same = replace(NOTHING, engines=(replace(seen, length_hours={"prompt_tokens": steady}),))
    other = replace(NOTHING, engines=(replace(seen, length_hours={"prompt_tokens": moved, "output_tokens": steady}),))
    assert told(same)["length_shift"] == pytest.approx(0.0, abs=1e-9)
    facts = drift.facts(other, Policy())
    # (0.3 - 0.6) ln 0.5 + (0.6 - 0.4) ln 1.5 + 0.1 ln(0.1 / half a request of 16,000)
    expected = 0.3 * np.log(2) + 0.2 * np.log(1.5) + 0.1 * np.log(0.1 * 16_000 / 0.5)
    assert facts["length_shift"].value == pytest.approx(expected, rel=0.01)
    assert "engine histograms of prompt_tokens" in (facts["length_shift"].source or "")
    assert "since 2027-01-15T16:00Z" in (facts["length_shift"].source or "")


def test_windows_are_added_up_by_the_hour_they_end_in() -> None:
    ends = START + np.array([300.0, 3_600.0, 3_900.0])
    hours = BucketHours.of(ends, np.array([10.0]), np.array([[1.0, 0.0], [2.0, np.nan], [4.0, 1.0]]))
    assert (hours.start - START).tolist() == [0.0, 3_600.0]
    assert hours.counts.tolist() == [[3.0, 0.0], [4.0, 1.0]]


def test_engines_are_joined_on_the_edges_that_they_share() -> None:
    one = BucketHours(np.array([0.0]), np.array([10.0, 20.0]), np.array([[1.0, 2.0, 3.0]]))
    two = BucketHours(np.array([0.0, 3_600.0]), np.array([20.0]), np.array([[5.0, 1.0], [7.0, 0.0]]))
    slots = Slots.of_hours([one, two])
    assert slots is not None
    # of the first, 1 + 2 lie up to 20; beyond the last edge is taken for twice as long
    assert (slots.edges.tolist(), slots.counts.tolist()) == ([20.0, 40.0], [[8.0, 4.0], [7.0, 0.0]])
    assert Slots.of_hours([]) is None


def test_the_limit_and_the_drift_share_one_table_and_one_change() -> None:
    past = history(*traffic(2_000, 3))
    assert Slots.of(past) is Slots.of(past)
    change = drift.largest_shift(Slots.of(past), 99.9)
    assert change is not None
    assert drift.largest_shift(Slots.of(past), 99.9) is change
    assert drift.largest_shift(Slots.of(past), 99.0) is not change
