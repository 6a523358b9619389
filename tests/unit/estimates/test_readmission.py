"""How an engine takes back what it preempted: told by release or flag, else seen, else not known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import EngineSeries, Evidence
from advisor.estimates.overflow import Growth
from advisor.estimates.readmission import readmission
from tests.unit.estimates.evidence import NOTHING, engine, flags, gauges, joint, sheet

# 9 prompts of 600 and one of 6,000: 1,140 on average, a tenth longer than 2,048
COUNTS = joint((600, 200, 9), (6_000, 200, 1))
LENGTHS = Growth(1_140, 200, prompts=COUNTS.prompts())


def chunk(of: Evidence, preempted: float | None = None) -> int | None:
    """The chunk by which this engine admits, 0 for none, None where that is not known."""
    back = readmission(of, sheet(preempted_share=preempted), LENGTHS, 2_048)
    return back.growth.chunk if back.known else None


@pytest.mark.parametrize(
    ("server", "version", "stated", "expected"),
    [
        ("vllm", "0.32.0", {}, 0),
        ("vllm", "0.19.0", {}, 2_048),
        ("vllm", "0.32.0", {"scheduler_reserve_full_isl": False}, 2_048),
        ("vllm", None, {"scheduler_reserve_full_isl": True}, 0),
        ("sglang", None, {}, 0),
    ],
)
def test_release_and_flag_tell(server: str, version: str | None, stated: dict[str, bool], expected: int) -> None:
    told = replace(NOTHING, engine=server, engine_version=version, flags=flags(**stated))
    assert chunk(told) == expected
    assert chunk(told, 0.1) == expected


def full(share: float, *, waiting: float = 20.0, running: float = 13.0, usage: float = 0.97) -> EngineSeries:
    """1,000 scrapes, in so many of which the cache was full; else 4 run."""
    there = np.arange(1_000) < 1_000 * share
    return engine(
        gauges(np.where(there, running, 4.0), np.where(there, waiting, 0.0), np.where(there, usage, 0.2)),
    )


def capped(*engines: EngineSeries) -> Evidence:
    return replace(NOTHING, engines=engines, flags=flags(max_num_seqs=256))


def test_where_the_cache_is_full_it_is_seen() -> None:
    # V = 1,140 + 200 / 13: 200 / 1,155 = 0.17 a request; the other kind, of which a tenth is longer than 2,048 and 2 %
    # of the rest end beyond a step, 1 + 0.118 x 2,048 / 13 = 19.6 times that, 3.4. Full 20 % of the time that is 0.68,
    # and an eighth of it 8.5 %
    assert chunk(capped(full(0.2)), 0.06) == 0
    assert chunk(capped(full(0.2)), 0.09) is None
    assert "6.00% preempted" in (readmission(capped(full(0.2)), sheet(preempted_share=0.06), LENGTHS, 2_048).why or "")


@pytest.mark.parametrize(
    "unseen",
    [
        capped(full(0.04)),  # hardly ever full
        capped(full(0.2, waiting=0.0)),  # nobody waits
        capped(full(0.2, running=256.0)),  # they wait for seats
        capped(full(0.2, usage=0.9)),  # they wait for the token budget, perhaps
        capped(full(0.2, usage=float("nan"))),
        capped(engine(gauges([13.0] * 499, 20.0, 0.97))),  # too few scrapes
        replace(capped(full(0.2)), flags={}),  # nobody knows how many seats there are
        capped(engine()),
        capped(),
    ],
)
def test_where_nothing_is_seen_it_is_not_known(unseen: Evidence) -> None:
    assert chunk(unseen, 0.0) is None
    assert "not known" in (readmission(unseen, sheet(preempted_share=0.0), LENGTHS, 2_048).why or "")


def test_preemptions_that_nobody_counted_tell_nothing() -> None:
    assert chunk(capped(full(0.2))) is None


def test_more_than_an_engine_preempts_that_waits_for_room() -> None:
    # overfull all the time it makes 200 / 1,140 = 0.175 a request, and 0.219 is 1.25 times that
    assert chunk(NOTHING, 0.23) == 2_048
    assert chunk(NOTHING, 0.21) is None
    # where requests wait 6 % of the time no more than four times 6 % of 0.175 are, 4.2 %; none is seen to wait: 3.5 %
    for waited, few, many in ((0.06, 0.041, 0.043), (0.0, 0.034, 0.036), (0.9, 0.21, 0.23)):
        known = [sheet(preempted_share=preempted, waiting_share=waited) for preempted in (few, many)]
        assert [readmission(NOTHING, one, LENGTHS, 2_048).known for one in known] == [False, True]
    assert "23.0% preempted" in (readmission(NOTHING, sheet(preempted_share=0.23), LENGTHS, 2_048).why or "")
