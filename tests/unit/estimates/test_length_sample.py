"""Lengths that host agents counted: how good they are, what they may be used for, and what is believed before them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, HttpOutcomes, as_floats
from advisor.domain.exported import EDGES, ExportedLengths
from advisor.domain.fact import Fact
from advisor.domain.histogram import TokenCounts
from advisor.domain.policy import Policy
from advisor.estimates import context_limit, drift, lengths, load
from advisor.estimates.length_sample import believed_agents, length_sample
from advisor.estimates.token_budget import mean_lengths
from advisor.exporter.counting import counts_of
from tests.unit.estimates.evidence import NOTHING, buckets, engine, flags, joint, log, sheet

HOURS = 168
Rows = Iterable[tuple[int, int, int]]


def exported(
    *rows: tuple[int, int, int], refused: int = 0, refused_needs: Iterable[int] = (), cut: Iterable[int] = ()
) -> ExportedLengths:
    """(prompt, output, requests), spread evenly over the hours of a week."""
    counts = counts_of(log(joint(*rows), refused=refused, refused_needs=refused_needs, cut=cut))
    total = counts.histograms["total"]
    return ExportedLengths(
        histograms=counts.histograms,
        outcomes=counts.outcomes,
        slot_seconds=3600.0,
        slot_start=as_floats(np.arange(HOURS) * 3600.0),
        slots=np.tile(total.counts / HOURS, (HOURS, 1)),
        source="exporter histograms",
    )


def counted(
    *rows: tuple[int, int, int], refused: int = 0, refused_needs: Iterable[int] = (), cut: Iterable[int] = ()
) -> Evidence:
    return replace(NOTHING, exported=exported(*rows, refused=refused, refused_needs=refused_needs, cut=cut))


def facts(evidence: Evidence, **known: float) -> dict[str, Fact]:
    return lengths.facts(evidence) | context_limit.facts(evidence, Policy(), sheet(**known) | lengths.facts(evidence))


BODY = (1000, 24, 99_000)
TAIL = (7500, 500, 1000)


def test_the_total_is_known_to_a_bucket() -> None:
    out = facts(counted(BODY, TAIL))
    # 1,024 is an edge, 980 the one below it; 8,000 lies between 7,845 and 8,192.
    assert (out["total_tokens_p50"].low, out["total_tokens_p50"].value, out["total_tokens_p50"].high) == (
        980,
        1002.5,
        1024,
    )
    assert (out["total_tokens_p999"].low, out["total_tokens_p999"].high) == (7844, 8192)
    assert out["total_tokens_p999"].value == 8018.5
    assert out["total_tokens_p999"].n == 100_000
    assert "exporter histograms, to the bucket, 4.4 %" in (out["total_tokens_p999"].source or "")


def test_the_limit_is_at_most_a_bucket_longer_than_of_the_log() -> None:
    by_log = facts(replace(NOTHING, log=log(joint(BODY, TAIL))))
    by_agents = facts(counted(BODY, TAIL))
    # 8,000 x 1.25 = 10,000 -> 10,240; 8,192 x 1.25 = 10,240
    assert by_log["recommended_max_model_len"].value == by_agents["recommended_max_model_len"].value == 10_240
    assert by_agents["needed_tokens_p999_upper"].value == 8192
    assert by_agents["refused_share_at_recommended"].value == 0


@given(st.lists(st.tuples(st.integers(1, 200_000), st.integers(0, 8_000), st.integers(1, 4_000)), min_size=1))
def test_a_bucket_never_makes_anything_shorter(rows: Rows) -> None:
    exact, told = joint(*rows).totals(), length_sample(counted(*rows))
    assert told is not None
    assert told.totals.n == exact.n
    for q in (50.0, 99.0, 99.9):
        bound, by_agents = lengths.upper_bound(exact, q), lengths.upper_bound(told.totals, q)
        assert (bound is None) == (by_agents is None)
        if bound is not None and by_agents is not None:
            # sixteen an octave, whole tokens
            assert bound <= by_agents <= 1.0443 * bound + 1


def test_coverage_is_against_what_the_engines_finished() -> None:
    served = engine(lengths={"prompt_tokens": buckets([1000], [100_000, 0])})
    out = facts(replace(counted(BODY, TAIL), engines=(served,)))
    assert out["length_coverage"].value == 1.0
    half = engine(lengths={"prompt_tokens": buckets([1000], [200_000, 0])})
    assert facts(replace(counted(BODY, TAIL), engines=(half,)))["length_coverage"].value == 0.5
    assert facts(counted(BODY, TAIL))["length_coverage"].unknown == (
        "no engine metrics to compare the host agents with (--prometheus)"
    )


def test_a_week_is_a_week() -> None:
    assert facts(counted(BODY))["observed_days"].value == 7.0
    assert load.facts(counted(BODY), sheet())["observed_seconds"].value == 7 * 86_400.0


def test_refusals_are_counted_and_their_needs_raise_the_limit() -> None:
    out = facts(
        replace(
            counted(BODY, TAIL, refused=500, refused_needs=[20_000] * 500),
            http=HttpOutcomes(1.0, 1.0, 0.0),
        )
    )
    # 500 of 100,500; their 20,000 tokens are in the bucket up to 2^(229/16) = 20,346.7
    assert out["refused_share_now"].value == pytest.approx(500 / 100_500)
    assert out["needed_tokens_p999_upper"].value == 20_346
    # 20,346 x 1.25 = 25,432.5 -> 25 x 1,024
    assert out["recommended_max_model_len"].value == 25_600


def test_refusals_that_say_nothing_leave_only_a_floor() -> None:
    out = facts(counted(BODY, TAIL, refused=500))
    assert out["recommended_max_model_len"].value is None
    assert out["recommended_max_model_len"].low == 8192
    assert "500 requests were refused for their length without saying" in (
        out["needed_tokens_p999_upper"].unknown or ""
    )


def test_answers_cut_by_max_tokens_are_told_from_those_at_the_limit() -> None:
    short = counted(BODY, TAIL, cut=[1024] * 20_000)
    assert facts(replace(short, flags=flags(max_model_len=32_768)))["finish_length_share"].value == 0.0
    at_the_limit = facts(replace(short, flags=flags(max_model_len=8192)))["finish_length_share"]
    # the 1,000 requests in the bucket up to 8,192 may have reached it
    assert (at_the_limit.value, at_the_limit.low, at_the_limit.high) == (None, 0.0, 0.01)
    assert facts(short)["finish_length_share"].high == 0.2


def test_a_request_beyond_the_last_bucket_bounds_nothing() -> None:
    out = facts(counted(BODY, (2**21, 5, 2000)))
    assert out["recommended_max_model_len"].value is None
    assert out["total_tokens_p999"].value is None
    assert out["total_tokens_p999"].low == EDGES[-1]


def test_who_is_believed() -> None:
    agents = exported(BODY)
    exact = log(joint((10, 10, 5000)))
    for better in (
        replace(NOTHING, log=exact, exported=agents),
        replace(NOTHING, totals=TokenCounts.of([20], [5000]), exported=agents),
    ):
        assert believed_agents(better) is None
        assert facts(better)["total_tokens_p50"].value == 20
    engines = (engine(lengths={"prompt_tokens": buckets([8], [100, 0]), "output_tokens": buckets([8], [100, 0])}),)
    worse = replace(NOTHING, exported=agents, engines=engines)
    assert facts(worse)["prompt_tokens_p50"].high == 1024
    # a log without a single length tells nothing of lengths
    assert believed_agents(replace(NOTHING, log=log(), exported=agents)) is agents


def test_means_are_exact() -> None:
    assert mean_lengths(counted((1000, 20, 3), (2000, 40, 1))) == (1250.0, 25.0)


def test_a_change_of_shape_is_seen() -> None:
    told = exported((1000, 24, HOURS * 100), (4000, 96, HOURS * 100))
    slots = np.zeros((HOURS, EDGES.size + 1))
    slots[: HOURS // 2, np.searchsorted(EDGES, 1024)] = 200
    slots[HOURS // 2 :, np.searchsorted(EDGES, 4096)] = 200
    out = drift.facts(replace(NOTHING, exported=replace(told, slots=slots)), Policy())
    assert out["length_shift"].number is not None
    assert out["length_shift"].number > 1
    assert "exporter histograms" in (out["length_shift"].source or "")
