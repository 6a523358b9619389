from __future__ import annotations

import numpy as np
import pytest

from advisor.domain.histogram import Floats, Ints, TokenCounts
from advisor.domain.length_history import LengthHistory, bin_of
from advisor.estimates import length_bound
from advisor.estimates.length_slots import Slots

HOUR, DAY = 3600.0, 86_400.0


def table(seconds: Floats, lengths: Ints) -> Slots:
    start = (seconds // 300 * 300).astype(np.int64)
    nobody = np.zeros(lengths.size, np.int64)
    history = LengthHistory.merge([LengthHistory(300, start, nobody, bin_of(lengths), np.ones_like(lengths))])
    assert history is not None
    return Slots.of(history)


def traffic(n: int, seconds: float, seed: int = 0) -> tuple[Floats, Ints]:
    """Requests of lognormal lengths, mean of the logarithm 7 and spread 0.6, evenly spread over time."""
    random = np.random.default_rng(seed)
    return np.sort(random.random(n) * seconds), np.exp(random.normal(7, 0.6, n)).astype(np.int64)


def test_without_times_the_bound_is_the_order_statistic() -> None:
    bound = length_bound.upper(TokenCounts.of(np.arange(1, 10_001)), None, 99.9)
    assert (bound.tokens, bound.worth, bound.drift) == (9_996, 10_000, 1.0)


def test_it_covers_the_true_percentile_of_steady_traffic() -> None:
    # z(0.999) = 3.0902: the true p99.9 is e^(7 + 0.6 x 3.0902) = 7,003
    bounds = [
        length_bound.upper(TokenCounts.of(x), table(t, x), 99.9).tokens
        for t, x in (traffic(10_000, 2 * HOUR, seed) for seed in range(40))
    ]
    told = [bound for bound in bounds if bound is not None]
    assert len(told) == 40
    assert np.mean(np.array(told) >= 7_003) >= 0.9
    assert np.median(told) < 1.25 * 7_003


def test_bursts_of_long_requests_make_it_unmeasurable() -> None:
    t, x = traffic(10_000, 2 * HOUR)
    burst = (t > 1.5 * HOUR) & (t < 1.5 * HOUR + 300)
    bound = length_bound.upper(TokenCounts.of(x + burst * 30_000), table(t, x + burst * 30_000), 99.9)
    assert bound.tokens is None
    assert bound.worth < 2_995
    assert "long ones come in bursts" in bound.story


def test_the_latest_requests_count_where_they_surely_need_more() -> None:
    t, x = traffic(200_000, 10 * DAY)
    # 0.2 % of the last three days are 60,000 long: 0.06 % of all, under the promise
    late = (t > 7 * DAY) & (np.arange(t.size) % 500 == 0)
    bound = length_bound.upper(TokenCounts.of(np.where(late, 60_000, x)), table(t, np.where(late, 60_000, x)), 99.9)
    assert bound.tokens == 60_000
    assert "since lengths changed" in bound.story


def test_the_margin_becomes_the_drift_that_the_past_shows() -> None:
    t, x = traffic(200_000, 8 * DAY)
    grown = (x * np.where(t > 4 * DAY, 2.0, 1.0)).astype(np.int64)
    found = length_bound.drift(table(t, grown), 99.9)
    # twice as long since the middle, against an upper bound that is some percent above the first half's percentile
    assert 1.8 < found <= 2.1
    assert length_bound.drift(table(t, x), 99.9) == pytest.approx(1.0, abs=0.06)


def test_since_a_change_the_later_requests_bound_it_alone() -> None:
    t, x = traffic(60_000, 12 * HOUR)
    moved = np.where(t > 8 * HOUR, x * 6, x)
    bound = length_bound.upper(TokenCounts.of(moved), table(t, moved), 99.9)
    # six times 7,003 is 42,018
    assert bound.tokens is not None
    assert 42_018 <= bound.tokens < 1.35 * 42_018
    assert "since lengths changed" in bound.story
