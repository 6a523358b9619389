from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.evidence import as_floats
from advisor.domain.histogram import TokenCounts
from advisor.estimates import lengths
from advisor.estimates.effective_sample import design_effect, scatter
from advisor.estimates.length_slots import Slots


def slots(rows: list[list[float]], seconds: float = 300.0) -> Slots:
    """Rows of requests per bin, one a slot; bins hold 10, 20, 40 ... tokens at most."""
    counts = np.array(rows, float)
    times, edges = seconds * np.arange(len(rows)), 10.0 * 2 ** np.arange(counts.shape[1])
    return Slots(seconds, as_floats(times), counts, as_floats(edges))


def test_four_blocks_by_hand() -> None:
    # p = 40/400 = 0.1, each block expects 10 with a variance of 9: 4 x 100 / 9 over three degrees of freedom
    every, above = np.full(4, 100.0), np.array([0.0, 0.0, 20.0, 20.0])
    assert scatter(as_floats(300.0 * np.arange(4)), every, above, np.full(4, 0.1)) == pytest.approx(400 / 27)


def test_what_chance_explains_counts_for_nothing() -> None:
    # 8, 12, 9, 11 of 100: (4 + 4 + 1 + 1) / 9 / 3 = 0.37
    above = np.array([8.0, 12.0, 9.0, 11.0])
    assert scatter(as_floats(300.0 * np.arange(4)), np.full(4, 100.0), above, np.full(4, 0.1)) == 1.0


def test_a_handful_above_tells_nothing() -> None:
    above = np.array([4.0, 0.0, 0.0, 0.0])
    assert scatter(as_floats(300.0 * np.arange(4)), np.full(4, 100.0), above, np.full(4, 0.01)) == 1.0


def test_no_requests_and_one_slot_have_no_effect() -> None:
    assert design_effect(slots([[0.0, 0.0]]), 0.99) == 1.0
    assert design_effect(slots([[990.0, 10.0]]), 0.99) == 1.0


def test_independent_requests_are_worth_themselves() -> None:
    random = np.random.default_rng(1)
    effects = []
    for _ in range(40):
        above = random.binomial(500, 0.01, 64).astype(float)
        effects.append(design_effect(slots(np.stack([500 - above, above], axis=1).tolist()), 0.99))
    assert np.mean(np.array(effects) == 1.0) > 0.75
    assert max(effects) < 3


def test_bursts_are_worth_their_number() -> None:
    # long requests come twenty at a time: their variance is twenty times that of single ones
    random = np.random.default_rng(2)
    effects = []
    for _ in range(40):
        above = 20.0 * random.poisson(0.25, 64)
        effects.append(design_effect(slots(np.stack([500 - above, above], axis=1).tolist()), 0.98))
    # the largest of three block widths is told, which is more than their mean
    assert 17 < float(np.median(effects)) < 32


def test_of_the_scatter_of_more_requests_a_part_is_owed() -> None:
    # 4 % in the second bin in one half and none in the other, 2 % in all. Eight blocks of 8,000 expect 160 and have 320
    # or 0: 8 x 160^2 / (160 x 0.98) / 7 = 186.6; of that a quarter is owed by the longest 0.5 %
    table = slots([[960.0, 40.0, 0.0]] * 32 + [[1_000.0, 0.0, 0.0]] * 32)
    assert design_effect(table, 0.995) == pytest.approx(1 + (8 * 160 / 0.98 / 7 - 1) / 4)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 20)), min_size=1, max_size=60))
def test_the_effect_is_a_number_of_one_at_least(rows: list[tuple[int, int]]) -> None:
    effect = design_effect(slots([[float(a), float(b)] for a, b in rows]), 0.99)
    assert effect >= 1.0
    assert np.isfinite(effect)


def test_clustered_requests_bound_like_fewer() -> None:
    # 30,000 with an effect of 3 bound like 10,000: rank 9,996 of 10,000, so 29,988 of 30,000
    counts = TokenCounts.of(np.arange(1, 30_001))
    assert lengths.upper_bound(counts, 99.9, effect=3.0) == 29_988
    # worth 2,500 and 3,000 of them: ln 0.05 / ln 0.999 = 2,994.2 are needed
    assert lengths.upper_bound(counts, 99.9, effect=12.0) is None
    assert lengths.upper_bound(counts, 99.9, effect=10.0) == 30_000


@settings(max_examples=60, deadline=None)
@given(st.integers(3_000, 60_000), st.floats(1.0, 20.0), st.sampled_from([99.0, 99.9]))
def test_a_larger_effect_never_lowers_a_bound(n: int, effect: float, q: float) -> None:
    counts = TokenCounts.of(np.arange(1, n + 1))
    alone, clustered = lengths.upper_bound(counts, q), lengths.upper_bound(counts, q, effect=effect)
    assert alone is not None
    assert clustered is None or clustered >= alone
