"""How many sequences fit at a promised preempted share: gamma form, folded distribution, the two admissions."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.histogram import JointCounts
from advisor.estimates.overflow import Growth, Promise, folded_ceiling, gamma_ceiling
from tests.unit.estimates.evidence import joint

POOLS, PROMISES = st.floats(1, 1e7), st.floats(1e-6, 0.5)
LENGTHS = st.integers(1, 5_000)
ROWS = st.lists(st.tuples(LENGTHS, LENGTHS, st.integers(1, 9)), min_size=1, max_size=5)
CHUNKS = st.sampled_from([0, 512, 2048])
MIX = joint((1000, 200, 1), (1500, 400, 1), (500, 100, 1))


def growth_of(counts: JointCounts, chunk: int = 0) -> Growth:
    return Growth(counts.prompts().mean, counts.outputs().mean, chunk, counts.prompts())


@pytest.mark.parametrize(
    # a chat trace of 19,366 requests, mean 1,232 and sd 715 tokens in flight: a normal sum gives 301, 293 and so on
    ("pool", "risk", "ceiling"),
    [
        (400_000, 0.1, 311),
        (400_000, 0.01, 301),
        (400_000, 0.001, 293),
        (100_000, 0.1, 74),
        (100_000, 0.01, 69),
        (100_000, 0.001, 65),
    ],
)
def test_the_risk_of_a_chat_trace(pool: float, risk: float, ceiling: int) -> None:
    assert gamma_ceiling(1232, 715, pool, Promise(risk)) == pytest.approx(ceiling, abs=1)


def test_exponential_occupancies_add_to_an_erlang_sum() -> None:
    # sd = mean: P(sum of 2 > 4.744 means) = e^-4.744 (1 + 4.744) = 5.0 %; of 3: e^-4.744 (1 + 4.744 + 11.25) = 14.8 %
    assert gamma_ceiling(1000, 1000, 4_744, Promise(0.0501)) == 2
    assert gamma_ceiling(1000, 1000, 4_744, Promise(0.0499)) == 1
    assert gamma_ceiling(1000, 1000, 4_744, Promise(0.149)) == 3


def test_without_spread_the_pool_is_divided() -> None:
    assert gamma_ceiling(1000, 0, 10_500, Promise(0.01)) == 10
    assert gamma_ceiling(1000, 0, 10_500, Promise(0.01, Growth(900, 200))) == 10


def test_no_promise_seats_more_than_the_pool_holds_on_average() -> None:
    # 2,048 in and 28 out: V = 2,049 and 28 x 0.5 / 2,049 = 0.7 % even where the cache is overfull half of the time
    answers = Growth(2_048, 28)
    assert answers.share(0.5, 0.0, 20) < 0.01
    assert gamma_ceiling(2000, 1000, 100_000, Promise(0.01, answers)) == 50
    assert gamma_ceiling(2000, 1000, 100_000, Promise(1.0)) == 50


def test_where_more_is_not_known_the_cache_is_overfull_no_more_often() -> None:
    # the same 2,048 in and 28 out: a share of 0.7 % would be kept at 50, an overflow of 1 % only at
    # (sqrt(2.33^2 x 1,000^2 + 4 x 2,000 x 100,000) - 2.33 x 1,000)^2 / 4,000^2 = 42.3 by a normal sum
    careful = gamma_ceiling(2000, 1000, 100_000, Promise(0.01, Growth(2_048, 28), overfull=0.01))
    assert careful == pytest.approx(42, abs=1)


@pytest.mark.parametrize("promise", [0.0, 1.0])
def test_no_risk_at_all_and_every_risk_have_an_answer(promise: float) -> None:
    assert 0 < gamma_ceiling(1000, 500, 50_000, Promise(promise)) <= 50
    assert 0 < folded_ceiling(MIX, 2048, 50_000, Promise(promise, growth_of(MIX))) < 50


@pytest.mark.parametrize("pool", [0.0, -5_000.0])
def test_a_pool_that_a_shared_prefix_fills_holds_nobody(pool: float) -> None:
    assert gamma_ceiling(1000, 500, pool, Promise(0.01)) == 0
    assert folded_ceiling(MIX, 2048, pool, Promise(0.01)) == 0


def test_two_prompts_that_just_fit() -> None:
    # 2,048 in and 1 out hold 0..2,048 in one step and 2,048..2,049 in the other: two never exceed 4,098, three often do
    assert folded_ceiling(joint((2048, 1, 10)), 2048, 4_098, Promise(0.01)) == 2


def test_even_spreads_add_to_a_triangle() -> None:
    # no prompt, 1,000 out: held evenly 0..1,000. Two exceed 1,900 with (2,000 - 1,900)^2 / 2 / 1,000^2 = 0.5 %; three
    # exceed it with 1 - (1.9^3 - 3 x 0.9^3) / 6 = 22.1 %
    counts = joint((0, 1000, 7))
    assert folded_ceiling(counts, 2048, 1_900, Promise(0.0060)) == 2
    assert folded_ceiling(counts, 2048, 1_900, Promise(0.0040)) == 1
    assert folded_ceiling(counts, 2048, 1_900, Promise(0.225)) == 3
    assert folded_ceiling(counts, 2048, 1_900, Promise(0.217)) == 2


def test_the_last_block_is_half_empty() -> None:
    # 10 x 1,000 in a pool of 10,000 fit only where blocks waste nothing
    counts = JointCounts.of([1000], [1], [5])
    assert folded_ceiling(counts, 1, 5_000, Promise(0.5)) > folded_ceiling(counts, 1, 5_000, Promise(0.5), block=512)


def test_the_folded_and_the_gamma_form_agree_where_both_hold() -> None:
    # mu = (220,500 + 680,750 + 55,250) / 703 = 1,361; m2 = (243.0 + 1,162.1 + 30.4) 10^6 / 703, so sd = 437
    for growth in (None, growth_of(MIX), growth_of(MIX, 1024)):
        folded = folded_ceiling(MIX, 2048, 100_000, Promise(0.01, growth))
        assert folded == pytest.approx(gamma_ceiling(1361, 437, 100_000, Promise(0.01, growth)), abs=1)


def test_what_an_overflow_costs() -> None:
    # the worked example: V = 1,000 + 200 / 10; 200 x (0.05 / 1,020 + 0.5e-5)
    whole = Growth(1_000, 200)
    assert whole.share(0.05, 1e-5, 10) == pytest.approx(0.01080, abs=1e-5)
    # 9 prompts of 888 and one of 2,008: what the long one wrote makes it longer than 2,048 with e^(-40 / 20) = 13.5 %
    counts = joint((888, 200, 9), (2008, 200, 1))
    chunked = growth_of(counts, 2048)
    assert chunked.prompt == whole.prompt
    # of the others 1,000 / 2,048 end beyond a step of which prompts take 10 x 1,000 / 200 tokens: 1.19 %
    longer = 0.1 * math.exp(-2)
    factor = 1 + (longer + (1 - longer) * 0.0119) * 204.8
    assert chunked.share(0.05, 1e-5, 10) == pytest.approx(0.01080 * factor, rel=2e-3)
    # of prompts known by their mean at most V / C are longer than a chunk
    assert Growth(1_000, 200, 2048).share(0.05, 1e-5, 10) == pytest.approx(0.01080 * (1 + 0.504 * 204.8), rel=2e-3)


@pytest.mark.parametrize(
    # a simulated scheduler, saturated by twice 2,500 requests of log-normal lengths: (median, sigma) of prompt and of
    # output, pool, cap, and the share that it preempted where it admits whole prompts, and where first chunks of 2,048
    ("prompt", "output", "pool", "cap", "whole", "chunked"),
    [
        ((1000, 0.6), (1000, 0.6), 28_557, 9, 0.0055, 0.092),
        ((1000, 0.6), (1000, 0.6), 28_557, 12, 0.15, 1.64),
        ((700, 0.8), (260, 0.7), 48_999, 32, 0.021, 0.072),
        ((4000, 0.7), (180, 0.6), 73_372, 11, 0.0073, 0.77),
    ],
)
def test_what_was_simulated(
    prompt: tuple[float, float], output: tuple[float, float], pool: int, cap: int, whole: float, chunked: float
) -> None:
    """The ceiling for exactly the share that was preempted is the cap that it was preempted at, or little less."""
    counts = lognormal(prompt, output)
    for chunk, seen in ((0, whole), (2048, chunked)):
        ceiling = folded_ceiling(counts, 2048, pool, Promise(seen, growth_of(counts, chunk)), block=16)
        assert cap - 2 <= ceiling <= cap + 1


def lognormal(prompt: tuple[float, float], output: tuple[float, float]) -> JointCounts:
    """Every pair of 40 prompts and 40 outputs at even quantiles."""
    inputs, outputs = (quantiles(*one) for one in (prompt, output))
    return joint(*((i, o, 1) for i in inputs for o in outputs))


def quantiles(median: float, sigma: float) -> list[int]:
    return [round(median * math.exp(sigma * NormalDist().inv_cdf((k + 0.5) / 40))) for k in range(40)]


@given(st.floats(10, 1e4), st.floats(0, 1e4), POOLS, POOLS, PROMISES, PROMISES, CHUNKS)
def test_a_larger_pool_and_a_laxer_promise_hold_no_less(
    mean: float, sd: float, pool: float, other_pool: float, promise: float, other_promise: float, chunk: int
) -> None:
    small, large = sorted((pool, other_pool))
    strict, lax = sorted((promise, other_promise))
    growth = Growth(mean, mean / 2, chunk)
    least = gamma_ceiling(mean, sd, small, Promise(strict, growth))
    assert 0 <= least <= gamma_ceiling(mean, sd, large, Promise(strict, growth))
    assert least <= gamma_ceiling(mean, sd, small, Promise(lax, growth))


@given(st.floats(10, 1e4), st.floats(0, 1e4), POOLS, PROMISES, st.floats(0.01, 100))
def test_a_unit_of_length_changes_nothing(mean: float, sd: float, pool: float, promise: float, unit: float) -> None:
    here = gamma_ceiling(mean, sd, pool, Promise(promise, Growth(mean, mean / 3)))
    there = gamma_ceiling(unit * mean, unit * sd, unit * pool, Promise(promise, Growth(unit * mean, unit * mean / 3)))
    assert here == pytest.approx(there, abs=1)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 10_000), st.floats(0, 1e6), st.floats(1e-3, 1e5), CHUNKS)
def test_shares_are_finite_and_grow_with_the_overflow(
    overflow: float, more: float, sequences: int, prompt: float, output: float, chunk: int
) -> None:
    growth = Growth(prompt, output, chunk)
    share = growth.share(overflow, 1e-6, sequences)
    assert 0 <= share < math.inf
    assert growth.share(max(overflow, more), 1e-6, sequences) >= share
    assert Growth(prompt, output).share(overflow, 1e-6, sequences) <= share


@settings(max_examples=25, deadline=None)
@given(ROWS, LENGTHS, LENGTHS, CHUNKS)
def test_folded_ceilings_fall_with_the_pool_the_promise_and_longer_requests(
    rows: list[tuple[int, int, int]], pool: int, more: int, chunk: int
) -> None:
    counts, longer = joint(*rows), joint(*((i, 2 * o, n) for i, o, n in rows))
    growth = growth_of(counts, chunk)
    here = folded_ceiling(counts, 2048, 10 * pool, Promise(0.01, growth))
    assert 0 <= here <= folded_ceiling(counts, 2048, 10 * (pool + more), Promise(0.01, growth)) + 1
    assert folded_ceiling(longer, 2048, 10 * pool, Promise(0.01, growth_of(longer, chunk))) <= here + 1
    assert folded_ceiling(counts, 2048, 10 * pool, Promise(0.001, growth)) <= here
    assert folded_ceiling(counts, 2048, 10 * pool, Promise(0.01, growth_of(counts))) >= here
