"""Cumulative series on one grid: what was gained, over restarts, gaps and moving edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.sources.metrics_series import RawSeries, Readings

NAN = float("nan")


def series(values: Sequence[float], name: str = "c", start: float = 0, step: float = 60) -> RawSeries:
    """One series on a grid; NaN is a reading that is missing."""
    times, found = start + step * np.arange(len(values)), np.asarray(values, float)
    known = np.isfinite(found)
    return RawSeries(name, {}, times[known], found[known])


def of(columns: Mapping[str, Sequence[float]], starts: Sequence[float] = ()) -> Readings:
    return Readings.of({(name, ""): [series(values, name)] for name, values in columns.items()}, starts)


def gained(readings: Readings) -> list[list[float]]:
    return [column.tolist() for column in readings.increases().T]


def test_the_first_reading_is_where_counting_begins() -> None:
    assert gained(of({"c": [100, 110, 130]})) == [[10, 20]]


def test_a_process_that_began_within_the_time_read_counts_from_zero() -> None:
    readings = of({"c": [7, 10]}, starts=[-30])
    assert readings.times.tolist() == [-30, 0, 60]
    assert gained(readings) == [[7, 3]]


def test_a_reset_counts_the_new_value() -> None:
    readings = of({"c": [100, 120, 5, 9], "d": [10, 10, 1, 1]})
    assert gained(readings) == [[20, 5, 4], [0, 1, 0]]
    assert readings.last_reset() == (60, 120)


def test_a_restart_that_caught_up_is_seen_by_its_start() -> None:
    # 100 before; 130 afterwards would pass for 30 more, were it not for the start at 90
    readings = of({"c": [90, 100, 130]}, starts=[90])
    assert gained(readings) == [[10, 0, 130]]
    assert readings.last_reset() == (60, 90)


def test_the_value_before_a_restart_is_not_counted_again() -> None:
    # the process began at 70, but the server went on giving 500 until 120
    readings = of({"c": [490, 500, 500, 3, 8]}, starts=[70])
    assert np.nansum(readings.increases()) == 10 + 3 + 5
    assert readings.last_reset() == (120, 120)


def test_one_counter_of_many_that_wavers_is_no_restart() -> None:
    readings = of({"a": [10, 20, 30], "b": [10, 20, 30], "wavers": [100, 99, 101]})
    assert readings.last_reset() is None
    assert gained(readings)[2] == [0, 2]


def test_a_label_value_that_appears_later_stood_at_zero_before() -> None:
    parts = {("finished", "stop"): [series([50, 60, 70])], ("finished", "length"): [series([NAN, 2, 3])]}
    assert gained(Readings.of(parts, ())) == [[10, 10], [2, 1]]


def test_a_metric_that_appears_later_may_have_counted_unseen() -> None:
    gains = gained(of({"a": [50, 60, 70], "b": [NAN, 900, 903]}))
    assert np.isnan(gains[1][0])
    assert gains[1][1] == 3


def test_a_hole_makes_a_longer_window_and_loses_nothing() -> None:
    readings = of({"a": [0, 10, 20, 30], "b": [5, NAN, 25, 35]})
    assert readings.times.tolist() == [0, 120, 180]
    assert gained(readings) == [[20, 10], [20, 10]]


def test_a_counter_that_ends_is_unknown_from_there() -> None:
    gains = gained(of({"a": [0, 10, 20], "b": [0, 5, NAN]}))
    assert gains[0] == [10, 10]
    assert gains[1][0] == 5
    assert np.isnan(gains[1][1])


def test_series_that_show_one_thing_twice_are_not_added() -> None:
    twice = Readings.of({("c", ""): [series([10, 20]), series([9, 21])]}, ())
    assert gained(twice) == [[11]]


def histogram(edges: Mapping[str, Sequence[float]], sums: Sequence[float]) -> dict[tuple[str, str], list[RawSeries]]:
    columns = {("h_bucket", repr(float(le))): [series(values, "h_bucket")] for le, values in edges.items()}
    return {**columns, ("h_sum", ""): [series(sums, "h_sum")]}


def test_a_histogram_is_what_was_observed_between_first_and_last() -> None:
    read = Readings.of(histogram({"100": [1, 4], "200": [2, 9], "+Inf": [2, 10]}, [50, 1050]), ())
    found = read.histogram("h")
    assert found is not None
    assert found.edges.tolist() == [100, 200]
    assert found.counts.tolist() == [3, 4, 1]  # cumulative 3, 7, 8
    assert found.total == 1000


def test_edges_that_change_at_a_restart_are_merged_on_the_common_ones() -> None:
    # before: 100 and 200, four observations (3, 1, 0); after the start at 90: 100 and 500, six of them (1, 4, 1)
    edges: dict[str, Sequence[float]] = {"100": [0, 3, 1], "200": [0, 4, NAN], "500": [NAN, NAN, 5], "+Inf": [0, 4, 6]}
    found = Readings.of(histogram(edges, [0, 400, 900]), [90]).histogram("h")
    assert found is not None
    assert found.edges.tolist() == [100]
    assert found.counts.tolist() == [4, 6]
    assert found.total == 1300


def test_a_histogram_without_its_last_bucket_is_none() -> None:
    assert Readings.of(histogram({"100": [1, 4], "200": [2, 9]}, [0, 1]), ()).histogram("h") is None


def test_nothing_read_is_nothing_gained() -> None:
    empty = Readings.of({}, [5.0])
    assert empty.times.size == 0
    assert empty.histogram("h") is None
    assert empty.since(0).increases().size == 0


@given(
    lives=st.lists(st.lists(st.integers(1, 50), min_size=2, max_size=6), min_size=1, max_size=4),
    counters=st.integers(1, 3),
)
def test_totals_are_right_over_any_restarts_that_are_known(lives: list[list[int]], counters: int) -> None:
    """Each life starts at zero right after the last reading of the one before: nothing is lost, nothing twice."""
    values: list[float] = []
    starts: list[float] = []
    for life in lives:
        starts.append(60.0 * len(values) - 59.0)
        values += np.cumsum(life).tolist()
    readings = of({f"c{i}": [v * (i + 1) for v in values] for i in range(counters)}, starts)
    total = sum(map(sum, lives))
    assert readings.increases().sum(axis=0).tolist() == pytest.approx([total * (i + 1) for i in range(counters)])


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=30), st.lists(st.floats(-100, 3000), max_size=3))
def test_no_gain_is_ever_negative(values: list[float], starts: list[float]) -> None:
    gains = of({"c": values}, starts).increases()
    assert (gains[np.isfinite(gains)] >= 0).all()
