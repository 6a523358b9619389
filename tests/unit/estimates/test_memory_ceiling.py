from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, ModelInfo, ReportedPool
from advisor.domain.fact import Fact
from advisor.domain.policy import Policy
from advisor.estimates import memory_ceiling
from advisor.estimates.overflow import MOST_FOLDED
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
    windows,
)
from tests.unit.estimates.kv.models import QWEN3_6_35B


def facts(evidence: Evidence, risk: float = 0.01, **known: float | Fact | None) -> dict[str, Fact]:
    return memory_ceiling.facts(evidence, Policy(kv_overflow_risk=risk), sheet(**known))


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


def test_of_two_estimates_the_lower_is_believed_and_the_other_shown() -> None:
    # gauges: exactly 2,000 tokens each, 200 fit; joint: 1,000 in and 200 out, nearly twice as many
    scraped = engine(gauges([10.0] * 600, usage=0.05))
    known = replace(NOTHING, joint=joint((1000, 200, 5_000)), engines=(scraped,))
    ceiling = facts(known, kv_pool_tokens=400_000)["memory_ceiling_expected"]
    assert ceiling.value == 200
    assert "prompt and output of each logged request" in (ceiling.source or "")
    (other,) = ceiling.rivals
    # 400,000 / 1,097 = 364 would fill it on average
    assert other.number is not None
    assert 340 < other.number <= 364
    assert (other.source or "").startswith("1,0")
    assert facts(known, kv_pool_tokens=400_000)["kv_tokens_per_sequence"].value == pytest.approx(2_000)


def test_a_large_pool_is_not_cut_to_the_number_of_draws() -> None:
    # a few requests 100 times as long as the rest: sd above the mean, and thousands fit
    uneven = joint((100, 100, 9_999), (20_000, 100, 100))
    occupancy = memory_ceiling.from_joint(replace(NOTHING, joint=uneven))
    assert occupancy is not None
    assert occupancy.sd > occupancy.mean
    ceiling = facts(replace(NOTHING, joint=uneven), kv_pool_tokens=1_000_000)["memory_ceiling_expected"].number
    assert ceiling is not None
    assert ceiling > 2 * MOST_FOLDED


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


def hybrid(evidence: Evidence, **more: int | str | bool) -> Evidence:
    """The same served by Qwen3.6 35B in fp8, of which 300 blocks of 2,096 tokens were reported as 569,878 tokens."""
    known = flags(max_model_len=131_072, kv_cache_dtype="fp8", enable_prefix_caching=True, **more)
    return replace(
        evidence,
        engine_version="0.24.0",
        flags=known,
        model=ModelInfo(config=QWEN3_6_35B),
        reported_pool=ReportedPool(569_878, "log"),
    )


def test_a_hybrid_is_guaranteed_by_blocks_not_by_tokens() -> None:
    # 299 blocks that may be handed out; a sequence of 131,072 tokens holds 69, one of 4,096 holds 8
    at_most = facts(hybrid(NOTHING), kv_pool_tokens=569_878)["memory_ceiling_guaranteed"]
    shorter = facts(hybrid(NOTHING), kv_pool_tokens=569_878, recommended_max_model_len=4096)
    assert at_most.value == 4
    assert shorter["memory_ceiling_guaranteed"].value == 37  # not 569,878 / 4,096 = 139


def test_lengths_do_not_tell_what_a_sequence_of_a_hybrid_holds_but_gauges_do() -> None:
    lengths = replace(NOTHING, joint=joint((1000, 200, 50_000)))
    out = facts(hybrid(lengths), kv_pool_tokens=569_878)
    assert "windows or states" in (out["memory_ceiling_expected"].unknown or "")
    assert out["kv_tokens_per_sequence"].is_unknown
    running, used = in_flight(0.01, 0.002, 2_000)
    scraped = replace(lengths, engines=(engine(gauges(running, 0.0, used)),))
    out = facts(hybrid(scraped), kv_pool_tokens=569_878)
    # each holds 1 % of the cache, whatever its length: somewhat fewer than 100 fit
    assert out["memory_ceiling_expected"].number == pytest.approx(94, abs=3)
    assert "running and cache usage" in (out["memory_ceiling_expected"].source or "")


def test_a_pool_between_bounds_guarantees_between_bounds() -> None:
    known = replace(NOTHING, flags=flags(max_model_len=1_000))
    out = facts(known, kv_pool_tokens_predicted=bounded(434_985, 466_115))
    ceiling = out["memory_ceiling_guaranteed"]
    assert (ceiling.value, ceiling.low, ceiling.high) == (None, 434, 466)
    assert "between bounds" in (out["memory_ceiling_expected"].unknown or "")


def test_batch_work_accepts_one_overflow_in_ten() -> None:
    batch = replace(NOTHING, workload="batch")
    assert memory_ceiling.accepted_risk(batch, Policy()) == 0.1
    assert memory_ceiling.accepted_risk(NOTHING, Policy()) == 0.01
    # somebody who accepts more still does
    assert memory_ceiling.accepted_risk(batch, Policy(kv_overflow_risk=0.2)) == 0.2


WINDOWED = {"prefix_hits": [500.0], "prefix_queries": [1_000.0]}


def both(per_sequence: float, sd: float = 0.0, *, shared: float = 0.0, pool: float = 400_000) -> Evidence:
    """Gauges of so many tokens a sequence beside the lengths of 1,000 in and 200 out, which hold 1,097 each."""
    random = np.random.default_rng(3)
    running = random.integers(3, 60, 3_000).astype(float)
    held = shared + per_sequence * running + sd * np.sqrt(running) * random.standard_normal(running.size)
    counters = windows(WINDOWED if shared else {"finished": [1.0]})
    scraped = engine(gauges(running, usage=held / pool), counters)
    return replace(NOTHING, joint=joint((1000, 200, 5_000)), engines=(scraped,))


def ceiling_of(evidence: Evidence, **known: float) -> tuple[float | None, str]:
    out = facts(evidence, kv_pool_tokens=400_000, **known)["memory_ceiling_expected"]
    return out.number, out.source or ""


def test_estimates_that_agree_are_not_argued_about() -> None:
    value, source = ceiling_of(both(1_100))
    # 400,000 / 1,100 = 363.6, or by lengths at most 1 % of 1,097 +- 70 each: 362
    assert value == pytest.approx(363, abs=2)
    assert "lengths changed" not in source


def test_sequences_that_hold_more_than_their_lengths_say() -> None:
    value, source = ceiling_of(both(2_000))
    assert value == pytest.approx(200, abs=1)
    assert "hold more than their lengths say" in source
    assert "from prompt and output of each logged request" in source


def test_sequences_that_hold_less_than_their_lengths_say() -> None:
    value, source = ceiling_of(both(500))
    assert value == pytest.approx(362, abs=1)
    assert "hold less than their lengths say" in source


def test_a_prefix_that_is_shared_is_counted_once() -> None:
    # 40,000 tokens shared, 500 more each: (400,000 - 40,000) / 500 = 720, less a little for the spread
    value, source = ceiling_of(both(500, 50, shared=40_000))
    assert value == pytest.approx(715, abs=6)
    assert "shared by all" in source
    assert "the gauges are believed" in source


def test_requests_that_start_together_are_long_together() -> None:
    # lengths: sd 76; gauges: 400, so four of those and more. 400,000 / (1,000 + 200) = 333
    value, source = ceiling_of(both(1_097, 400))
    assert value == 333
    assert "E[I] + Q90(O)" in source


LONG_PROMPTS = joint((500, 200, 3), (6_000, 200, 1))


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("0.32.0", None),  # waits until a whole prompt fits
        ("0.18.2", "this release: a preempted request is back at once"),
        (None, "version is not known"),
    ],
)
def test_which_release_decides_how_often_a_victim_is_preempted(version: str | None, told: str | None) -> None:
    value, source = ceiling_of(replace(NOTHING, joint=LONG_PROMPTS, engine_version=version))
    whole, _ = ceiling_of(replace(NOTHING, joint=LONG_PROMPTS, engine_version="0.32.0"))
    assert value is not None
    assert whole is not None
    assert (told or "") in source
    assert (value < 0.95 * whole) == (told is not None)


def test_short_answers_to_long_prompts_are_not_preempted_but_wait() -> None:
    # 4,000 in and 20 out: 20 x 0.5 / 4,001 = 0.25 %; mu = (2 x 2,000 + 20 x 4,010) / 22 = 3,827, 104.5 in the pool
    value, source = ceiling_of(replace(NOTHING, joint=joint((4_000, 20, 500)), engine_version="0.32.0"))
    assert value == pytest.approx(104, abs=1)
    assert "seats stay empty" in source
    # the same lengths kept by promise of one in ten thousand leave room
    strict = facts(
        replace(NOTHING, joint=joint((4_000, 20, 500)), engine_version="0.32.0"), 1e-4, kv_pool_tokens=400_000
    )
    assert (strict["memory_ceiling_expected"].number or 0) < 104
    assert "seats stay empty" not in (strict["memory_ceiling_expected"].source or "")


def test_means_tell_what_an_overflow_costs_where_lengths_of_single_requests_do_not() -> None:
    means = {
        "prompt_tokens": buckets([5000], [100, 0], 50_000.0),
        "output_tokens": buckets([5000], [100, 0], 400_000.0),
    }
    running, tokens = in_flight(2_500, 1_500, 5_000)
    scraped = engine(gauges(running, usage=np.array(tokens) / 400_000), lengths=means)
    new = ceiling_of(replace(NOTHING, engines=(scraped,), engine_version="0.32.0"))[0]
    old = ceiling_of(replace(NOTHING, engines=(scraped,), engine_version="0.18.0"))[0]
    # 500 in and 4,000 out, some 130 of them: V = 531, so 7.5 p and a risk of 0.13 %, z = 3.0:
    # (sqrt(9 x 1,500^2 + 4 x 2,500 x 400,000) - 3 x 1,500)^2 / 5,000^2 = 138. A quarter of the prompts may be longer
    # than 2,048: 1 + 0.26 x 2,048 / 130 = 5 times as often, 0.026 %, z = 3.5: 135
    assert new == pytest.approx(138, abs=2)
    assert old == pytest.approx(135, abs=2)


def test_a_prefix_that_hits_is_not_freed_with_its_victim() -> None:
    # 1,000 in and 200 out: 200 / 1,001 p, or with nine tenths of the prompt shared 200 / 101 p, so a tenth of the risk
    served = replace(NOTHING, joint=joint((1000, 200, 5_000), (200, 900, 500)), engine_version="0.32.0")
    assert (ceiling_of(served, prefix_cache_hit_rate=0.9)[0] or 0) < (ceiling_of(served)[0] or 0)


def test_where_not_one_sequence_fits_nothing_is_said() -> None:
    out = facts(replace(NOTHING, joint=joint((4_000, 500, 9))), kv_pool_tokens=3_000)
    assert "not one fits 3,000 tokens" in (out["memory_ceiling_expected"].unknown or "")


def test_a_watermark_keeps_blocks_free() -> None:
    plain = replace(NOTHING, joint=joint((1000, 200, 5_000)))
    kept = ceiling_of(replace(plain, flags=flags(watermark=0.05)))[0]
    # 380,000 instead of 400,000
    assert kept == pytest.approx(0.95 * (ceiling_of(plain)[0] or 0), abs=1)


REQUESTS = st.lists(st.tuples(st.integers(0, 9_000), st.integers(1, 3_000), st.integers(1, 50)), min_size=1, max_size=4)
VERSIONS = st.sampled_from(["0.32.0", "0.18.2", None])
GROWING = st.floats(1, 4)


def ceiling_at(
    rows: list[tuple[int, int, int]], pool: float, version: str | None, *, promise: float = 0.01, factor: float = 1.0
) -> float | None:
    """The expected ceiling for requests `factor` times as long; None where nothing is said."""
    counts = joint(*((round(factor * i), round(factor * o), n) for i, o, n in rows))
    of = replace(NOTHING, joint=counts, engine_version=version)
    told = facts(of, promise, kv_pool_tokens=pool)["memory_ceiling_expected"]
    assert told.is_unknown == (told.number is None)
    assert told.number is None or (told.number >= 1 and math.isfinite(told.number))
    return told.number


@settings(max_examples=12, deadline=None)
@given(REQUESTS, st.floats(1, 3e5), VERSIONS, GROWING)
def test_ceilings_fall_with_the_pool_the_promise_and_longer_requests(
    rows: list[tuple[int, int, int]], pool: float, version: str | None, factor: float
) -> None:
    here = ceiling_at(rows, pool, version) or 0
    assert here <= (ceiling_at(rows, factor * pool, version) or 0) + 1
    assert (ceiling_at(rows, pool, version, promise=0.01 / factor) or 0) <= here
    assert (ceiling_at(rows, pool, version, factor=factor) or 0) <= here + 1
    # taking a victim back at once never holds more
    assert (ceiling_at(rows, pool, "0.18.2") or 0) <= (ceiling_at(rows, pool, "0.32.0") or 0)


@settings(max_examples=40, deadline=None)
@given(st.floats(1, 5_000), st.floats(0, 3_000), st.integers(1_000, 2**40), VERSIONS)
def test_gauges_alone_never_yield_nonsense(mean: float, sd: float, pool: int, version: str | None) -> None:
    running, tokens = in_flight(mean, sd, 600)
    scraped = engine(gauges(running, usage=np.clip(np.array(tokens) / pool, 0, 1)))
    told = facts(replace(NOTHING, engines=(scraped,), engine_version=version), kv_pool_tokens=pool)
    ceiling, held = told["memory_ceiling_expected"], told["kv_tokens_per_sequence"]
    assert ceiling.number is None or ceiling.number >= 1
    assert held.number is None or 0 < held.number <= pool
