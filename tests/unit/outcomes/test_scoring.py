"""Predictions held against what happened."""

from __future__ import annotations

import pytest

from advisor.domain.advice import Prediction
from advisor.domain.fact import Fact, measured, unknown
from advisor.domain.life import AdviceRecord
from advisor.outcomes import Terms, advance
from advisor.outcomes.scoring import holds
from tests.unit.outcomes.lives import DAY, HOUR, NOW, evaluation, raise_cap


@pytest.mark.parametrize(
    ("fact", "held"),
    [
        (measured(0.61, source="log"), True),
        (measured(0.769, source="log"), True),  # 0.7 + 10 % is 0.77
        (measured(0.78, source="log"), False),
        (measured(0.451, source="log"), True),  # 0.5 - 10 % is 0.45
        (measured(0.44, source="log"), False),
        (measured(0.9, low=0.75, high=1.1, source="log"), True),  # its own interval reaches what was predicted
        (measured(None, low=0.5, high=1.0, source="histogram"), True),
        (measured(None, low=1.0, high=2.0, source="histogram"), False),
        (measured(None, low=1.0, source="histogram"), False),
        (unknown("no scrape"), None),
    ],
)
def test_a_prediction_holds_within_its_noise(fact: Fact, *, held: bool | None) -> None:
    assert holds(Prediction("ttft_p99", 1.84, 0.5, 0.7, "seconds"), fact, Terms()) is held


@pytest.mark.parametrize(
    ("low", "high", "after", "held"),
    [
        (0.99, None, 0.986, True),  # a tenth of the 1 % that may miss is less than the least noise, half a percent
        (0.99, None, 0.98, False),
        (None, 0.061, 0.067, True),
        (None, 0.061, 0.068, False),
        (0.0, 0.0, 0.004, True),
        (0.0, 0.0, 0.02, False),
        (0.0, 1.4, 1.5, True),  # preemptions per request may exceed 1
        (0.0, 1.4, 1.6, False),
    ],
)
def test_the_noise_of_a_ratio_is_a_tenth_of_its_nearer_end(
    low: float | None, high: float | None, after: float, *, held: bool
) -> None:
    assert holds(Prediction("slo_attainment", None, low, high, "ratio"), measured(after, source="log"), Terms()) is held


def judged(days: float = 8.0, /, **facts: Fact) -> AdviceRecord:
    """Advice of NOW, applied an hour later and looked at after eight days, without any figure by the hour."""
    records = advance((), [evaluation(raise_cap())], NOW)
    records = advance(records, [evaluation(running=24.0)], NOW + HOUR)
    (record,) = advance(records, [evaluation(running=24.0, facts=facts)], NOW + days * DAY)
    return record


def test_one_prediction_that_clearly_failed_is_a_regression() -> None:
    assert judged(ttft_p99=measured(2.4, source="log")).state == "regressed"


@pytest.mark.parametrize(
    ("facts", "note"),
    [
        (
            {"demand_requests_per_second_mean": measured(2.7, source="log")},
            "not comparable: demand_requests_per_second_mean went from 2 req/s to 2.7 req/s",
        ),
        (
            {"total_tokens_p50": measured(1_000.0, source="log")},
            "not comparable: total_tokens_p50 went from 1,400 to 1,000",
        ),
        (
            {"demand_requests_per_second_mean": unknown("?"), "total_tokens_p50": unknown("?")},
            "not comparable: neither demand nor lengths are known before and after",
        ),
        ({"ttft_p99": unknown("no bucket")}, "no bucket"),
        (
            {"ttft_p99": measured(0.6, source="log").over("2026-11-24T16:00:00Z/2026-12-07T16:00:00Z")},
            "it still covers days from before the change",
        ),
    ],
)
def test_what_cannot_be_compared_stays_applied_with_a_note(facts: dict[str, Fact], note: str) -> None:
    record = judged(**{"ttft_p99": measured(0.6, source="log"), **facts})
    assert (record.state, [s.note for s in record.scores], [s.held for s in record.scores]) == (
        "applied",
        [note],
        [None],
    )


def test_a_fact_of_the_new_epoch_is_judged_though_it_began_a_little_before_it_was_noticed() -> None:
    # Noticed at 17:00 on Sunday, restarted at 16:30: 191.0 of 191.5 hours lie after.
    fact = measured(0.6, source="log").over("2026-11-29T16:30:00Z/2026-12-07T16:00:00Z")
    assert judged(ttft_p99=fact).state == "verified"


def test_nothing_is_judged_before_a_day_was_observed() -> None:
    early = judged(ttft_p99=measured(0.6, source="log"), observed_seconds=measured(23 * HOUR, source="gauges"))
    assert (early.state, early.scores) == ("applied", ())


def test_what_is_not_told_hour_by_hour_is_compared_after_a_whole_week() -> None:
    early = judged(2.0, ttft_p99=measured(2.4, source="log"))
    assert (early.state, early.scores[0].note) == (
        "applied",
        "not told hour by hour: compared after a whole week, 2.0 of 7 days so far",
    )


def test_what_does_not_move_with_the_load_needs_no_week() -> None:
    fewer = Prediction("refused_share_now", 0.03, None, 0.001, "ratio")
    records = advance((), [evaluation(raise_cap(prediction=(fewer,)))], NOW)
    records = advance(records, [evaluation(running=24.0)], NOW + HOUR)
    facts = {"refused_share_now": measured(0.0004, source="log")}
    (record,) = advance(records, [evaluation(running=24.0, facts=facts)], NOW + 2 * DAY)
    assert record.state == "verified"


def test_demand_may_differ_by_three_tenths_and_lengths_by_a_quarter() -> None:
    record = judged(
        ttft_p99=measured(0.6, source="log"),
        demand_requests_per_second_mean=measured(2.59, source="log"),
        total_tokens_p50=measured(1_051.0, source="log"),
    )
    assert record.state == "verified"
