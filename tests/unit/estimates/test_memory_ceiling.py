from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact
from advisor.domain.policy import Policy
from advisor.estimates import memory_ceiling
from tests.unit.estimates.evidence import (
    NOTHING,
    bounded,
    buckets,
    engine,
    flags,
    gauges,
    joint,
    log,
    sheet,
)

POOLS, RISKS = st.floats(1, 1e7), st.floats(1e-6, 0.5)


def facts(evidence: Evidence, risk: float = 0.01, **known: float | Fact | None) -> dict[str, Fact]:
    return memory_ceiling.facts(evidence, Policy(kv_overflow_risk=risk), sheet(**known))


@pytest.mark.parametrize(
    # a chat trace of 19,366 requests, mean 1,232 and sd 715 tokens in flight, against a simulated scheduler
    ("pool", "risk", "ceiling"),
    [(400_000, 0.1, 311), (400_000, 0.01, 301), (400_000, 0.001, 293), (100_000, 0.1, 74), (100_000, 0.01, 69)],
)
def test_normal_ceilings_of_a_chat_trace(pool: float, risk: float, ceiling: int) -> None:
    assert memory_ceiling.normal_ceiling(1232, 715, pool, risk) == ceiling


def test_the_smallest_risk_of_a_small_pool() -> None:
    assert memory_ceiling.normal_ceiling(1232, 715, 100_000, 0.001) in range(64, 67)


def test_without_spread_the_pool_is_divided() -> None:
    assert memory_ceiling.normal_ceiling(1000, 0, 10_500, 0.01) == 10


@pytest.mark.parametrize("risk", [0.0, 1.0])
def test_no_risk_at_all_and_every_risk_have_an_answer(risk: float) -> None:
    assert 0 <= memory_ceiling.normal_ceiling(1000, 500, 50_000, risk) < 1_000


@given(st.floats(10, 1e4), st.floats(0, 1e4), POOLS, POOLS, RISKS, RISKS)
def test_a_larger_pool_and_a_larger_risk_hold_no_less(
    mean: float, sd: float, pool: float, other_pool: float, risk: float, other_risk: float
) -> None:
    small, large = sorted((pool, other_pool))
    careful, bold = sorted((risk, other_risk))
    least = memory_ceiling.normal_ceiling(mean, sd, small, careful)
    assert least <= memory_ceiling.normal_ceiling(mean, sd, large, careful)
    assert least <= memory_ceiling.normal_ceiling(mean, sd, small, bold)


def test_occupancy_of_equal_requests() -> None:
    # one prefill step of 0..1,000 tokens and 200 steps of 1,000..1,200: (500 + 200 x 1,100) / 201
    seen = replace(NOTHING, joint=joint((1000, 200, 50)), flags=flags(max_num_batched_tokens=2048))
    occupancy = memory_ceiling.from_joint(seen)
    assert occupancy is not None
    assert occupancy.mean == pytest.approx(220_500 / 201)
    # second moment: (1000^2 / 3 + 200 x (1000^2 + 200,000 + 40,000 / 3)) / 201
    second = (1_000_000 / 3 + 200 * (1_000_000 + 200_000 + 40_000 / 3)) / 201
    assert occupancy.sd == pytest.approx((second - occupancy.mean**2) ** 0.5)


def test_long_residents_weigh_more() -> None:
    # 10 tokens out for 10 steps, 990 tokens out for 990: of 1,000 places 990 belong to the long one
    occupancy = memory_ceiling.from_joint(replace(NOTHING, joint=joint((0, 10, 1), (0, 990, 1))))
    assert occupancy is not None
    # (10 x 5 + 990 x 495) / 1,000
    assert occupancy.mean == pytest.approx(490.1)


def test_a_block_is_held_half_empty_at_the_end() -> None:
    plain = memory_ceiling.from_joint(replace(NOTHING, joint=joint((1000, 200, 1))))
    blocks = memory_ceiling.from_joint(replace(NOTHING, joint=joint((1000, 200, 1)), flags=flags(block_size=16)))
    assert plain is not None
    assert blocks is not None
    assert blocks.mean - plain.mean == pytest.approx(7.5)


def test_requests_without_tokens_hold_nothing() -> None:
    assert memory_ceiling.from_joint(replace(NOTHING, joint=joint((0, 0, 9)))) is None


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_that_is_none_is_not_divided_by(budget: int) -> None:
    seen = replace(NOTHING, joint=joint((1000, 200, 50)), flags=flags(max_num_batched_tokens=budget))
    assert memory_ceiling.from_joint(seen) == memory_ceiling.from_joint(replace(NOTHING, joint=joint((1000, 200, 50))))


def in_flight(mean: float, sd: float, n: int) -> tuple[list[float], list[float]]:
    """Running 3..40 and the cache use in tokens of so many independent sequences."""
    random = np.random.default_rng(1)
    running = random.integers(3, 40, n).astype(float)
    return running.tolist(), (mean * running + sd * np.sqrt(running) * random.standard_normal(n)).tolist()


def test_gauges_tell_the_same_without_any_length() -> None:
    running, tokens = in_flight(1232, 715, 20_000)
    scraped = engine(gauges(running, usage=np.array(tokens) / 400_000))
    pool = sheet(kv_pool_tokens=400_000)["kv_pool_tokens"]
    found = memory_ceiling.from_gauges(replace(NOTHING, engines=(scraped,)), pool)
    assert found is not None
    assert found.mean == pytest.approx(1232, rel=0.01)
    assert found.sd == pytest.approx(715, rel=0.02)


def test_too_few_scrapes_with_anything_running_are_not_used() -> None:
    pool = sheet(kv_pool_tokens=400_000)["kv_pool_tokens"]
    few = engine(gauges([5.0] * 499, usage=0.1))
    idle = engine(gauges([2.0] * 5_000, usage=0.1))
    blind = engine(gauges([5.0] * 5_000, usage=float("nan")))
    for scraped in (few, idle, blind, engine()):
        assert memory_ceiling.from_gauges(replace(NOTHING, engines=(scraped,)), pool) is None


def test_of_two_estimates_the_lower_is_believed_and_the_other_shown() -> None:
    # gauges: exactly 2,000 tokens each, 200 fit; joint: 1,000 in and 200 out, nearly twice as many
    scraped = engine(gauges([10.0] * 600, usage=0.05))
    known = replace(NOTHING, joint=joint((1000, 200, 5_000)), engines=(scraped,))
    ceiling = facts(known, kv_pool_tokens=400_000)["memory_ceiling_expected"]
    assert ceiling.value == 200
    assert "prompt and output of each logged request" in (ceiling.source or "")
    assert facts(known, kv_pool_tokens=400_000)["kv_tokens_per_sequence"].value == pytest.approx(2_000)


def test_few_large_sequences_are_drawn() -> None:
    # 2,048 in and 1 out: two steps, of which the prompt grows through one: 0..2,048, then 2,048..2,049.
    # Two never exceed 4,098; three exceed 4,098 + x often. So exactly two fit a pool of 4,098.
    assert memory_ceiling.simulated_ceiling(joint((2048, 1, 10)), 2048, 4_098, 0.01) == 2


def test_drawing_and_the_normal_form_agree_where_both_hold() -> None:
    equal = joint((1000, 200, 1), (1500, 400, 1), (500, 100, 1))
    occupancy = memory_ceiling.from_joint(replace(NOTHING, joint=equal))
    assert occupancy is not None
    pool = 100_000
    drawn = memory_ceiling.simulated_ceiling(equal, 2048, pool, 0.01)
    assert drawn == pytest.approx(memory_ceiling.normal_ceiling(occupancy.mean, occupancy.sd, pool, 0.01), abs=1)


def test_a_large_pool_is_not_cut_to_the_number_of_draws() -> None:
    # a few requests 100 times as long as the rest: sd above the mean, and thousands fit
    uneven = joint((100, 100, 9_999), (20_000, 100, 100))
    occupancy = memory_ceiling.from_joint(replace(NOTHING, joint=uneven))
    assert occupancy is not None
    assert occupancy.sd > occupancy.mean
    ceiling = facts(replace(NOTHING, joint=uneven), kv_pool_tokens=1_000_000)["memory_ceiling_expected"].number
    assert ceiling is not None
    assert ceiling > 2 * memory_ceiling.MOST_DRAWN


@settings(max_examples=15, deadline=None)
@given(st.integers(1_000, 20_000), st.integers(1_000, 20_000))
def test_drawn_ceilings_grow_with_the_pool(pool: int, other: int) -> None:
    counts = joint((1000, 200, 5), (200, 900, 5))
    small, large = (memory_ceiling.simulated_ceiling(counts, 2048, p, 0.01) for p in sorted((pool, other)))
    assert small <= large


@pytest.mark.parametrize(
    ("present", "advised", "ceiling", "name"),
    [
        # 587,158 tokens: 47.8 of 12,288, 4.5 of 131,072
        (None, 12_288, 47, "recommended_max_model_len"),
        (131_072, 12_288, 47, "recommended_max_model_len"),
        (131_072, None, 4, "max_model_len"),
        (8_192, 12_288, 71, "max_model_len"),
    ],
)
def test_the_guaranteed_ceiling(present: int | None, advised: int | None, ceiling: int, name: str) -> None:
    known = replace(NOTHING, flags={} if present is None else flags(max_model_len=present))
    out = facts(known, kv_pool_tokens_predicted=587_158, recommended_max_model_len=advised or bounded(1024, None))
    assert out["memory_ceiling_guaranteed"].value == ceiling
    assert name in (out["memory_ceiling_guaranteed"].source or "")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_is_left_to_the_engine_is_none(limit: int) -> None:
    known = replace(NOTHING, flags=flags(max_model_len=limit))
    assert facts(known, kv_pool_tokens=1_000)["memory_ceiling_guaranteed"].is_unknown


def test_without_a_pool_nothing_is_known() -> None:
    out = facts(replace(NOTHING, log=log(joint((100, 10, 5_000)))))
    assert out["memory_ceiling_expected"].unknown == "the KV pool is unknown: not given"
    assert out["memory_ceiling_guaranteed"].is_unknown
    assert out["kv_tokens_per_sequence"].number is not None


def test_mean_lengths_give_only_an_upper_bound() -> None:
    means = {"prompt_tokens": buckets([5000], [100, 0], 90_000.0), "output_tokens": buckets([5000], [100, 0], 20_000.0)}
    out = facts(replace(NOTHING, engines=(engine(lengths=means),)), kv_pool_tokens=100_000)
    ceiling = out["memory_ceiling_expected"]
    # 900 + 200 / 2 = 1,000 tokens each
    assert (ceiling.value, ceiling.low, ceiling.high, ceiling.basis) == (None, None, 100, "assumed")


def test_lengths_of_zero_bound_nothing() -> None:
    none = {"prompt_tokens": buckets([1], [9, 0], 0.0), "output_tokens": buckets([1], [9, 0], 0.0)}
    out = facts(replace(NOTHING, engines=(engine(lengths=none),)), kv_pool_tokens=100_000)
    assert out["memory_ceiling_expected"].is_unknown
