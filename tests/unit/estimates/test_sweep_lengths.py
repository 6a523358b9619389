"""Sweeps of other requests than the traffic's, with lengths of published results (dstack, DataCrunch)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, Slo
from advisor.domain.fact import Fact, measured, unknown
from advisor.domain.sweep import Sweep, SweepPoint
from advisor.estimates.latency_ceiling import latency_ceiling
from advisor.estimates.sweep_lengths import for_traffic, on_other_lengths
from tests.unit.estimates.evidence import NOTHING, bounded, joint, latencies, log

LONG_ANSWERS, EVEN, SHORT = (2046.2, 720.2), (511.0, 515.4), (224.8, 190.8)
"""Mean prompt and output tokens: a run called in2048_out2048 whose answers end early, random 1k/1k, ShareGPT."""


def swept(lengths: tuple[float, float] | tuple[None, None], *points: tuple[float, float]) -> Sweep:
    """Levels of concurrency and time per token; 16 held and 32 did not where the objective is 40 ms."""
    levels = points or ((16, 0.03), (32, 0.05))
    return Sweep(tuple(SweepPoint(c, t, prompt_tokens=lengths[0], output_tokens=lengths[1]) for c, t in levels), "file")


def traffic(prompt: int, output: int) -> Evidence:
    return replace(NOTHING, slo=Slo(tpot_seconds=0.04), log=log(joint((prompt, output, 1000))))


def ceiling(sweep: Sweep, evidence: Evidence) -> Fact:
    return latency_ceiling(replace(evidence, sweep=sweep), "not fitted", None)


def test_a_sweep_of_the_traffics_lengths_counts_whole() -> None:
    told = ceiling(swept(LONG_ANSWERS), traffic(2000, 700))
    assert (told.value, told.low, told.high) == (16, 16, 32)


def test_what_its_name_says_of_its_lengths_is_not_what_counts() -> None:
    # asked for 2,048 + 2,048, and 2,046 + 720 came: 2.8 prompt tokens a token, not 1
    assert on_other_lengths(swept(LONG_ANSWERS), traffic(2048, 2048)) is not None


def test_shorter_requests_than_the_traffics_tell_no_ceiling() -> None:
    told = ceiling(swept(SHORT), traffic(6000, 300))
    assert told.unknown == (
        "the sweep's requests have 225 + 191 tokens and the traffic's 6,000 + 300: give a sweep with the deployment's "
        "own lengths (advisor sweep plan)"
    )


def test_as_long_contexts_with_less_prompt_work_tell_none_either() -> None:
    # 511 + 258 = 769 tokens held against 720 + 50 = 770, but one prompt token a token against seven
    assert ceiling(swept(EVEN), traffic(720, 100)).is_unknown


def test_longer_requests_tell_how_many_hold_at_least() -> None:
    told = ceiling(swept(LONG_ANSWERS), traffic(300, 190))
    assert (told.value, told.low, told.high) == (None, 16, None)
    assert "2,046 + 720 tokens and the traffic's 300 + 190" in (told.source or "")


def test_longer_requests_that_failed_at_the_lowest_level_tell_nothing() -> None:
    assert ceiling(swept(LONG_ANSWERS, (8, 0.05)), traffic(300, 190)).is_unknown


@pytest.mark.parametrize("lengths", [(None, None), (500.0, None)])
def test_a_sweep_that_does_not_tell_its_lengths_is_believed(lengths: tuple[None, None]) -> None:
    assert ceiling(swept(lengths), traffic(6000, 300)).value == 16


def test_without_traffic_there_is_nothing_to_compare_with() -> None:
    assert on_other_lengths(swept(SHORT), NOTHING) is None


def test_what_traffic_measured_goes_before_a_sweep_of_others() -> None:
    sample = latencies((0.1, 0.02, 8, 500), (0.1, 0.06, 12, 500))
    served = log(joint((6000, 300, 1000)), latency=sample)
    told = ceiling(swept(SHORT), replace(traffic(1, 1), log=served))
    assert (told.value, told.low, told.high) == (8, 8, 12)
    assert "no sweep, as the sweep's requests have 225 + 191" in (told.source or "")


def test_an_unknown_ceiling_keeps_its_reason() -> None:
    other = on_other_lengths(swept(SHORT), traffic(6000, 300))
    assert for_traffic(unknown("why"), other).unknown == "why"


@given(st.floats(1, 1e5), st.floats(1, 1e5), st.integers(1, 100_000), st.integers(1, 100_000))
def test_no_ceiling_rises_by_other_lengths(prompt: float, output: float, asked: int, answered: int) -> None:
    told = for_traffic(bounded(16, 32), on_other_lengths(swept((prompt, output)), traffic(asked, answered)))
    assert told.is_unknown or told.low == 16
    same = measured(16, low=16, high=32, source="file")
    assert for_traffic(same, on_other_lengths(swept((float(asked), float(answered))), traffic(asked, answered))) == same
