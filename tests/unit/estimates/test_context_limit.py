from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, HttpOutcomes, ModelInfo, StatedPercentiles, Workload
from advisor.domain.fact import Fact
from advisor.domain.histogram import TokenCounts
from advisor.domain.length_history import LengthHistory, bin_of
from advisor.domain.policy import Policy
from advisor.estimates import context_limit, lengths
from tests.unit.estimates.evidence import NOTHING, buckets, engine, flags, joint, log, sheet, windows

STATED = StatedPercentiles({50.0: 1400, 99.0: 6200, 99.9: 9500})


def facts(evidence: Evidence, policy: Policy | None = None, **known: float) -> dict[str, Fact]:
    sheet_ = sheet(**known) | lengths.facts(evidence)
    return context_limit.facts(evidence, policy or Policy(), sheet_)


def totals(*rows: tuple[int, int]) -> Evidence:
    return replace(NOTHING, totals=TokenCounts.of([length for length, _ in rows], [n for _, n in rows]))


def test_a_stated_percentile_with_its_margin() -> None:
    planned = replace(NOTHING, percentiles=STATED, model=ModelInfo(max_context_tokens=1_048_576))
    out = facts(planned)
    # 9,500 x 1.25 = 11,875 -> 12 x 1,024; 1,048,576 / 12,288 = 85 1/3
    assert out["recommended_max_model_len"].value == 12_288
    assert out["max_model_len_cost_ratio"].value == pytest.approx(85.3333, abs=1e-4)
    assert out["needed_tokens_p999_upper"].value == 9500
    assert out["refused_share_at_recommended"].is_unknown


def test_the_percentile_that_was_asked_for() -> None:
    # 6,200 x 1.25 = 7,750 -> 8 x 1,024
    out = facts(replace(NOTHING, percentiles=STATED), Policy(length_percentile=99.0))
    assert out["recommended_max_model_len"].value == 8192
    # nobody stated the p99.99, and a lower one must not stand in for it
    assert facts(replace(NOTHING, percentiles=STATED), Policy(length_percentile=99.99))[
        "recommended_max_model_len"
    ].is_unknown


def test_the_upper_bound_not_the_percentile_carries_the_margin() -> None:
    # 4,000 requests: rank 3,999 or higher bounds the p99.9; all but five are 1,000 long
    out = facts(totals((1_000, 3_995), (4_000, 5)))
    assert out["needed_tokens_p999_upper"].value == 4_000
    # 4,000 x 1.25 = 5,000 -> 5,120
    assert out["recommended_max_model_len"].value == 5_120
    assert out["refused_share_at_recommended"].value == 0


def test_the_largest_seen_counts_up_to_half_more() -> None:
    # p99.9 is 1,000 -> 1,250; one of 1,800 is within 1.5 x that and held; one of 90,000 is not: 1,875
    assert facts(totals((1_000, 9_999), (1_800, 1)))["recommended_max_model_len"].value == 2_048
    out = facts(totals((1_000, 9_999), (90_000, 1)))
    assert out["recommended_max_model_len"].value == 2_048
    assert out["refused_share_at_recommended"].value == pytest.approx(1e-4)


def test_few_requests_give_only_what_they_needed() -> None:
    out = facts(totals((3_000, 100)))
    limit = out["recommended_max_model_len"]
    assert (limit.value, limit.low, limit.high) == (None, 3_072, None)
    assert out["needed_tokens_p999_upper"].unknown == (
        "100 requests cannot bound a p99.9: more traffic or a longer window (--since)"
    )


def test_what_refused_requests_would_have_needed_counts() -> None:
    seen = replace(NOTHING, log=log(joint((900, 100, 9_900)), refused=100, refused_needs=[20_000] * 100))
    out = facts(seen)
    assert out["refused_share_now"].value == pytest.approx(0.01)
    # 20,000 x 1.25 = 25,000 -> 25,600
    assert out["recommended_max_model_len"].value == 25_600


def test_refused_requests_that_do_not_say_what_they_needed_forbid_a_bound() -> None:
    out = facts(replace(NOTHING, log=log(joint((900, 100, 9_900)), refused=100)))
    assert out["needed_tokens_p999_upper"].unknown == (
        "100 requests were refused for their length without saying what they needed"
    )
    assert out["recommended_max_model_len"].value is None
    assert out["recommended_max_model_len"].low == 1_024


def test_a_few_that_do_not_say_leave_a_span_of_what_is_refused() -> None:
    out = facts(replace(NOTHING, log=log(joint((900, 100, 99_999)), refused=1)))
    assert out["recommended_max_model_len"].value == 2_048
    share = out["refused_share_at_recommended"]
    assert (share.value, share.low, share.high) == pytest.approx((None, 0.0, 1e-5))


def test_empty_requests_still_need_a_limit() -> None:
    assert facts(totals((0, 5_000)))["recommended_max_model_len"].value == 1_024


def test_it_is_cut_to_the_model_and_to_the_pool() -> None:
    long = replace(totals((30_000, 5_000)), model=ModelInfo(max_context_tokens=32_768))
    # 37,500 -> 37,888, cut
    assert facts(long)["recommended_max_model_len"].value == 32_768
    # a pool of 20,000 less a block of 16 serves 19,984: 19 x 1,024
    assert facts(long, kv_pool_tokens=20_000)["recommended_max_model_len"].value == 19_456
    assert "cut to what one request" in (facts(long, kv_pool_tokens=20_000)["recommended_max_model_len"].source or "")


@pytest.mark.parametrize(
    ("config", "longest"),
    [
        ({"max_position_embeddings": 32_768}, 32_768),
        ({"max_position_embeddings": 131_072, "model_max_length": 65_536}, 65_536),
        ({"text_config": {"max_position_embeddings": 8_192}}, 8_192),
        # stretched positions: the factor is on top of the original ones, or of the stated ones
        (
            {
                "max_position_embeddings": 163_840,
                "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
            },
            163_840,
        ),
        ({"max_position_embeddings": 32_768, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, 131_072),
        # these have it in already
        ({"max_position_embeddings": 131_072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 131_072),
        ({"max_position_embeddings": True}, None),
        ({"max_position_embeddings": 4_096, "rope_scaling": {"rope_type": "yarn", "factor": float("nan")}}, 4_096),
        ({"max_position_embeddings": 4_096, "rope_scaling": "yarn"}, 4_096),
        ({}, None),
    ],
)
def test_the_longest_context_of_a_config(config: dict[str, Any], longest: int | None) -> None:
    assert context_limit.model_maximum(replace(NOTHING, model=ModelInfo(config=config))) == longest


def test_a_limit_that_runs_is_supported() -> None:
    running = replace(NOTHING, model=ModelInfo(max_context_tokens=32_768), flags=flags(max_model_len=131_072))
    assert context_limit.model_maximum(running) == 131_072


LENGTHS = {"prompt_tokens": buckets([1000, 2000], [9_000, 1_000, 0]), "output_tokens": buckets([500], [10_000, 0])}


def test_histograms_give_an_interval_that_shrinks_nothing() -> None:
    out = facts(replace(NOTHING, engines=(engine(lengths=LENGTHS),), flags=flags(max_model_len=65_536)))
    limit = out["recommended_max_model_len"]
    # p99.9: between 1,000 + 0 and 2,000 + 500 tokens; 2,500 x 1.25 = 3,125 -> 4,096
    assert (limit.value, limit.low, limit.high) == (None, 1_024, 4_096)
    assert out["max_model_len_cost_ratio"].is_unknown


def test_cut_requests_are_told_from_those_that_reached_their_own_limit() -> None:
    served = joint((900, 100, 98), (4_000, 96, 2))
    cut = [1_000] * 10 + [4_096] * 2
    limited = replace(NOTHING, log=log(served, cut=cut), flags=flags(max_model_len=4_096))
    assert facts(limited)["finish_length_share"].value == pytest.approx(0.02)
    share = facts(replace(NOTHING, log=log(served, cut=cut)))["finish_length_share"]
    assert (share.value, share.low, share.high) == pytest.approx((None, 0.0, 0.12))


def test_counters_of_cut_requests() -> None:
    counted = windows({"finished": [50.0, 50.0], "finished_length": [0.0, 3.0]})
    share = facts(replace(NOTHING, engines=(engine(counters=counted),)))["finish_length_share"]
    assert (share.value, share.high) == (None, 0.03)
    none = windows({"finished": [50.0], "finished_length": [0.0]})
    assert facts(replace(NOTHING, engines=(engine(counters=none),)))["finish_length_share"].value == 0


def test_a_counter_that_is_not_there_is_not_zero() -> None:
    blind = engine(counters=windows({"finished": [50.0]}))
    assert facts(replace(NOTHING, engines=(blind,)))["finish_length_share"].is_unknown


@pytest.mark.parametrize(
    ("http", "shape"),
    [
        (HttpOutcomes(1000, 0, 5), (0.0, None, None)),
        (HttpOutcomes(990, 10, 0), (None, 0.0, 0.01)),
        (HttpOutcomes(0, 0, 0), (None, None, None)),
    ],
)
def test_client_errors_bound_the_refused(http: HttpOutcomes, shape: tuple[float | None, ...]) -> None:
    share = facts(replace(NOTHING, http=http))["refused_share_now"]
    assert (share.value, share.low, share.high) == shape


@pytest.mark.parametrize(
    ("logged", "coverage"), [(9_500, 0.95), (10_000, 1.0), (10_400, 1.0), (30_000, None), (0, None)]
)
def test_coverage(logged: int, coverage: float | None) -> None:
    served = joint((100, 10, logged)) if logged else None
    known = replace(NOTHING, log=log(served), engines=(engine(lengths=LENGTHS),))
    assert facts(known)["length_coverage"].value == coverage


def test_without_engine_metrics_coverage_is_unknown() -> None:
    assert facts(replace(NOTHING, log=log(joint((100, 10, 5)))))["length_coverage"].is_unknown


def test_observed_days() -> None:
    assert facts(replace(NOTHING, log=log(joint((1, 1, 1)), days=7)))["observed_days"].value == 7
    # From the first request of a week to its last it is some seconds less.
    assert facts(replace(NOTHING, log=log(joint((1, 1, 1)), days=6.9998)))["observed_days"].value == 7
    assert facts(NOTHING)["observed_days"].is_unknown


@given(
    st.lists(st.tuples(st.integers(0, 300_000), st.integers(1, 4_000)), min_size=1, max_size=20),
    st.floats(0, 1),
    st.none() | st.integers(1, 400_000),
    st.none() | st.integers(1, 400_000),
)
def test_the_limit_holds_the_bound_in_whole_steps_unless_cut(
    rows: list[tuple[int, int]], margin: float, longest: int | None, pool: int | None
) -> None:
    known = replace(totals(*rows), model=ModelInfo(max_context_tokens=longest))
    pools = {} if pool is None else {"kv_pool_tokens": float(pool)}
    out = facts(known, Policy(length_margin=margin), **pools)
    limit, upper = out["recommended_max_model_len"].floor, out["needed_tokens_p999_upper"].number
    assert limit is not None
    assert longest is None or limit <= longest
    assert pool is None or limit <= max(pool - 16, 1)
    if "cut to" not in (out["recommended_max_model_len"].source or ""):
        assert limit % 1_024 == 0
        assert upper is None or limit >= upper * (1 + margin) - 1e-6


def test_batch_holds_the_longest_document() -> None:
    # p99.9 is 1,000, and one document has 90,000: 90,000 x 1.25 = 112,500 -> 110 x 1,024
    batch = replace(totals((1_000, 9_999), (90_000, 1)), workload="batch")
    limit = facts(batch)["recommended_max_model_len"]
    assert limit.value == 112_640
    assert "the longest document, 90,000" in (limit.source or "")


DECLARING = log(joint((900, 100, 10_000)), declared=[9_000] * 50 + [2_000] * 5_000)


@pytest.mark.parametrize(
    ("engine_kind", "version", "limit", "refused"),
    [
        # 50 of 10,000 declare 9,000, more than the 10 that may be refused: 9,000 -> 9 x 1,024; else 1,250 -> 2,048
        ("vllm", "0.31.0", 9_216, 0.0),
        ("vllm", "0.32.0", 2_048, 0.0),
        ("vllm", None, 2_048, 0.0),
        ("another-engine", "1.0", 2_048, 0.0),
    ],
)
def test_what_is_declared_counts_where_the_release_refuses_by_it(
    engine_kind: str, version: str | None, limit: int, refused: float
) -> None:
    out = facts(replace(NOTHING, log=DECLARING, engine=engine_kind, engine_version=version))
    assert out["recommended_max_model_len"].value == limit
    assert out["refused_share_at_recommended"].value == refused


def test_few_that_declare_much_may_be_refused_and_are_counted() -> None:
    # 3 of 10,000: the order statistic allows four above it
    declaring = log(joint((900, 100, 10_000)), declared=[9_000] * 3 + [1_100] * 5_000)
    out = facts(replace(NOTHING, log=declaring, engine_version="0.31.0"))
    assert out["recommended_max_model_len"].value == 2_048
    assert out["refused_share_at_recommended"].value == pytest.approx(3e-4)
    assert "declare more" in (out["refused_share_at_recommended"].source or "")


def test_mass_beyond_the_last_bucket_has_a_floor_and_no_ceiling() -> None:
    tail = {"prompt_tokens": buckets([1000, 2000], [9_000, 900, 100]), "output_tokens": buckets([500], [10_000, 0])}
    limit = facts(replace(NOTHING, engines=(engine(lengths=tail),)))["recommended_max_model_len"]
    # the longest thousandth lies above 2,000 tokens of prompt
    assert (limit.value, limit.low, limit.high) == (None, 2_048, None)


def test_finer_buckets_narrow_the_interval() -> None:
    def width(edges: list[float]) -> float:
        shares = np.diff([0.0, *(min(e / 2_000, 1.0) for e in edges), 1.0])
        fine = {"prompt_tokens": buckets(edges, (20_000 * shares).tolist()), "output_tokens": buckets([1], [20_000, 0])}
        limit = facts(replace(NOTHING, engines=(engine(lengths=fine),)))["recommended_max_model_len"]
        assert limit.low is not None
        assert limit.high is not None
        assert limit.low <= 2_000 * 1.25 <= limit.high + 1_024
        return limit.high - limit.low

    coarse, geometric = [1_000.0, 10_000.0], (100 * 1.05 ** np.arange(80)).tolist()
    assert width(geometric) < width(coarse)


def burst(extra: int) -> Evidence:
    """10,000 requests over a day, the longest twenty of them within one slot at noon."""
    start = np.concatenate([300 * (np.arange(9_980) % 288), np.full(20, 43_200)])
    total = np.concatenate([np.full(9_980, 1_024), np.full(20, 1_024 + extra)])
    history = LengthHistory.merge(
        [LengthHistory(300, start, np.zeros(10_000, np.int64), bin_of(total), np.ones(10_000, np.int64))]
    )
    served = joint((1_024, 0, 9_980), (1_024 + extra, 0, 20))
    return replace(NOTHING, log=replace(log(served), history=history))


def test_a_burst_of_long_requests_is_not_a_percentile() -> None:
    out = facts(burst(7_168))
    assert out["recommended_max_model_len"].value is None
    assert out["recommended_max_model_len"].low == 8_192
    assert "because long ones come in bursts, cannot bound a p99.9" in (out["needed_tokens_p999_upper"].unknown or "")


@given(
    st.lists(st.tuples(st.integers(1, 50_000), st.integers(1, 3_000)), min_size=1, max_size=12),
    st.integers(1, 4),
    st.sampled_from(["interactive", "batch"]),
)
def test_longer_requests_never_lower_the_limit(rows: list[tuple[int, int]], factor: int, workload: Workload) -> None:
    rows.append((100, 3_000))
    short, long = (
        facts(replace(totals(*((length * f, n) for length, n in rows)), workload=workload))["recommended_max_model_len"]
        for f in (1, factor)
    )
    assert short.number is not None
    assert long.number is not None
    assert long.number >= short.number
