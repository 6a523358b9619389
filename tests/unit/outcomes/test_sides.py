"""Who runs with other settings than the rest, and whether that is a canary or a rollout on its way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.canary import Difference
from advisor.domain.evidence import EngineSeries, Flag
from advisor.outcomes.sides import differences, divide, ranked, settings_of
from tests.unit.outcomes.fleets import HOUR, replica


def names(engines: Iterable[EngineSeries]) -> list[str]:
    return [engine.instance for engine in engines]


def test_a_replica_with_another_cap_runs_apart() -> None:
    found = divide([replica("a", max_num_seqs=16), replica("b", max_num_seqs=24), replica("c", max_num_seqs=16)])
    assert (names(found.engines), names(found.apart), found.rollout) == (["a", "c"], ["b"], None)


def test_replicas_that_run_alike_are_left_as_they_are() -> None:
    engines = [replica("a", max_num_seqs=16, pool=500_000), replica("b", max_num_seqs=16, pool=480_000)]
    assert divide(engines).engines == tuple(engines)
    assert divide([]).engines == ()


def test_of_two_the_one_that_has_run_longer_is_the_rule() -> None:
    found = divide([replica("new", hours=5, max_num_seqs=24), replica("old", hours=50, max_num_seqs=16)])
    assert (names(found.engines), names(found.apart)) == (["old"], ["new"])


@pytest.mark.parametrize(("pool", "apart"), [(476_000, []), (524_000, []), (470_000, ["b"]), (530_000, ["b"])])
def test_pools_of_equal_replicas_differ_a_little(pool: int, apart: list[str]) -> None:
    """500,000 and 476,000 lie 4.8 % apart, 470,000 6 %."""
    found = divide([replica("a", pool=500_000), replica("b", pool=pool), replica("c", pool=500_000)])
    assert names(found.apart) == apart


def test_what_nobody_tells_is_no_difference() -> None:
    asked = replica("a", max_num_seqs=24, gpu_memory_utilization=0.9)
    silent = [replica(name, gpu_memory_utilization=0.9) for name in "bc"]
    assert divide([asked, *silent]).apart == ()
    guessed = replace(
        replica("d"), flags={"max_num_seqs": Flag(256, "default"), "max_model_len": Flag("auto", "config")}
    )
    assert divide([asked, guessed, replica("e", max_model_len=8_192)]).apart == ()


def test_who_tells_little_stays_with_the_most() -> None:
    """The canary was asked for its cap, one sibling too; of the others only the pool is known."""
    engines = [
        replica("canary", hours=5, max_num_seqs=24, pool=500_000),
        replica("b", max_num_seqs=16, pool=500_000),
        replica("c", pool=500_000),
        replica("d", pool=500_000),
    ]
    assert names(divide(engines).apart) == ["canary"]


def test_a_release_may_lie_in_a_range_of_releases() -> None:
    asked, scraped = replica("a", version="0.32.0"), replica("b", version=">=0.32")
    assert divide([asked, scraped]).apart == ()
    assert names(divide([replica("a", version=">=0.30"), scraped, replica("c", version=">=0.32")]).apart) == ["a"]


def test_ranks_of_one_process_stay_together() -> None:
    ranks = [replica("a", rank=rank, max_num_seqs=24, hours=5) for rank in "01"]
    others = [replica("b", rank=rank, max_num_seqs=16) for rank in "01"]
    assert names(divide([*ranks, *others]).apart) == ["a", "a"]


def test_engines_that_left_belong_to_the_rule() -> None:
    gone = replace(replica("gone", hours=90), samples=replica("x", hours=0).samples, flags={})
    found = divide([gone, replica("a", max_num_seqs=16), replica("b", hours=3, max_num_seqs=24)])
    assert names(found.apart) == ["b"]
    assert names(found.engines) == ["gone", "a"]


def test_a_young_minority_is_a_rollout_and_ceilings_are_those_of_the_others() -> None:
    found = divide([*(replica(name, max_num_seqs=16) for name in "abc"), replica("d", hours=0.5, max_num_seqs=24)])
    assert names(found.apart) == ["d"]
    assert found.rollout is not None
    assert not found.rollout.refuses_ceilings
    assert found.rollout.reason == (
        "a rollout may be under way: 1 of 4 replicas runs with other settings, for 30 min now; "
        "ceilings are taken from the others"
    )


def test_a_young_majority_refuses_ceilings() -> None:
    found = divide([replica("a", max_num_seqs=16), *(replica(n, hours=0.5, max_num_seqs=24) for n in "bcd")])
    assert names(found.apart) == ["a"]
    assert found.rollout is not None
    assert found.rollout.refuses_ceilings
    assert "ceilings wait until they have run for an hour" in found.rollout.reason


def test_a_replica_that_crashed_makes_no_rollout() -> None:
    """Its side has run for a day; that one of it began anew says nothing about the settings."""
    engines = [replica("a", max_num_seqs=16), replica("b", hours=0.25, max_num_seqs=16)]
    assert divide([*engines, replica("c", hours=9, max_num_seqs=24)]).rollout is None


def test_a_difference_names_both_values() -> None:
    one, other = (
        replica(max_num_seqs=24, gpu_memory_utilization=0.9, pool=600_000),
        replica(max_num_seqs=16, pool=500_000),
    )
    assert differences(settings_of([one]), settings_of([other])) == (
        Difference("max_num_seqs", 24, 16),
        Difference("pool_tokens", 600_000, 500_000),
    )


known = st.fixed_dictionaries({}, optional={"max_num_seqs": st.sampled_from([16, 24]), "block_size": st.just(16)})


@given(st.lists(st.tuples(known, st.sampled_from([2.0, 5.0, 9.0])), min_size=1, max_size=8), st.randoms())
def test_every_engine_is_on_one_side_and_sides_do_not_contradict_themselves(
    fleet: list[tuple[dict[str, Any], float]], shuffle: Random
) -> None:
    engines = [replica(f"{place}:1", hours=hours, **flags) for place, (flags, hours) in enumerate(fleet)]
    found = divide(engines)
    assert sorted(names([*found.engines, *found.apart])) == sorted(names(engines))
    for side in ranked(engines):
        caps = {e.flags["max_num_seqs"].value for e in side.engines if "max_num_seqs" in e.flags}
        assert len(caps) <= 1
    mixed = list(engines)
    shuffle.shuffle(mixed)
    assert set(names(divide(mixed).apart)) == set(names(found.apart))
    if found.apart:
        assert min(e.samples.time[-1] - e.epoch_start for e in found.engines) >= HOUR
