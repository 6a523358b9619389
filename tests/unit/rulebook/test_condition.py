"""One comparison: how it is read, and its three values over known, bounded and unknown facts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.catalogue import CATALOGUE, WORDS
from advisor.domain.errors import ConfigError
from advisor.rulebook.condition import OPERATORS, STATES, known_fact, parse
from tests.unit.rulebook.samples import sheet


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("kv_usage_p95 < 60 %", 0.6),
        ("kv_usage_p95 < 0.6", 0.6),
        ("itl_mean >= 40ms", 0.04),
        ("observed_seconds >= 12h", 43_200.0),
        ("max_model_len > 8192", 8_192.0),
        ("kv_bytes_per_token < 320KiB", 327_680.0),
        ("observed_days >= 7", 7.0),
    ],
)
def test_a_threshold_is_read_in_the_unit_of_its_fact(text: str, threshold: float) -> None:
    assert parse(text).threshold == pytest.approx(threshold)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kv_usage_p59 < 60 %", r'unknown fact "kv_usage_p59" \(did you mean kv_usage_p95\?\)'),
        ("kv_usage_p95 < 40ms", "a quantity in ratio is expected"),
        ("itl_mean < 60 %", "a quantity in seconds is expected"),
        ("kv_usage_p95 < running_p95", "kv_usage_p95 is in ratio, running_p95 in requests"),
        ("kv_usage_p95 is full", "kv_usage_p95 is one of unknown, known, bounded"),
        ("observed_days is 7", "observed_days is one of unknown, known, bounded"),
        ("binding_ceiling is latncy", "binding_ceiling is one of .* latency"),
        ("binding_ceiling >= 5", "is a word"),
        ("observed_days < binding_ceiling", "observed_days is in -"),
        ("kv_usage_p95 <", "is not a comparison"),
        ("kv_usage_p95 == 3", "is not a comparison"),
        ("kv_usage_p95 < 60 %" + " " * 200, "is not a comparison"),
        ("running_p95 < 1e400", "not a finite number"),
    ],
)
def test_what_is_wrong_with_a_comparison_is_said(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse(text)


# A fact between two bounds decides a comparison only where it is decided alike for the whole interval.
@pytest.mark.parametrize(
    ("condition", "running", "holds"),
    [
        ("running_p95 >= 10", 16, True),
        ("running_p95 >= 10", (16, None), True),  # at least 16
        ("running_p95 >= 16", (16, None), True),
        ("running_p95 >= 20", (16, None), None),
        ("running_p95 < 10", (16, None), False),
        ("running_p95 <= 16", (16, None), None),
        ("running_p95 > 16", (16, None), None),
        ("running_p95 < 20", (None, 16), True),  # at most 16
        ("running_p95 > 16", (None, 16), False),
        ("running_p95 >= 16", (None, 16), None),
        ("running_p95 < 10", (2, 9), True),
        ("running_p95 < 5", (2, 9), None),
        ("running_p95 < 2", (2, 9), False),
        ("running_p95 < 10", (None, None), None),
    ],
)
def test_bounds_decide_for_the_whole_interval(
    condition: str, running: float | tuple[float | None, float | None], *, holds: bool | None
) -> None:
    assert parse(condition).holds(sheet(running_p95=running)) is holds


def test_two_intervals_are_compared_by_their_far_ends() -> None:
    condition = parse("running_p95 < 0.8 budget_ceiling")
    assert condition.holds(sheet(running_p95=(2, 7), budget_ceiling=(10, 20))) is True  # 7 < 0.8 x 10
    assert condition.holds(sheet(running_p95=(2, 8), budget_ceiling=(10, 20))) is None
    assert condition.holds(sheet(running_p95=16, budget_ceiling=(None, 20))) is False  # 16 >= 0.8 x 20
    assert condition.holds(sheet(running_p95=(16, None), budget_ceiling=(10, None))) is None


@pytest.mark.parametrize(
    ("word", "known", "bounded", "unknown"),
    [("known", True, False, False), ("bounded", False, True, False), ("unknown", False, False, True)],
)
def test_the_state_of_a_fact_is_always_decided(word: str, *, known: bool, bounded: bool, unknown: bool) -> None:
    condition = parse(f"running_p95 is {word}")
    found = [condition.holds(s) for s in (sheet(running_p95=8), sheet(running_p95=(8, None)), sheet())]
    assert found == [known, bounded, unknown]


def test_a_word_is_compared_with_a_word() -> None:
    condition = parse("binding_ceiling is latency")
    found = [condition.holds(sheet(binding_ceiling=w)) for w in ("latency", "memory")]
    assert found == [True, False]
    assert condition.holds(sheet()) is None


def test_the_facts_that_leave_it_open_are_named() -> None:
    condition = parse("running_p95 < 0.8 budget_ceiling")
    assert condition.missing(sheet(running_p95=8)) == ("budget_ceiling",)
    assert condition.missing(sheet(running_p95=(8, None))) == ("running_p95", "budget_ceiling")


def test_distance_is_relative_to_the_threshold() -> None:
    assert parse("kv_usage_p95 < 60 %").distance(sheet(kv_usage_p95=0.9)) == pytest.approx(0.5)
    assert parse("running_p95 < 0.5 max_num_seqs").distance(sheet(running_p95=12, max_num_seqs=16)) == 0.5
    assert parse("running_p95 < 0").distance(sheet(running_p95=12)) == 12
    assert parse("running_p95 < 8").distance(sheet(running_p95=(9, None))) is None


def test_every_word_fact_is_catalogued() -> None:
    assert set(WORDS) <= set(CATALOGUE)
    assert known_fact("binding_ceiling") in WORDS


LIKELY = st.lists(
    st.sampled_from([*list(CATALOGUE)[:5], *OPERATORS, *STATES, "is", " ", "60", "%", "40ms", "-1", "1e309", "k", ".8"])
)


@given(LIKELY.map("".join) | st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        condition = parse(text)
    except ConfigError:
        return
    assert condition.fact in CATALOGUE
    assert condition.threshold is None or math.isfinite(condition.threshold)
