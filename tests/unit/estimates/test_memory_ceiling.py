from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

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
    assert value == 200
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


LONG_ANSWERS = joint((500, 4_000, 3), (500, 9_000, 1))


@pytest.mark.parametrize(
    ("version", "preempted", "careful"),
    [
        ("0.32.0", 0.0, False),
        ("0.18.2", 0.0, True),  # admits by the first chunk
        (None, 0.01, False),
        (None, 3.0, True),  # three preemptions a request: no release that waits for the whole prompt does that
        ("0.32.0", 3.0, False),
    ],
)
def test_which_release_decides_how_often_a_victim_is_preempted(
    version: str | None, preempted: float, careful: bool
) -> None:
    answering = replace(NOTHING, joint=LONG_ANSWERS, engine_version=version)
    value, source = ceiling_of(answering, preempted_share=preempted)
    usual, _ = ceiling_of(replace(answering, engine_version="0.32.0"))
    assert value is not None
    assert usual is not None
    assert ("back at once" in source) == careful
    assert (value < 0.95 * usual) == careful


def test_means_tell_how_long_requests_stay_where_lengths_of_single_ones_do_not() -> None:
    means = {
        "prompt_tokens": buckets([5000], [100, 0], 50_000.0),
        "output_tokens": buckets([5000], [100, 0], 400_000.0),
    }
    running, tokens = in_flight(2_500, 1_500, 5_000)
    scraped = engine(gauges(running, usage=np.array(tokens) / 400_000), lengths=means)
    new = ceiling_of(replace(NOTHING, engines=(scraped,), engine_version="0.32.0"))[0]
    old = ceiling_of(replace(NOTHING, engines=(scraped,), engine_version="0.18.0"))[0]
    assert new is not None
    assert old is not None
    # 4,001 steps over some 130 sequences: a risk of 0.01 / 30, z = 3.4 instead of 2.3
    assert old == pytest.approx(new - 8, abs=3)


def test_a_watermark_keeps_blocks_free() -> None:
    plain = replace(NOTHING, joint=joint((1000, 200, 5_000)))
    kept = ceiling_of(replace(plain, flags=flags(watermark=0.05)))[0]
    # 380,000 instead of 400,000
    assert kept == pytest.approx(0.95 * (ceiling_of(plain)[0] or 0), abs=1)
