from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain import numbers
from advisor.domain.fact import Fact, computed, measured, unknown


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.0143,), "14.3 ms"),
        ((0.04,), "40 ms"),
        ((1.84,), "1.84 s"),
        ((2.0,), "2 s"),
        ((0.5, 0.7), "0.5-0.7 s"),
        ((0.025, 0.05), "25-50 ms"),
        ((0.0004,), "0.4 ms"),
        ((0.0,), "0 ms"),
        ((599.0,), "599 s"),
        ((640.0, 2_560.0), "10.7-42.7 min"),
        ((160.0, 640.0), "160-640 s"),
        ((7_826.0,), "2.17 h"),
    ],
)
def test_seconds(values: tuple[float, ...], text: str) -> None:
    assert numbers.seconds(*values) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.174,), "17 %"),
        ((0.0003,), "0.03 %"),
        ((1 / 412_310,), "0.00024 %"),
        ((0.042,), "4.2 %"),
        ((0.0,), "0 %"),
        ((1.0,), "100 %"),
        ((0.9996,), "99.96 %"),
        ((0.9936,), "99.36 %"),
        ((0.999958,), "99.996 %"),
        ((0.9999996,), "99.99996 %"),
        ((1e-12,), "<0.0001 %"),
        ((1.5,), "150 %"),
        ((-0.0123,), "-1.2 %"),
        ((0.04, 0.06), "4-6 %"),
        ((-0.02, 0.03), "-2 to 3 %"),
    ],
)
def test_ratio(values: tuple[float, ...], text: str) -> None:
    assert numbers.ratio(*values) == text


@given(st.floats(min_value=0, max_value=1))
def test_only_nothing_looks_like_none_and_only_everything_looks_like_all(share: float) -> None:
    text = numbers.ratio(share)
    assert (text == "0 %") == (share == 0)
    if share < 1 - 1e-8:
        assert text != "100 %"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (numbers.factor(1_048_576 / 12_288), "85.33x"),
        (numbers.factor(16.0), "16x"),
        (numbers.factor(0.8048), "0.8x"),
        (numbers.factor(0.00417), "0.0042x"),
        (numbers.tokens(12_288.0), "12,288"),
        (numbers.tokens(1241.6), "1,242"),
        (numbers.tokens(6190, 6480), "6,190-6,480"),
        (numbers.count(16.0), "16"),
        (numbers.count(15.4), "15.4"),
        (numbers.count(1_024), "1,024"),
        (numbers.count(24_563.5), "24,564"),
        (numbers.size_bytes(327_680.0), "320 KiB"),
        (numbers.size_bytes(8.11 * 2**30), "8.11 GiB"),
        (numbers.size_bytes(512.0), "512 B"),
        (numbers.size_bytes(0.0), "0 B"),
        (numbers.rate(9.13), "9.13 req/s"),
        (numbers.number(99.9), "99.9"),
        (numbers.number(6.6), "6.6"),
        (numbers.duration(7 * 86_400), "7 d"),
        (numbers.duration(86_400), "1 d"),
        (numbers.duration(6 * 3_600), "6 h"),
        (numbers.duration(5_400), "1.5 h"),
        (numbers.duration(90), "1.5 min"),
        (numbers.duration(45), "45 s"),
        (numbers.setting(131_072.0), "131072"),
        (numbers.setting(1_048_576), "1048576"),
        (numbers.setting(0.92), "0.92"),
    ],
)
def test_each_unit_reads_as_people_write_it(text: str, wanted: str) -> None:
    assert text == wanted


@pytest.mark.parametrize(
    ("name", "fact", "text", "around"),
    [
        ("latency_ceiling", measured(None, low=16.0, source="gauges"), "at least 16", ""),
        ("latency_ceiling", measured(40.0, high=48.0, source="sweep"), "40", "at most 48"),
        ("itl_p99", measured(None, low=0.025, high=0.05, source="buckets"), "25-50 ms", ""),
        ("itl_p99", measured(None, low=0.1, high=math.inf, source="buckets"), "at least 100 ms", ""),
        ("ttft_p99", measured(math.nan, source="buckets"), "unknown", ""),
        ("total_tokens_p999", measured(6301.0, low=6190.0, high=6480.0, source="log"), "6,301", "6,190-6,480"),
        ("binding_ceiling", computed("memory", source="47 < 60"), "memory", ""),
        ("max_model_len_cost_ratio", computed(85.333, source="-"), "85.33x", ""),
        ("running_p95", measured(5.0, high=math.inf, source="buckets"), "5", ""),
        ("kv_usage_p95", unknown("no gauge"), "unknown", ""),
        ("demand_over_capacity", computed(None, low=0.0, high=0.74, source="-"), "at most 0.74x", ""),
        ("kv_usage_p95", measured(None, low=0.0, high=0.0, source="gauges"), "0 %", ""),
        ("worst_replica_load", computed(1.77, source="-"), "1.77x", ""),
    ],
)
def test_a_fact_shows_its_value_or_its_bounds(name: str, fact: Fact, text: str, around: str) -> None:
    assert numbers.figure(name, fact) == text
    assert numbers.interval(name, fact) == around


@pytest.mark.parametrize("unit", ["seconds", "ratio", "tokens", "sequences", "bytes", "1/s", "x", "-", "furlongs"])
@given(value=st.floats())
def test_no_number_breaks_a_format(unit: str, value: float) -> None:
    text = numbers.quantity(value, unit)
    assert (text == "unknown") == (not math.isfinite(value))
    assert len(text) < 450


@pytest.mark.parametrize(("many", "text"), [(0, "0 engines"), (1, "1 engine"), (1200, "1,200 engines")])
def test_one_thing_is_no_plural(many: int, text: str) -> None:
    assert numbers.counted(many, "engine") == text


def test_a_share_of_time_says_what_it_is_a_share_of() -> None:
    scraped, counted = measured(0.13, n=1440, source="scrapes"), computed(None, low=0.84, high=1.0, source="counters")
    assert numbers.told("time_at_sequence_cap", scraped) == "13 % of the time"
    assert numbers.told("time_at_sequence_cap", counted) == "84-100 % of engine steps since the start"
    assert numbers.told("kv_usage_p95", counted) == "84-100 %"
