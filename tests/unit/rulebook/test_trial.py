"""How a change is tried first: on one replica, with what that costs, or by looking at the canary that has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from advisor.domain.advice import Advice, Judgement
from advisor.domain.canary import Canary, Difference, Reading
from advisor.domain.evidence import Evidence, Samples, Window, as_floats
from advisor.domain.fact import computed
from advisor.rulebook.trial import trial, with_trials
from tests.unit.outcomes.fleets import DAY, NOW, replica
from tests.unit.outlets.samples import throttled
from tests.unit.rulebook.samples import sheet

RAISED = throttled().judgement.advice[0]  # max_num_seqs 16 -> 24
FOUR = replace(throttled().evidence, replicas=4)


def said(advice: Advice = RAISED, evidence: Evidence = FOUR, canaries: tuple[Canary, ...] = (), **facts: Any) -> str:
    return trial(advice, evidence, sheet(**facts), canaries)


def tried(value: int, *more: Difference, hosts: tuple[str, ...] = ("d:8000",)) -> Canary:
    return Canary(hosts, NOW - DAY, (Difference("max_num_seqs", value, 16), *more), 24)


def test_one_replica_first() -> None:
    assert said() == (
        "on one replica first, its siblings are the comparison; "
        "whether the other 3 carry the load while it restarts is not known; how long a start takes was not seen"
    )
    assert "whether the other carries" in said(evidence=replace(FOUR, replicas=2))


@pytest.mark.parametrize("verdict", ["add_replicas", "run_sweep", "split_workload"])
def test_only_flags_are_tried_on_one(verdict: Any) -> None:
    assert said(replace(RAISED, verdict=verdict)) == ""


def test_nothing_is_said_where_there_is_no_other_or_nothing_runs() -> None:
    assert said(evidence=replace(FOUR, replicas=1)) == ""
    assert said(evidence=replace(FOUR, replicas=None)) == ""
    assert said(replace(RAISED, current=None)) == ""


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        # 60 % of four are 80 % of three
        ({"demand_over_saturated_rate": 0.6}, "the other 3 carry the load, at most 80 % of what they can"),
        # 90 % of four are 120 % of three, which carry 83 % of it
        ({"demand_over_saturated_rate": 0.9}, "while it restarts the other 3 carry p99 demand only to 83 %"),
        # the model is of 24 seats, 16 run: between 0.4 and 0.4 x 24 / 16 = 0.6, so between 53 and 80 % of three
        ({"demand_over_capacity": 0.4}, "carry the load, at most 80 % of what they can"),
        ({"demand_over_capacity": 0.6}, "carry p99 demand while it restarts cannot be told (80-120 %"),
        ({"demand_over_capacity": computed(None, low=0.2, source="s")}, "while it restarts is not known"),
    ],
)  # fmt: skip
def test_whether_the_others_carry_the_load(facts: dict[str, Any], told: str) -> None:
    assert told in said(**facts)


def test_a_lower_cap_is_judged_by_what_runs_now() -> None:
    """At 8 seats demand is 60 % of the capacity; the 16 that run now carry at least that, at most twice as much."""
    lowered = replace(RAISED, current=16.0, recommended=8.0)
    assert "carry the load, at most 80 %" in said(lowered, demand_over_capacity=0.6)


def test_how_long_a_start_takes_is_told_where_one_was_seen() -> None:
    """Scraped each 5 minutes; the first scrape came 15 minutes after the process began, so it loaded for about that."""
    begun = replica("a", hours=10)
    late = begun.samples.time[3:]
    seen = replace(begun, samples=Samples(late, as_floats(late * 0), as_floats(late * 0), None))
    read = replace(FOUR, window=Window(NOW - DAY, NOW))
    told = "the last start took about 15 min until it was scraped"
    assert said(evidence=replace(read, engines=(seen,))).endswith(told)
    for silent in (replace(read, engines=(begun,)), replace(FOUR, engines=(seen,), window=Window(NOW - 3_600, NOW))):
        assert said(evidence=silent).endswith("how long a start takes was not seen")


def test_a_canary_that_has_the_advised_value_is_the_test_of_it() -> None:
    assert said(canaries=(tried(24),)) == (
        "d:8000 runs already with max_num_seqs 24: its comparison with its siblings is the best test of this prediction"
    )
    assert said(canaries=(tried(20, hosts=("d", "e", "f")),)).startswith(
        "d and 2 more run already with max_num_seqs 20"
    )


def test_what_the_canary_has_stands_beside_what_is_predicted() -> None:
    readings = (Reading("itl_mean", "seconds", 0.0166, 0.0143, 0.0004, "higher"),)
    shown = replace(tried(24), readings=readings)
    assert said(canaries=(shown,)).endswith("this prediction; itl_mean 16.6 ms there, 16.1-17.2 ms expected")
    halfway = replace(tried(20), readings=readings)
    assert said(canaries=(halfway,)).endswith("is the best test of this prediction")


def test_a_canary_beyond_or_on_the_other_side_is_no_test_of_it() -> None:
    for value in (12, 32):
        assert said(canaries=(tried(value),)).startswith("on one replica first")


def test_a_canary_that_differs_in_more_says_so() -> None:
    told = said(canaries=(tried(24, Difference("version", "0.33.0", "0.32.0")),))
    assert "with max_num_seqs 24 (and another version): its comparison" in told


def test_every_piece_of_advice_says_how() -> None:
    judged = with_trials(throttled().judgement, FOUR, sheet(), (tried(24),))
    assert [bool(a.trial) for a in judged.advice] == [True, True]
    assert "already" in judged.advice[0].trial
    assert "on one replica first" in judged.advice[1].trial
    assert with_trials(Judgement("ok"), FOUR, sheet(), ()) == Judgement("ok")
