from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.evidence import Evidence, LatencySample, Slo
from advisor.domain.histogram import Buckets
from advisor.estimates import latency
from tests.unit.estimates.evidence import NOTHING, buckets, engine, joint, latencies, log

NAN = float("nan")


def logged(sample: LatencySample, slo: Slo | None = None) -> Evidence:
    return replace(NOTHING, log=log(latency=sample), slo=slo or Slo())


def measured(slo: Slo | None = None, **histograms: Buckets) -> Evidence:
    return replace(NOTHING, engines=(engine(latencies=histograms),), slo=slo or Slo())


def test_percentiles_of_a_log() -> None:
    out = latency.facts(logged(latencies((0.1, 0.01, 1, 50), (0.2, 0.02, 1, 49), (3.0, 0.03, 1, 1))))
    assert (out["ttft_p50"].value, out["ttft_p99"].value, out["tpot_p99"].value) == (0.1, 0.2, 0.02)
    assert out["ttft_p50"].n == 100


def test_a_log_of_few_requests_gives_way_to_histograms() -> None:
    few = replace(measured(ttft=buckets([0.1, 0.5], [900, 100, 0])), log=log(latency=latencies((9.0, 0.1, 1, 99))))
    ttft = latency.facts(few)["ttft_p99"]
    assert (ttft.value, ttft.low, ttft.high) == (None, 0.1, 0.5)


def test_a_percentile_in_the_last_bucket_is_only_at_least() -> None:
    ttft = latency.facts(measured(ttft=buckets([0.1, 0.5], [90, 5, 5])))["ttft_p99"]
    assert (ttft.value, ttft.low, ttft.high) == (None, 0.5, None)


def test_three_observations_tell_no_p99() -> None:
    out = latency.facts(measured(ttft=buckets([0.1], [3, 0]), itl=buckets([0.1], [3, 0], 0.03)))
    assert out["ttft_p99"].unknown == "3 observations; 100 are needed"
    assert out["itl_p99"].is_unknown
    assert out["itl_mean"].value == pytest.approx(0.01)


def test_the_mean_gap_needs_the_sum() -> None:
    assert latency.facts(measured(itl=buckets([0.1], [500, 0])))["itl_mean"].is_unknown


def test_both_targets_must_be_met_by_the_same_request() -> None:
    # 80 meet both, 10 only TTFT, 10 only TPOT
    rows = latencies((0.5, 0.03, 1, 80), (0.5, 0.05, 1, 10), (3.0, 0.03, 1, 10))
    out = latency.facts(logged(rows, Slo(tpot_seconds=0.04, ttft_seconds=2.0)))
    assert out["slo_attainment_tpot"].value == pytest.approx(0.9)
    assert out["slo_attainment_ttft"].value == pytest.approx(0.9)
    assert out["slo_attainment"].value == pytest.approx(0.8)
    assert out["slo_target"].value == pytest.approx(0.99)


def test_where_no_answer_has_two_tokens_all_of_them_keep_the_promise() -> None:
    promised = Slo(tpot_seconds=0.05)
    labels = replace(measured(promised), joint=joint((600, 1, 5_000)))
    told = latency.facts(labels)["slo_attainment_tpot"]
    assert (told.value, told.n) == (1.0, 5_000)
    one_longer = replace(labels, joint=joint((600, 1, 5_000), (600, 2, 1)))
    assert latency.facts(one_longer)["slo_attainment_tpot"].is_unknown
    counted = replace(
        NOTHING,
        slo=promised,
        engines=(engine(lengths={"output_tokens": buckets([1.0, 2.0], [500, 0, 0])}),),
    )
    assert latency.facts(counted)["slo_attainment_tpot"].value == 1.0


def test_a_request_on_the_target_meets_it() -> None:
    out = latency.facts(logged(latencies((2.0, 0.04, 1, 100)), Slo(tpot_seconds=0.04, ttft_seconds=2.0)))
    assert out["slo_attainment"].value == 1.0


def test_from_histograms_both_targets_are_bounded_by_frechet() -> None:
    both = measured(
        Slo(tpot_seconds=0.04, ttft_seconds=2.0),
        tpot=buckets([0.04, 0.1], [900, 100, 0]),
        ttft=buckets([2.0, 5.0], [950, 50, 0]),
    )
    share = latency.facts(both)["slo_attainment"]
    # 0.90 + 0.95 - 1, and the lesser
    assert (share.value, share.low, share.high) == pytest.approx((None, 0.85, 0.9))


def test_a_target_between_edges_leaves_a_span() -> None:
    slo = Slo(tpot_seconds=0.05)
    share = latency.facts(measured(slo, tpot=buckets([0.04, 0.1], [900, 90, 10])))["slo_attainment_tpot"]
    assert (share.value, share.low, share.high) == pytest.approx((None, 0.9, 0.99))


def test_answers_of_one_token_have_no_time_per_token_to_miss() -> None:
    rows = latencies((0.1, NAN, 1, 50), (0.1, 0.05, 1, 50))
    assert latency.facts(logged(rows, Slo(tpot_seconds=0.04)))["slo_attainment_tpot"].value == 0.5


def test_a_time_per_token_that_nobody_measured_is_not_met() -> None:
    out = latency.facts(logged(latencies((0.1, NAN, 1, 500)), Slo(tpot_seconds=0.04)))
    assert out["slo_attainment_tpot"].is_unknown
    assert out["slo_attainment"].is_unknown


def test_a_log_without_first_tokens_is_not_used() -> None:
    slo = Slo(tpot_seconds=0.04, ttft_seconds=2.0)
    assert latency.facts(logged(latencies((NAN, 0.03, 1, 500)), slo))["slo_attainment"].is_unknown


def test_one_of_two_targets_measured_is_not_both() -> None:
    half = measured(Slo(tpot_seconds=0.04, ttft_seconds=2.0), tpot=buckets([0.04], [1_000, 0]))
    out = latency.facts(half)
    assert out["slo_attainment_tpot"].value == 1.0
    assert out["slo_attainment"].is_unknown


def test_without_an_objective_nothing_is_met_or_missed() -> None:
    out = latency.facts(measured(ttft=buckets([2.0], [1_000, 0])))
    for name in ("slo_attainment", "slo_attainment_tpot", "slo_attainment_ttft", "slo_attainment_itl", "slo_target"):
        assert "objective" in (out[name].unknown or "")


def test_gaps_within_their_target() -> None:
    out = latency.facts(measured(Slo(itl_seconds=0.2), itl=buckets([0.2, 0.5], [990, 10, 0])))
    assert out["slo_attainment_itl"].value == pytest.approx(0.99)


def test_engines_are_added_up() -> None:
    both = tuple(engine(latencies={"ttft": buckets([0.1], counts)}) for counts in ([300, 0], [0, 100]))
    share = latency.facts(replace(NOTHING, engines=both, slo=Slo(ttft_seconds=0.1)))["slo_attainment_ttft"]
    assert (share.value, share.n) == (0.75, 400)
