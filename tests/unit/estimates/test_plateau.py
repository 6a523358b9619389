"""The cap that running requests show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, Flag, Samples, Window
from advisor.estimates.plateau import Plateau, plateau
from advisor.merge import with_flags, with_plateau

CHAT = Evidence("chat", Window(0.0, 3600.0))


def engine(
    running: Sequence[float],
    waiting: Sequence[float],
    *,
    usage: float | None = 0.5,
    finished: float = 500.0,
    lifetime: bool = False,
) -> EngineSeries:
    times = np.arange(float(len(running)))
    kv_usage = None if usage is None else np.full(times.size, usage)
    samples = Samples(times, np.asarray(running, float), np.asarray(waiting, float), kv_usage)
    windows = CounterWindows(times[:1], times[:1] + 1, {"finished": np.array([finished])})
    return EngineSeries("a:8000", "0", 0.0, samples, windows, {}, {}, lifetime=lifetime)


PINNED = engine([9.0] * 20 + [15.0] + [16.0] * 39, [0.0] * 20 + [3.0] * 40)


def test_running_that_stops_at_one_number_while_others_wait_is_the_cap() -> None:
    assert plateau([PINNED]) == Plateau(16, 40)
    assert plateau([PINNED, PINNED]) == Plateau(16, 80)
    idle = engine([3.0] * 60, [0.0] * 60)
    assert plateau([PINNED, idle]) == Plateau(16, 40)


@pytest.mark.parametrize(
    "one",
    [
        engine([16.0] * 29, [3.0] * 29),  # too few scrapes
        engine([16.0] * 60, [0.0] * 60),  # nothing waits
        engine([12.0, 14.0, 16.0] * 20, [3.0] * 60),  # it moves below its most, as with a budget or a full cache
        engine([16.0] * 60, [3.0] * 60, usage=0.97),  # the cache is full
        engine([16.0] * 60, [3.0] * 60, usage=None),  # or may be
        engine([16.0] * 60, [3.0] * 60, finished=20.0),  # the same requests all the time
        engine([16.0] * 60, [3.0] * 60, lifetime=True),
        engine([0.0] * 60, [3.0] * 60),  # nothing runs at all
    ],
)
def test_what_is_no_plateau(one: EngineSeries) -> None:
    assert plateau([one]) is None


def test_engines_that_stop_at_different_numbers_tell_nothing() -> None:
    assert plateau([PINNED, engine([24.0] * 60, [3.0] * 60)]) is None
    assert plateau([PINNED, engine([12.0, 14.0, 16.0] * 20, [3.0] * 60)]) is None


@given(cap=st.integers(1, 512), offered=st.lists(st.integers(0, 1000), min_size=40, max_size=80))
def test_a_scheduler_with_a_cap_shows_it_or_nothing(cap: int, offered: list[int]) -> None:
    found = plateau([engine([min(n, cap) for n in offered], [max(n - cap, 0) for n in offered], finished=1e6)])
    assert found is None or found.seats == cap


def test_it_is_believed_only_where_nobody_states_the_cap() -> None:
    pinned = replace(CHAT, engines=(PINNED,))
    assert with_plateau(pinned).flags["max_num_seqs"] == Flag(16, "inferred")
    stated = with_plateau(with_flags(pinned, {"max_num_seqs": 256}, "config"))
    assert stated.flag("max_num_seqs") == 256
    assert [(d.believed.source, d.other.source, d.other.value) for d in stated.disagreements] == [
        ("config", "inferred", 16)
    ]


@pytest.mark.parametrize(
    "evidence",
    [
        replace(CHAT, engine="tgi", engines=(PINNED,)),  # seats by tokens
        replace(CHAT, engines=(PINNED,), flags={"max_num_active_seqs": Flag(16, "server_info")}),
        CHAT,
    ],
)
def test_where_running_stops_for_another_reason_nothing_is_inferred(evidence: Evidence) -> None:
    assert with_plateau(evidence) == evidence
