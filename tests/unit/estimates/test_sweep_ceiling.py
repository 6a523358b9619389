from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, Slo
from advisor.domain.fact import Fact, measured, unknown
from advisor.domain.sweep import Sweep, SweepPoint
from advisor.estimates.latency_ceiling import latency_ceiling
from advisor.estimates.sweep_ceiling import from_sweep, on_one_engine, other_epoch, where_next
from tests.unit.estimates.evidence import NOTHING, flags

TARGET = 0.040


def swept(*points: tuple[float, float]) -> Sweep:
    return Sweep(tuple(SweepPoint(concurrency, tpot) for concurrency, tpot in points), "file")


def shape(fact: Fact) -> tuple[float | str | None, float | None, float | None]:
    return fact.value, fact.low, fact.high


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        # 62, 41, 26 and 19 tokens/s per user, 25 needed
        (((8, 1 / 62), (24, 1 / 41), (40, 1 / 26), (48, 1 / 19)), (40, 40, 48)),
        # in any order
        (((48, 1 / 19), (8, 1 / 62), (40, 1 / 26)), (40, 40, 48)),
        # a lucky level above a failing one does not count
        (((8, 0.02), (16, 0.05), (32, 0.03)), (8, 8, 16)),
        # never seen failing: at least
        (((8, 0.02), (32, 0.03)), (None, 32, None)),
        # exactly at the target passes
        (((8, TARGET), (16, 0.05)), (8, 8, 16)),
        (((8, 0.1 + 0.2 - 0.26), (16, 0.05)), (8, 8, 16)),
        # the same level twice, once failing
        (((8, 0.02), (16, 0.03), (16, 0.05)), (8, 8, 16)),
        # the lowest fails: somewhere below it, if anywhere
        (((8, 0.05), (16, 0.06)), (None, 0, 7)),
        (((1, 0.05),), (None, 0, 0)),
        # what is no number has not passed
        (((8, 0.02), (16, float("nan"))), (8, 8, 16)),
        (((8, 0.0), (16, 0.05)), (8, 8, 16)),
    ],
)
def test_the_largest_level_below_the_first_failure(
    points: tuple[tuple[float, float], ...], expected: tuple[float | None, ...]
) -> None:
    assert shape(from_sweep(swept(*points), TARGET)) == expected


def test_a_sweep_says_what_it_compared() -> None:
    source = from_sweep(swept((40, 1 / 26), (48, 1 / 19)), TARGET).source
    assert source == "26 tokens/s per user at 40, 19 tokens/s per user at 48; 25 needed (means, not percentiles)"


def test_it_says_where_to_measure_next() -> None:
    assert (from_sweep(swept((24, 0.03), (48, 0.05)), TARGET).source or "").endswith("; measure 34 next")


def test_what_is_only_known_to_be_at_most_too_much_has_not_failed() -> None:
    bound = SweepPoint(64, 0.05, at_most=True)
    seen = Sweep((SweepPoint(32, 0.03, at_most=True), bound), "file")
    assert shape(from_sweep(seen, TARGET)) == (None, 32, None)
    assert "only an upper bound" in (from_sweep(Sweep((bound,), "file"), TARGET).unknown or "")
    # what surely holds at its bound holds
    assert shape(from_sweep(seen, 0.06)) == (None, 64, None)


def test_the_first_token_has_a_ceiling_of_its_own() -> None:
    seen = Sweep((SweepPoint(8, 0.01, 0.5), SweepPoint(16, 0.01, 3.0), SweepPoint(32, 0.01)), "file")
    assert shape(from_sweep(seen, 2.0, lambda p: p.ttft_seconds)) == (8, 8, 16)
    assert from_sweep(swept((8, 0.01)), 2.0, lambda p: p.ttft_seconds).is_unknown


@pytest.mark.parametrize(
    ("ceiling", "level"),
    [
        # sqrt(24 x 48) = 33.9
        (measured(24, low=24, high=48, source=""), 34),
        # sqrt(40 x 48) = 43.8 is less than 10 % above 40
        (measured(40, low=40, high=48, source=""), None),
        (measured(1, low=1, high=2, source=""), None),
        (measured(None, low=128, source=""), 192),
        (measured(None, low=0, high=7, source=""), 3),
        (measured(None, low=0, high=0, source=""), None),
        (unknown("nothing"), None),
    ],
)
def test_the_next_level(ceiling: Fact, level: int | None) -> None:
    assert where_next(ceiling) == level


@given(
    st.lists(st.tuples(st.integers(1, 512), st.floats(0.001, 0.2), st.booleans()), min_size=1, max_size=8),
    st.floats(0.005, 0.1),
    st.floats(1.0, 3.0),
)
def test_a_looser_objective_never_lowers_the_ceiling(
    rows: list[tuple[int, float, bool]], target: float, looser: float
) -> None:
    seen = Sweep(tuple(SweepPoint(c, tpot, at_most=bound) for c, tpot, bound in rows), "file")
    tight, loose = from_sweep(seen, target), from_sweep(seen, target * looser)
    assert (tight.floor or 0) <= (loose.floor or 0)
    assert all(fact.high is None or (fact.floor or 0) <= fact.high for fact in (tight, loose))


def running(sweep: Sweep, **known: int) -> Evidence:
    return replace(NOTHING, slo=Slo(tpot_seconds=TARGET), sweep=sweep, flags=flags(**known))


def test_in_flight_beyond_the_seats_measures_the_seats() -> None:
    seen = replace(swept((32, 0.02), (64, 0.03), (128, 0.03)), in_flight=True)
    assert shape(latency_ceiling(running(seen, max_num_seqs=64), "", None)) == (None, 64, None)
    # running sequences, as somebody stated them, are taken at their word; so is a sweep that says its own cap
    stated = replace(seen, in_flight=False)
    assert shape(latency_ceiling(running(stated, max_num_seqs=64), "", None)) == (None, 128, None)
    larger = replace(seen, flags={"max_num_seqs": 256})
    assert shape(latency_ceiling(running(larger, max_num_seqs=64), "", None)) == (None, 128, None)


def test_in_flight_at_one_address_is_shared_by_its_engines() -> None:
    seen = replace(swept((32, 0.02), (64, 0.05)), in_flight=True)
    shared = on_one_engine(running(seen, data_parallel_size=4))
    assert shared is not None
    assert [p.concurrency for p in shared.points] == [8, 16]


@pytest.mark.parametrize(
    ("sweep", "known", "why"),
    [
        ({"tensor_parallel_size": 2}, {"tensor_parallel_size": 4}, "it ran with tensor_parallel_size 2, 4 runs now"),
        ({"max_num_batched_tokens": 2048}, {"max_num_batched_tokens": 8192}, "max_num_batched_tokens 2048"),
        ({"max_num_seqs": 16}, {"max_num_seqs": 64}, "it ran with max_num_seqs 16, 64 runs now"),
        ({"max_num_seqs": 256}, {"max_num_seqs": 64}, None),
        ({"tensor_parallel_size": 2}, {}, None),
        ({}, {"tensor_parallel_size": 2}, None),
        ({"tensor_parallel_size": 2}, {"tensor_parallel_size": 2}, None),
    ],
)
def test_a_sweep_of_other_flags_is_of_another_epoch(
    sweep: dict[str, int], known: dict[str, int], why: str | None
) -> None:
    told = other_epoch(replace(swept((8, 0.02)), flags=sweep), running(swept((8, 0.02)), **known))
    assert told is None if why is None else why in (told or "")


def test_a_sweep_of_another_release_or_model_is_of_another_epoch() -> None:
    now = replace(NOTHING, name="org/Chat-70B", engine_version="0.32.0")
    assert "0.16.0" in (other_epoch(replace(swept((8, 0.02)), engine_version="0.16.0"), now) or "")
    assert "tested org/chat-8b" in (other_epoch(replace(swept((8, 0.02)), model="org/chat-8b"), now) or "")
    assert other_epoch(replace(swept((8, 0.02)), model="/models/chat-70b/"), now) is None
    # a name of somebody's choosing says nothing of the model
    assert other_epoch(replace(swept((8, 0.02)), model="org/chat-8b"), replace(now, name="support")) is None
