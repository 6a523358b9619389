from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from advisor.domain.evidence import StatedPercentiles
from advisor.domain.histogram import Buckets, TokenCounts
from advisor.estimates import lengths
from tests.unit.estimates.evidence import NOTHING, buckets, engine, joint, log


def one_to(n: int) -> TokenCounts:
    """Lengths 1..n, each once: a rank is its own length."""
    return TokenCounts.of(np.arange(1, n + 1))


@pytest.mark.parametrize(
    # from ln 0.05 / ln q: how many it takes to bound a quantile from above with 95 %
    ("q", "least"),
    [(99.0, 299), (99.9, 2_995), (99.99, 29_956)],
)
def test_so_many_requests_it_takes_to_bound_a_quantile(q: float, least: int) -> None:
    assert lengths.upper_bound(one_to(least - 1), q) is None
    assert lengths.upper_bound(one_to(least), q) == least


def test_two_sided_it_takes_more() -> None:
    # ln 0.025 / ln 0.999 = 3,687.03
    assert lengths.percentile(one_to(3_687), 99.9, "log").high is None
    assert lengths.percentile(one_to(3_688), 99.9, "log").high == 3_688


def test_ranks_of_ten_thousand() -> None:
    assert lengths.ranks(10_000, 0.999) == (9_983, 9_997)
    # 10 are expected above it: 17 or more with 2.7 %, 18 or more with 1.4 %; 3 or fewer with 1.0 %, 4 with 2.9 %
    fact = lengths.percentile(one_to(10_000), 99.9, "log")
    # numpy's default between the 9,990th and the 9,991st: 9,990.001
    assert (fact.low, fact.high, fact.n) == (9_983, 9_997, 10_000)
    assert fact.value == pytest.approx(9_990.001, abs=1e-6)


def test_a_median_needs_six() -> None:
    # 2 x 0.5^5 = 6.25 % of samples of five lie on one side of the median
    assert lengths.ranks(5, 0.5) == (None, None)
    assert lengths.ranks(6, 0.5) == (1, 6)


def test_one_request_says_nothing_of_a_median() -> None:
    fact = lengths.percentile(one_to(1), 50.0, "log")
    assert fact.unknown == "1 requests cannot bound a p50 from above"


def test_equal_lengths_have_no_spread() -> None:
    fact = lengths.percentile(TokenCounts.of([700], [5_000]), 99.9, "log")
    assert (fact.low, fact.value, fact.high) == (700, 700, 700)


@pytest.mark.parametrize(("p", "k"), [(0.0, 0), (1.0, 50)])
def test_the_quantiles_of_a_sure_thing(p: float, k: int) -> None:
    assert lengths.binomial_quantile(0.95, 50, p) == k


@given(st.floats(0.01, 0.99), st.integers(0, 5_000), st.floats(0.001, 0.999))
def test_the_binomial_quantile_is_the_smallest(share: float, n: int, p: float) -> None:
    k = lengths.binomial_quantile(share, n, p)
    assert binom.cdf(k, n, p) >= share - 1e-9
    assert k == 0 or binom.cdf(k - 1, n, p) < share + 1e-9


def test_unseen_requests_are_taken_for_the_longest() -> None:
    # 10,000 with p99.9: rank 9,996 of 10,000; with 3 unseen the same rank of fewer that are known
    assert lengths.upper_bound(one_to(10_000), 99.9) == 9_996
    assert lengths.upper_bound(one_to(10_000), 99.9, unseen=3) == 9_999
    assert lengths.upper_bound(one_to(10_000), 99.9, unseen=20) is None


def test_uniform_marginals_have_the_bounds_of_the_book() -> None:
    def uniform(u: float) -> tuple[float, float]:
        return u, u

    assert lengths.sharp_bounds(uniform, uniform, 0.9) == pytest.approx((0.9, 1.9))


def test_bounds_of_two_points_by_hand() -> None:
    # prompt and output are 0 or 10 with one half each: their sum at 60 % is 0 + 10 at least (of 0.6 one has passed
    # its half) and 10 + 10 at most (1 + 0.6 = 0.8 + 0.8)
    def coin(u: float) -> tuple[float, float]:
        return (0.0, 0.0) if u <= 0.5 else (10.0, 10.0)

    assert lengths.sharp_bounds(coin, coin, 0.6) == (10.0, 20.0)
    # at 40 % neither needs to have passed; at most one has (1 + 0.4 = 0.9 + 0.5)
    assert lengths.sharp_bounds(coin, coin, 0.4) == (0.0, 10.0)


def of_sample(values: list[int]) -> lengths.Bounds:
    ordered = np.sort(values)

    def quantile(u: float) -> tuple[float, float]:
        value = float(ordered[max(min(int(np.ceil(u * ordered.size - 1e-9)), ordered.size), 1) - 1])
        return value, value

    return quantile


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_the_true_quantile_of_any_sample_lies_within_the_bounds(pairs: list[tuple[int, int]], q: float) -> None:
    rank = int(np.ceil(q * len(pairs)))
    middle = (rank - 0.5) / len(pairs)
    low, high = lengths.sharp_bounds(of_sample([p for p, _ in pairs]), of_sample([o for _, o in pairs]), middle)
    assert low <= sorted(p + o for p, o in pairs)[rank - 1] <= high


def test_longest_with_longest_is_no_upper_bound() -> None:
    # prompt 1 or 2, output 1 or 2, each half; sorted together the sums are 2, 4 and the median is 2; crossed it is 3
    pairs = [(1, 2), (2, 1)]
    _, high = lengths.sharp_bounds(of_sample([p for p, _ in pairs]), of_sample([o for _, o in pairs]), 0.4)
    assert high >= 3


EDGES = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]


@given(
    st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99)), min_size=40, max_size=200), st.sampled_from([50, 90])
)
def test_the_interval_from_histograms_contains_the_percentile_of_the_sample(
    pairs: list[tuple[int, int]], q: int
) -> None:
    prompt, output = (
        buckets(EDGES, np.bincount(np.searchsorted(EDGES, side), minlength=8).tolist())
        for side in ([p for p, _ in pairs], [o for _, o in pairs])
    )
    fact = lengths.total_from_marginals(prompt, output, q)
    truth = sorted(p + o for p, o in pairs)[int(np.ceil(q / 100 * len(pairs))) - 1]
    assert (fact.low or 0) <= truth <= (fact.high or np.inf)


def histograms(n: float) -> dict[str, Buckets]:
    return {
        "prompt_tokens": buckets([1000, 2000, 5000], [0.9 * n, 0.1 * n, 0, 0]),
        "output_tokens": buckets([100, 200, 500], [0.5 * n, 0.5 * n, 0, 0]),
    }


def test_from_histograms_only_an_interval_between_edges() -> None:
    facts = lengths.facts(replace(NOTHING, engines=(engine(lengths=histograms(10_000)),)))
    prompt, total = facts["prompt_tokens_p99"], facts["total_tokens_p999"]
    assert (prompt.value, prompt.low, prompt.high) == (None, 1000, 2000)
    # at least the longest prompts with the shortest outputs, at most both at once
    assert (total.value, total.low, total.high) == (None, 1000, 2200)


def test_three_requests_in_a_histogram_do_not_bound_a_p999() -> None:
    facts = lengths.facts(replace(NOTHING, engines=(engine(lengths=histograms(3)),)))
    assert facts["total_tokens_p999"].high is None
    assert facts["prompt_tokens_p50"].unknown == "3 requests say nothing of a p50"


def test_mass_above_the_last_edge_has_no_upper_bound() -> None:
    tail = {"prompt_tokens": buckets([1000], [9_900, 100])}
    fact = lengths.facts(replace(NOTHING, engines=(engine(lengths=tail),)))["prompt_tokens_p999"]
    assert (fact.value, fact.low, fact.high) == (None, 1000, None)


def test_the_log_beats_counts_beat_stated_beat_histograms() -> None:
    sources = {
        "log": log(joint((100, 11, 5_000))),
        "joint": joint((200, 22, 5_000)),
        "percentiles": StatedPercentiles({99.9: 3_333}),
        "engines": (engine(lengths=histograms(10_000)),),
    }
    best = [111, 222, 3_333, None]
    names = list(sources)
    for k, value in enumerate(best):
        known = replace(NOTHING, **{name: sources[name] for name in names[k:]})  # type: ignore[arg-type]
        assert lengths.facts(known)["total_tokens_p999"].value == value


def test_an_empty_log_hides_nothing() -> None:
    known = replace(NOTHING, log=log(), joint=joint(), totals=TokenCounts.of([50], [5_000]))
    assert lengths.facts(known)["total_tokens_p50"].value == 50


def test_nothing_read_is_unknown_with_what_to_give() -> None:
    for fact in itertools.islice(lengths.facts(NOTHING).values(), 12):
        assert fact.unknown == lengths.NO_LENGTHS


def test_what_clients_declare() -> None:
    known = replace(NOTHING, log=log(joint((10, 10, 9)), declared=[4096] * 5_000))
    assert lengths.facts(known)["declared_tokens_p999"].value == 4096
