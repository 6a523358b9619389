"""Predictions held against the same hours of the week before and after a change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.advice import Prediction
from advisor.domain.hours import DEMAND, ENGINES, PROMPT, HourFacts
from advisor.outcomes import Terms
from advisor.outcomes.pairing import paired
from tests.unit.outcomes.lives import DAY, HOUR
from tests.unit.outcomes.weeks import CHANGED, NO_WORSE, also, gap, hour, lived, season, verdict, worse


def test_a_season_is_no_change() -> None:
    # Thursday has a mean gap of 22 ms against 20.3 ms over the week: over the whole window it would look worse.
    record = verdict(lived(30, gap))
    (score,) = record.scores
    assert record.state == "verified"
    assert score.before == pytest.approx(score.after)
    assert (score.hours, score.note) == (30, "30 same hours of the week")


@pytest.mark.parametrize(("by", "state"), [(0.7, "verified"), (1.05, "verified"), (1.3, "regressed")])
def test_what_the_change_did_is_told_after_a_day_where_there_is_no_noise(by: float, state: str) -> None:
    assert verdict(worse(lived(30, gap), by)).state == state


def test_a_bound_moves_with_the_hours_that_are_compared() -> None:
    # Predicted: 20 ms -> at most 14 ms, 0.7 of it. Weighted by requests the gap was 26 ms on a Thursday
    # (12 x 3 x 28 + 12 x 1 x 16 over 48), so at most 18.2 ms are expected there.
    record = verdict(worse(lived(24, gap), 0.7), replace(NO_WORSE, high=0.014))
    (score,) = record.scores
    assert (record.state, score.hours) == ("verified", 24)
    assert (score.before, score.high, score.after) == pytest.approx((0.025, 0.0175, 0.0175))


def test_a_target_and_the_setting_itself_stand_whatever_the_hour() -> None:
    hours = [also(h, slo_attainment_tpot=0.97 if h.start < CHANGED else 0.99, running_p95=23.0) for h in lived(30, gap)]
    predictions = (
        Prediction("slo_attainment_tpot", 0.95, 0.99, None, "ratio"),
        Prediction("running_p95", 40.0, None, 24.0, "requests"),
    )
    record = verdict(hours, *predictions)
    assert [(s.low, s.high, s.held) for s in record.scores] == [(0.99, None, True), (None, 24.0, True)]


def test_it_says_how_many_hours_are_still_to_come() -> None:
    record = verdict(lived(30, gap, demand=lambda start: season(start) * (1.5 if start >= CHANGED + 9 * HOUR else 1)))
    assert (record.state, record.scores[0].held) == ("applied", None)
    assert record.scores[0].note == (
        "still collecting: 9 of 20 comparable hours; 21 of 30 hours had other demand or lengths"
    )


def test_a_quiet_day_is_no_test() -> None:
    saturday = CHANGED + 2 * DAY
    hours = [h for h in lived(2 * 24 + 30, gap) if not CHANGED <= h.start < saturday]
    assert (
        verdict(hours).scores[0].note.startswith("still collecting: 0 of 20 comparable hours; 30 hours are alike, but")
    )


def test_demand_is_even_before_anything_is_compared() -> None:
    """Demand grew by 15 %, within what makes an hour comparable; what it did to the gap is not the cap's doing."""

    def demand(start: float) -> float:
        return season(start) * (1.15 if start >= CHANGED else 1.0)

    record = verdict(worse(lived(24 * 7, gap, demand=demand), 1.4))
    assert record.state == "applied"
    assert "so that demand is the same on both sides" in record.scores[0].note


def test_another_setting_that_changed_with_it_spoils_the_comparison() -> None:
    hours = [
        replace(h, settings={**h.settings, "max_num_batched_tokens": 2048 if h.start < CHANGED else 8192})
        for h in lived(30, gap)
    ]
    assert verdict(hours).scores[0].note.endswith("not comparable: max_num_batched_tokens changed as well")


def test_hours_of_the_old_process_are_not_after_the_change() -> None:
    """The configuration said 24 on Thursday; the engine was restarted with it 30 hours later."""
    hours = [h if h.start >= CHANGED + 30 * HOUR else replace(h, epoch=1.0) for h in lived(30 + 19, gap)]
    assert verdict(hours).scores[0].note.startswith("still collecting: 19 of 20 comparable hours")


def test_a_change_that_is_noticed_hours_later_is_compared_with_the_time_before_it_was_made() -> None:
    record = verdict(lived(30, gap), applied=CHANGED + 5 * HOUR)
    assert (record.state, record.scores[0].hours) == ("verified", 25)


def test_younger_than_a_week_the_same_hours_of_working_days_are_compared_and_it_says_so() -> None:
    record = verdict(lived(30, gap, before_days=2))
    assert (record.state, record.scores[0].note) == (
        "verified",
        "30 same hours of the day, as less than a week before it is known",
    )


def test_of_replicas_all_demand_counts_and_of_a_flag_what_reaches_one_engine() -> None:
    def on(engines: float, start: float) -> HourFacts:
        plain = hour(start, gap(start), cap=16)
        return also(plain, **{ENGINES: engines})

    hours = [on(3.0 if start >= CHANGED else 2.0, start) for start in np.arange(-168, 30) * HOUR + CHANGED]
    assert verdict(hours, knob="replicas").scores[0].hours == 30
    assert verdict(hours).scores[0].hours is None


def test_longer_prompts_are_other_traffic() -> None:
    hours = [h if h.start < CHANGED else also(h, **{PROMPT: 1_126.0}) for h in lived(30, gap)]
    assert verdict(hours).state == "applied"


def test_the_week_that_follows_decides_the_rest_without_what_cannot_be_told() -> None:
    silent = Prediction("slo_attainment_tpot", 0.9, 0.99, None, "ratio")
    assert verdict(lived(100, gap), NO_WORSE, silent).state == "applied"
    assert verdict(lived(168, gap), NO_WORSE, silent).state == "verified"
    assert verdict(worse(lived(100, gap), 1.4), NO_WORSE, silent).state == "regressed"


@settings(max_examples=30, deadline=None)
@given(st.floats(0.6, 1.6), st.integers(0, 2**32 - 1))
def test_an_hour_like_the_mean_flips_no_verdict(by: float, seed: int) -> None:
    """All hours are alike but for noise; a last one that reads what the others did on average is added."""
    noise = np.random.default_rng(seed).normal(1.0, 0.05, 400)

    def itl(start: float) -> float:
        return float(0.02 * noise[int((start - CHANGED) / HOUR) + 168])

    hours = worse(lived(36, itl, demand=lambda _: 2.0), by)
    first = verdict(hours)
    score = first.scores[0]
    assert score.after is not None
    assert score.before is not None
    start = CHANGED + 36 * HOUR
    partner = int((start - 7 * DAY - hours[0].start) / HOUR)
    hours[partner] = hour(hours[partner].start, score.before, demand=2.0)
    again = verdict([*hours, hour(start, score.after, demand=2.0)])
    assert {first.state, again.state} != {"verified", "regressed"}
    assert first.state in ("applied", again.state)


def noisy(seed: int, by: float) -> list[HourFacts]:
    """A week before and eight days after; noise of 8 % from hour to hour that lasts, and of 5 % from day to day."""
    random = np.random.default_rng(seed)
    lasting = np.zeros(15 * 24)
    for i in range(1, lasting.size):
        lasting[i] = 0.7 * lasting[i - 1] + random.normal(0, 0.08 * 0.51**0.5)
    daily, rush = np.repeat(random.normal(0, 0.05, 15), 24), np.exp(random.normal(0, 0.08, lasting.size))
    factor = np.exp(lasting + daily)

    def place(start: float) -> int:
        return int((start - CHANGED) / HOUR) + 168

    hours = lived(
        8 * 24 - 1,
        lambda s: float((0.010 + 0.006 * season(s) * rush[place(s)]) * factor[place(s)]),
        demand=lambda s: float(season(s) * rush[place(s)]),
    )
    return worse(hours, by)


def ends(by: float, lives: int) -> list[str]:
    """How lives end that are looked at every twelve hours for eight days."""
    out = []
    for seed in range(lives):
        hours = noisy(seed, by)
        states = (verdict(hours[: 168 + after]).state for after in range(30, 190, 12))
        out.append(next((s for s in states if s != "applied"), "applied"))
    return out


def test_noise_is_hardly_ever_a_regression_and_a_real_one_is_found() -> None:
    calm, bad = ends(1.0, 40), ends(1.3, 40)
    assert calm.count("regressed") == 0
    assert calm.count("verified") >= 32
    assert bad.count("verified") == 0
    assert bad.count("regressed") >= 32


@given(st.lists(st.floats(0.75, 1.25), min_size=40, max_size=40))
@settings(max_examples=30, deadline=None)
def test_pairs_carry_the_same_demand_whatever_it_was(rush: list[float]) -> None:
    hours = lived(40, gap, demand=lambda s: season(s) * (rush[int((s - CHANGED) / HOUR)] if s >= CHANGED else 1.0))
    record = verdict(hours)
    pairs = paired(replace(record, state="applied"), hours, Terms()).pairs
    logs = [np.log(p.after.figures[DEMAND] / p.before[0].figures[DEMAND]) for p in pairs]
    assert abs(float(np.sum(logs))) <= 0.02 * len(logs) + 1e-9
