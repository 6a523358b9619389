"""How many sequences fit at a promised preempted share: normal form, folded distribution, the two admissions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.histogram import JointCounts
from advisor.estimates import overflow
from tests.unit.estimates.evidence import joint

POOLS, RISKS = st.floats(1, 1e7), st.floats(1e-6, 0.5)
LENGTHS = st.integers(1, 5_000)
MIX = joint((1000, 200, 1), (1500, 400, 1), (500, 100, 1))


@pytest.mark.parametrize(
    # a chat trace of 19,366 requests, mean 1,232 and sd 715 tokens in flight, against a simulated scheduler
    ("pool", "risk", "ceiling"),
    [(400_000, 0.1, 311), (400_000, 0.01, 301), (400_000, 0.001, 293), (100_000, 0.1, 74), (100_000, 0.01, 69)],
)
def test_normal_ceilings_of_a_chat_trace(pool: float, risk: float, ceiling: int) -> None:
    assert overflow.normal_ceiling(1232, 715, pool, risk) == ceiling


def test_the_smallest_risk_of_a_small_pool() -> None:
    assert overflow.normal_ceiling(1232, 715, 100_000, 0.001) in range(64, 67)


def test_without_spread_the_pool_is_divided() -> None:
    assert overflow.normal_ceiling(1000, 0, 10_500, 0.01) == 10


@pytest.mark.parametrize("risk", [0.0, 1.0])
def test_no_risk_at_all_and_every_risk_have_an_answer(risk: float) -> None:
    assert 0 <= overflow.normal_ceiling(1000, 500, 50_000, risk) < 1_000


@pytest.mark.parametrize("pool", [0.0, -5_000.0])
def test_a_pool_that_a_shared_prefix_fills_holds_nobody(pool: float) -> None:
    assert overflow.normal_ceiling(1000, 500, pool, 0.01) == 0
    assert overflow.folded_ceiling(MIX, 2048, pool, 0.01) == 0


@given(st.floats(10, 1e4), st.floats(0, 1e4), POOLS, POOLS, RISKS, RISKS)
def test_a_larger_pool_and_a_larger_risk_hold_no_less(
    mean: float, sd: float, pool: float, other_pool: float, risk: float, other_risk: float
) -> None:
    small, large = sorted((pool, other_pool))
    careful, bold = sorted((risk, other_risk))
    least = overflow.normal_ceiling(mean, sd, small, careful)
    assert least <= overflow.normal_ceiling(mean, sd, large, careful)
    assert least <= overflow.normal_ceiling(mean, sd, small, bold)


def test_two_prompts_that_just_fit() -> None:
    # 2,048 in and 1 out hold 0..2,048 in one step and 2,048..2,049 in the other: two never exceed 4,098, three often do
    assert overflow.folded_ceiling(joint((2048, 1, 10)), 2048, 4_098, 0.01) == 2


def test_even_spreads_add_to_a_triangle() -> None:
    # no prompt, 1,000 out: held evenly 0..1,000. Two exceed 1,900 with (2,000 - 1,900)^2 / 2 / 1,000^2 = 0.5 %; three
    # exceed it with 1 - (1.9^3 - 3 x 0.9^3) / 6 = 22.1 %
    counts = joint((0, 1000, 7))
    assert overflow.folded_ceiling(counts, 2048, 1_900, 0.0060) == 2
    assert overflow.folded_ceiling(counts, 2048, 1_900, 0.0040) == 1
    assert overflow.folded_ceiling(counts, 2048, 1_900, 0.225) == 3
    assert overflow.folded_ceiling(counts, 2048, 1_900, 0.217) == 2


def test_the_last_block_is_half_empty() -> None:
    # 10 x 1,000 in a pool of 10,000 fit only where blocks waste nothing
    counts = JointCounts.of([1000], [1], [5])
    assert overflow.folded_ceiling(counts, 1, 5_000, 0.5) > overflow.folded_ceiling(counts, 1, 5_000, 0.5, block=512)


def test_the_folded_and_the_normal_form_agree_where_both_hold() -> None:
    # mu = (220,500 + 680,750 + 55,250) / 703 = 1,361; m2 = (243.0 + 1,162.1 + 30.4) 10^6 / 703, so sd = 437
    folded = overflow.folded_ceiling(MIX, 2048, 100_000, 0.01)
    assert folded == pytest.approx(overflow.normal_ceiling(1361, 437, 100_000, 0.01), abs=1)


def test_how_long_requests_stay() -> None:
    # 3,000 in and 10 out: 2 + 10 steps; 100 in and 50 out: 1 + 50. Of 63 steps 12 belong to one of 2 prompt steps
    stay = overflow.residence(joint((3000, 10, 1), (100, 50, 1)), 2048)
    assert stay == overflow.Residence(31.5, (12 * 2 + 51 * 1) / 63)
    assert overflow.residence(joint((0, 0, 9)), 2048) is None


def test_a_victim_that_is_back_at_once_is_preempted_many_times() -> None:
    # the worked example: 1 % of the time overfull, 6 answers of 5,000 tokens behind prompts of one step
    stay = overflow.Residence(5_001, 1.0)
    assert stay.share(0.01, 6) == pytest.approx(8.335)
    # never less than once an overflow
    assert overflow.Residence(10, 5.0).share(0.01, 6) == 0.01


@pytest.mark.parametrize(
    # of 20 sequences of 100 steps: 5 preemptions a request while overfull, so a fifth of the risk
    ("stay", "risk"),
    [(None, 0.01), (overflow.Residence(100, 1.0), 0.002)],
)
def test_the_promise_of_a_normal_sum(stay: overflow.Residence | None, risk: float) -> None:
    value = overflow.normal_share_ceiling(1000, 300, 22_500, 0.01, stay)
    assert value == overflow.normal_ceiling(1000, 300, 22_500, risk)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(LENGTHS, LENGTHS, st.integers(1, 9)), min_size=1, max_size=5), LENGTHS, LENGTHS, st.booleans()
)
def test_folded_ceilings_fall_with_the_pool_and_with_longer_requests(
    rows: list[tuple[int, int, int]], pool: int, more: int, back_at_once: bool
) -> None:
    counts, longer = joint(*rows), joint(*((i, 2 * o, n) for i, o, n in rows))
    stay = overflow.Residence(50, 1.0) if back_at_once else None
    here = overflow.folded_ceiling(counts, 2048, 10 * pool, 0.01, stay=stay)
    assert 0 <= here <= overflow.folded_ceiling(counts, 2048, 10 * (pool + more), 0.01, stay=stay) + 1
    assert overflow.folded_ceiling(longer, 2048, 10 * pool, 0.01, stay=stay) <= here + 1
    assert overflow.folded_ceiling(counts, 2048, 10 * pool, 0.001, stay=stay) <= here
