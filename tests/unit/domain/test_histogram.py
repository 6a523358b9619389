from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.histogram import Buckets, JointCounts, TokenCounts

LENGTHS = st.lists(st.integers(0, 200_000), max_size=40)
PAIRS = st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 2**32 - 1)), max_size=40)
SHARES = st.floats(0, 1)


def rows(counts: JointCounts) -> list[tuple[int, int, int]]:
    return list(zip(counts.prompt.tolist(), counts.output.tolist(), counts.counts.tolist(), strict=True))


def joint_of(pairs: Sequence[tuple[int, int]]) -> JointCounts:
    return JointCounts.of([p for p, _ in pairs], [o for _, o in pairs])


def test_token_counts_are_sorted_distinct_and_positive() -> None:
    counts = TokenCounts.of([7, 3, 7, 5], [1, 2, 3, 0])
    assert (counts.lengths.tolist(), counts.counts.tolist()) == ([3, 7], [2, 4])
    assert (counts.n, counts.largest) == (6, 7)
    assert counts.mean == pytest.approx((2 * 3 + 4 * 7) / 6)
    assert [counts.at_rank(k) for k in range(1, 7)] == [3, 3, 7, 7, 7, 7]
    assert [counts.above(length) for length in (2, 3, 6.5, 7)] == [6, 4, 4, 0]


def test_between_two_edges_the_sum_narrows_the_share() -> None:
    # At most (1,000 x 50 - 33,500) / 20 = 825 within 30 ms, with half a percent of the sum for scrapes: 833.4.
    told = Buckets(np.array([0.025, 0.05]), np.array([0.0, 1000.0, 0.0]), 33.5).share_within(0.03)
    assert told == pytest.approx((0.0, 0.833375))


def test_the_sum_tells_when_hardly_any_are_beyond() -> None:
    # The sum leaves 1,000 x 0.001 x 1.005 s above the edge of 25 ms, which 60 ms could take 28.7 times.
    told = Buckets(np.array([0.025, 0.1]), np.array([0.0, 1000.0, 0.0]), 26.0).share_within(0.06)
    assert told == pytest.approx((1 - (26.0 * 1.005 - 25.0) / 0.035 / 1000, 1.0))


def test_a_sum_that_contradicts_the_buckets_tells_nothing() -> None:
    for total in (1.0, 90.0):
        assert Buckets(np.array([0.025, 0.05]), np.array([0.0, 1000.0, 0.0]), total).share_within(0.03) == (0.0, 1.0)


@given(
    st.lists(st.floats(0.001, 100.0), min_size=1, max_size=60),
    st.lists(st.floats(0.01, 90.0), min_size=1, max_size=8, unique=True).map(sorted),
    st.floats(0.001, 120.0),
)
def test_the_share_within_contains_the_true_one(values: list[float], edges: list[float], bound: float) -> None:
    counts = np.histogram(values, [-np.inf, *np.nextafter(edges, np.inf), np.inf])[0]
    low, high = Buckets(np.array(edges), counts.astype(float), sum(values)).share_within(bound)
    if not any(np.isclose(bound, edges, rtol=1e-8)):
        assert low - 1e-9 <= np.mean(np.array(values) <= bound) <= high + 1e-9


@given(LENGTHS.filter(bool), SHARES)
def test_the_quantile_is_numpys(lengths: list[int], q: float) -> None:
    assert TokenCounts.of(lengths).quantile(q) == pytest.approx(float(np.quantile(lengths, q)), rel=1e-9, abs=1e-6)


@given(LENGTHS.filter(bool), SHARES, SHARES)
def test_the_quantile_grows_with_q(lengths: list[int], one: float, other: float) -> None:
    counts = TokenCounts.of(lengths)
    assert counts.quantile(min(one, other)) <= counts.quantile(max(one, other)) + 1e-6


@given(st.lists(LENGTHS, max_size=5))
def test_merging_lengths_does_not_depend_on_the_order(parts: list[list[int]]) -> None:
    counts = [TokenCounts.of(part) for part in parts]
    whole = TokenCounts.of([length for part in parts for length in part])
    for merged in (TokenCounts.merge(counts), TokenCounts.merge(reversed(counts))):
        assert merged.lengths.tolist() == whole.lengths.tolist()
        assert merged.counts.tolist() == whole.counts.tolist()


@given(st.lists(PAIRS, max_size=5))
def test_merging_pairs_does_not_depend_on_the_order(parts: list[list[tuple[int, int]]]) -> None:
    counts = [joint_of(part) for part in parts]
    whole = rows(joint_of([pair for part in parts for pair in part]))
    assert rows(JointCounts.merge(counts)) == rows(JointCounts.merge(reversed(counts))) == whole


def test_a_pair_stays_a_pair_and_its_total_is_of_one_request() -> None:
    counts = JointCounts.of([1000, 10, 1000], [5, 900, 5])
    assert rows(counts) == [(10, 900, 1), (1000, 5, 2)]
    # no request has 1000 + 900
    assert counts.totals().lengths.tolist() == [910, 1005]
    assert (counts.prompts().largest, counts.outputs().largest) == (1000, 900)


def test_nothing_is_nothing() -> None:
    assert TokenCounts.merge([]).n == JointCounts.merge([]).n == 0
    assert Buckets.merge([]) is None
    assert Buckets.merge([Buckets(np.array([1.0]), np.zeros(2))]) is None


HUNDRED = Buckets.from_cumulative([10, 20, 50], [20, 90, 99, 100], total=1700.0)


def test_buckets_from_cumulative_counts() -> None:
    assert HUNDRED.counts.tolist() == [20, 70, 9, 1]
    assert (HUNDRED.n, HUNDRED.mean) == (100, 17.0)
    # a counter that was read between two increments is no negative bucket
    assert Buckets.from_cumulative([10, 20], [5, 4, 6]).counts.tolist() == [5, 0, 2]


@pytest.mark.parametrize(
    ("q", "bounds"),
    [(0.1, (0, 10)), (0.2, (0, 10)), (0.21, (10, 20)), (0.9, (10, 20)), (0.99, (20, 50)), (0.995, (50, math.inf))],
)
def test_a_quantile_lies_between_edges(q: float, bounds: tuple[float, float]) -> None:
    assert HUNDRED.quantile_bounds(q) == bounds


@pytest.mark.parametrize(
    ("bound", "share"), [(20, (0.9, 0.9)), (30, (0.9, 0.99)), (50, (0.99, 0.99)), (60, (0.99, 1.0)), (5, (0.0, 0.2))]
)
def test_a_share_is_known_only_at_an_edge(bound: float, share: tuple[float, float]) -> None:
    assert HUNDRED.share_within(bound) == pytest.approx(share)


def test_a_mean_needs_the_sum() -> None:
    assert Buckets(np.array([1.0]), np.array([3.0, 0.0])).mean is None
    assert Buckets(np.array([1.0]), np.zeros(2), 0.0).mean is None


def test_merging_histograms_keeps_only_shared_edges() -> None:
    other = Buckets.from_cumulative([10, 50, 100], [1, 8, 10, 10], total=300.0)
    merged = Buckets.merge([HUNDRED, other])
    assert merged is not None
    assert merged.edges.tolist() == [10, 50]
    # at most 10: 20 + 1; at most 50: 99 + 8; all: 100 + 10
    assert np.cumsum(merged.counts).tolist() == [21, 107, 110]
    assert merged.total == 2000.0


def test_a_sum_that_one_part_lacks_is_not_made_up() -> None:
    merged = Buckets.merge([HUNDRED, Buckets(HUNDRED.edges, HUNDRED.counts)])
    assert merged is not None
    assert merged.n == 200
    assert merged.total is None


@given(st.lists(st.lists(st.integers(0, 50), min_size=4, max_size=4), min_size=1, max_size=4))
def test_merging_histograms_does_not_depend_on_the_order(parts: list[list[int]]) -> None:
    listed = [Buckets(np.array([1.0, 2.0, 5.0]), np.array(counts, float)) for counts in parts]
    one, other = Buckets.merge(listed), Buckets.merge(reversed(listed))
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.counts.tolist() == other.counts.tolist() == np.sum(parts, axis=0).tolist()


@given(st.lists(st.integers(1, 120), min_size=1, max_size=60), st.floats(0.001, 1))
def test_a_quantile_of_buckets_contains_the_order_statistic(values: list[int], q: float) -> None:
    edges = np.array([10.0, 20.0, 50.0, 100.0])
    counts = np.bincount(np.searchsorted(edges, values), minlength=5)
    # the middle of a rank is beyond doubt: rounding cannot move it to its neighbour
    rank = math.ceil(q * len(values))
    low, high = Buckets(edges, counts.astype(float)).quantile_bounds((rank - 0.5) / len(values))
    assert low < sorted(values)[rank - 1] <= high
