from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, Slo
from advisor.domain.fact import Fact
from advisor.domain.policy import Policy
from advisor.domain.sweep import Sweep, SweepPoint
from advisor.estimates import sequence_cap
from tests.unit.estimates.evidence import NOTHING, bounded, flags, sheet

PROMISED = replace(NOTHING, slo=Slo(tpot_seconds=0.040))


def facts(evidence: Evidence, **known: float | str | Fact | None) -> dict[str, Fact]:
    return sequence_cap.facts(evidence, Policy(), sheet(**known))


def capped(cap: int, base: Evidence = NOTHING) -> Evidence:
    return replace(base, flags=flags(max_num_seqs=cap))


def step(evidence: Evidence, **known: float | str | Fact | None) -> float | str | None:
    return facts(evidence, **known)["next_max_num_seqs"].value


def test_the_target_is_the_least_of_the_known() -> None:
    both = {"memory_ceiling_expected": 300, "latency_ceiling": 40}
    assert facts(NOTHING, **both)["recommended_max_num_seqs"].value == 40
    assert facts(NOTHING, memory_ceiling_expected=30, latency_ceiling=40)["recommended_max_num_seqs"].value == 30
    assert facts(NOTHING, memory_ceiling_guaranteed=47)["recommended_max_num_seqs"].value == 47
    # with traffic to look at, what is expected replaces what is guaranteed
    expected = facts(NOTHING, memory_ceiling_guaranteed=4, memory_ceiling_expected=90)
    assert expected["recommended_max_num_seqs"].value == 90
    assert facts(NOTHING)["recommended_max_num_seqs"].is_unknown


def test_at_least_so_many_do_not_lower_the_target() -> None:
    target = facts(NOTHING, memory_ceiling_expected=90, latency_ceiling=bounded(16, None))["recommended_max_num_seqs"]
    assert (target.value, target.source) == (90, "the least of memory 90, latency at least 16")


def test_a_latency_ceiling_between_bounds_leaves_the_target_between_them() -> None:
    target = facts(NOTHING, memory_ceiling_expected=90, latency_ceiling=bounded(16, 30))["recommended_max_num_seqs"]
    assert (target.value, target.low, target.high) == (None, 16, 30)
    # above the memory ceiling its bounds do not matter
    sure = facts(NOTHING, memory_ceiling_expected=20, latency_ceiling=bounded(16, 30))["recommended_max_num_seqs"]
    assert sure.value == 20


Known = dict[str, float | str | Fact | None]
AT_MOST_100: Known = {"memory_ceiling_expected": bounded(None, 100), "memory_ceiling_guaranteed": 1}


def test_a_memory_ceiling_that_is_no_number_leaves_the_target_between_bounds() -> None:
    target = facts(NOTHING, **AT_MOST_100)["recommended_max_num_seqs"]
    assert (target.value, target.low, target.high) == (None, 1, 100)
    both = facts(NOTHING, latency_ceiling=bounded(16, 30), **AT_MOST_100)["recommended_max_num_seqs"]
    assert (both.value, both.low, both.high) == (None, 1, 30)
    assert facts(NOTHING, **AT_MOST_100)["binding_ceiling"].value == "memory"
    assert facts(NOTHING, latency_ceiling=40, **AT_MOST_100)["binding_ceiling"].value == "latency"
    # what is guaranteed is not known either
    alone = facts(NOTHING, memory_ceiling_expected=bounded(None, 100))["recommended_max_num_seqs"]
    assert (alone.value, alone.low, alone.high) == (None, 1, 100)


def test_an_upper_bound_on_memory_neither_cuts_the_cap_to_what_is_guaranteed_nor_raises_it_blindly() -> None:
    # once this was a step from 12 to 1
    failing: Known = {"slo_attainment": 0.9, "slo_target": 0.99, "running_max": 12}
    assert "between 1 and 100" in (facts(capped(12), **failing, **AT_MOST_100)["next_max_num_seqs"].unknown or "")
    # 12 at 30 % of the cache are 18 at 45 %; at 50 % they would be at 75 %
    assert step(capped(12), running_max=12, kv_usage_p95=0.3, **AT_MOST_100) == 18
    assert step(capped(12), running_max=12, kv_usage_p95=0.5, **AT_MOST_100) is None
    # more than is guaranteed is not what is asked for
    guaranteed: Known = AT_MOST_100 | {"memory_ceiling_guaranteed": 20}
    assert step(capped(12), running_max=12, kv_usage_p95=0.5, **guaranteed) == 18
    # what the cache can never sustain is lowered
    assert step(capped(256), running_max=90, kv_usage_p95=0.99, **AT_MOST_100) == 100


def test_one_sequence_always_runs() -> None:
    assert facts(NOTHING, memory_ceiling_expected=0)["recommended_max_num_seqs"].value == 1


def test_a_raise_goes_half_beyond_what_was_seen() -> None:
    # 16 ran at once, 1.5 x 16; a target within reach is taken as it is
    assert step(capped(16), memory_ceiling_expected=200, running_max=16) == 24
    assert step(capped(16), memory_ceiling_expected=20, running_max=16) == 20
    # a sweep has seen 40
    swept = replace(capped(16), sweep=Sweep((SweepPoint(8, 0.01), SweepPoint(40, 0.03)), "file"))
    assert step(swept, memory_ceiling_expected=200, running_max=16) == 60


def test_half_more_than_one_is_two() -> None:
    assert step(capped(1), memory_ceiling_expected=200, running_max=1) == 2


def test_a_cap_far_above_all_traffic_stays() -> None:
    assert step(capped(256), memory_ceiling_expected=400, running_max=12) == 256


def test_nothing_observed_yet_takes_the_target() -> None:
    assert step(NOTHING, memory_ceiling_guaranteed=47) == 47
    sweep = Sweep((SweepPoint(8, 0.01), SweepPoint(48, 0.05)), "file")
    planned = replace(capped(256, PROMISED), sweep=sweep)
    assert step(planned, memory_ceiling_guaranteed=47, latency_ceiling=40) == 40


def test_a_promise_that_was_never_measured_yields_no_raise() -> None:
    assert "run a sweep first" in (facts(PROMISED, memory_ceiling_guaranteed=47)["next_max_num_seqs"].unknown or "")
    busy = facts(capped(16, PROMISED), memory_ceiling_expected=200, running_max=16)["next_max_num_seqs"]
    assert "run a sweep first" in (busy.unknown or "")
    # in a batch nobody waits for a token: four times what ran at once
    batch = replace(capped(16, PROMISED), workload="batch")
    assert step(batch, memory_ceiling_expected=200, running_max=16) == 64


def test_a_missed_objective_is_not_answered_by_a_raise() -> None:
    failing = {"slo_attainment": 0.8, "slo_target": 0.99, "memory_ceiling_expected": 200.0, "running_max": 16.0}
    raised = facts(capped(16, PROMISED), latency_ceiling=bounded(10, 30), **failing)["next_max_num_seqs"]
    assert "the time per token is missed now" in (raised.unknown or "")
    # a measured ceiling above the cap is another matter: TTFT may be what is missed
    assert step(capped(16, PROMISED), latency_ceiling=40, **failing) == 24


def test_first_tokens_late_at_the_cap_do_not_hold_it_down() -> None:
    # how many fit is only bounded; the cap may rise where the time per token holds, and cache for it is free
    late = {"slo_attainment": 0.6, "slo_target": 0.99, "kv_usage_p95": 0.033, "running_max": 48.0, "running_p95": 48.0}
    bounds = {"memory_ceiling_expected": bounded(None, 1590), "latency_ceiling": bounded(47, None)}
    assert step(capped(48, PROMISED), slo_attainment_tpot=0.9994, **bounds, **late) == 72
    assert step(capped(48, PROMISED), slo_attainment_tpot=0.8, **bounds, **late) is None


def test_late_first_tokens_are_answered_by_as_many_seats_as_surely_hold() -> None:
    failing = {"slo_attainment": 0.8, "slo_target": 0.99, "memory_ceiling_expected": 200.0, "running_max": 16.0}
    assert step(capped(16, PROMISED), latency_ceiling=bounded(30, 60), **failing) == 24


def test_a_ceiling_between_bounds_allows_no_raise_beyond_the_lower() -> None:
    met = {"slo_attainment": 0.995, "slo_target": 0.99, "memory_ceiling_expected": 200.0, "running_max": 16.0}
    doubted = facts(capped(16, PROMISED), latency_ceiling=bounded(18, 60), **met)["next_max_num_seqs"]
    assert "between 18 and 60 sequences meet the time per token" in (doubted.unknown or "")
    assert step(capped(16, PROMISED), latency_ceiling=bounded(24, 60), **met) == 24


def test_at_least_allows_one_step() -> None:
    seen = {"memory_ceiling_expected": 200.0, "running_max": 16.0}
    assert step(capped(16, PROMISED), latency_ceiling=bounded(16, None), **seen) == 24


def test_a_server_that_runs_unobserved_gets_no_first_cap() -> None:
    assert facts(NOTHING, memory_ceiling_guaranteed=47, observed_seconds=3600)["next_max_num_seqs"].is_unknown


def test_an_idle_server_with_an_unknown_cap_is_not_cut_to_one() -> None:
    idle = facts(NOTHING, memory_ceiling_guaranteed=47, observed_seconds=3600, running_max=0)["next_max_num_seqs"]
    assert "nothing ran while it was observed" in (idle.unknown or "")
    assert step(capped(256), memory_ceiling_guaranteed=300, observed_seconds=3600, running_max=0) == 256


def test_a_ceiling_below_the_cap_lowers_it() -> None:
    assert step(capped(256), memory_ceiling_expected=40, running_max=36, running_p95=20) == 40


def test_never_below_the_most_that_ran_while_objectives_are_met() -> None:
    met = {"memory_ceiling_expected": 40, "running_max": 100, "running_p95": 60.4}
    assert step(capped(256), slo_attainment=0.995, slo_target=0.99, **met) == 100
    # nobody can tell whether they are met
    assert step(capped(256), **met) == 100
    assert step(capped(256), slo_attainment=bounded(0.98, 1.0), slo_target=0.99, **met) == 100
    assert step(capped(256), slo_attainment=0.95, slo_target=0.99, **met) == 40
    assert step(capped(256), slo_attainment=bounded(0.5, 0.98), slo_target=0.99, **met) == 40


def test_the_most_that_ran_is_no_floor_where_it_did_not_fit() -> None:
    crowded = {"memory_ceiling_expected": 13, "running_max": 24, "running_p95": 11, "slo_target": 0.99}
    unsure = bounded(0.981, 0.994)
    assert step(capped(256), preempted_share=0.019, slo_attainment=unsure, **crowded) == 13
    # one in a hundred is accepted, and objectives that are met are left alone
    assert step(capped(256), preempted_share=0.01, slo_attainment=unsure, **crowded) == 24
    assert step(capped(256), preempted_share=0.019, slo_attainment=0.992, **crowded) == 24
    # where a fifth is preempted fewer at once serve more, whatever runs and whether or not anything is promised
    assert step(capped(256), preempted_share=0.2, **{**crowded, "running_p95": 23.0, "slo_target": None}) == 13
    # never under what runs 95 % of the time
    assert step(capped(256), preempted_share=0.019, slo_attainment=unsure, **{**crowded, "running_p95": 15.2}) == 16


@pytest.mark.parametrize(
    ("known", "standing"),
    [
        ({"slo_attainment": 0.995, "slo_target": 0.99}, "the objectives are met"),
        (
            {"slo_attainment": bounded(0.79, 0.9999), "slo_target": 0.99},
            "whether the objectives are met cannot be told",
        ),
        ({"slo_target": 0.99}, "whether the objectives are met cannot be told"),
        ({}, "no objective is given that could be missed"),
    ],
)
def test_why_a_cap_is_kept_says_what_is_known_of_the_objectives(known: dict[str, float | Fact], standing: str) -> None:
    kept = facts(capped(256), memory_ceiling_expected=40, running_max=100, **known)["next_max_num_seqs"]
    assert (kept.value, kept.source) == (100, f"running max; {standing}, so not down to 40")


def test_where_the_most_is_not_known_the_percentile_is_kept() -> None:
    assert step(capped(256), memory_ceiling_expected=40, running_p95=60.4) == 61


@pytest.mark.parametrize(
    ("known", "binding"),
    [
        ({"memory_ceiling_expected": 47, "latency_ceiling": 40}, "latency"),
        ({"memory_ceiling_expected": 30, "latency_ceiling": 40}, "memory"),
        ({"memory_ceiling_expected": 30, "latency_ceiling": bounded(4, 8)}, "latency"),
        ({"memory_ceiling_expected": 30, "latency_ceiling": 40, "budget_ceiling": 27}, "budget"),
        ({"memory_ceiling_expected": 30, "budget_ceiling": 90}, "memory"),
        ({"memory_ceiling_expected": 30, "running_p95": 23.9, "waiting_p95": 0}, "demand"),
        ({"memory_ceiling_expected": 30, "running_p95": 24, "waiting_p95": 0}, "memory"),
        ({"memory_ceiling_expected": 30, "running_p95": 5, "waiting_p95": 1}, "memory"),
        ({"memory_ceiling_expected": 439, "running_p95": 12, "waiting_p95": 0, "max_num_seqs": 12}, "memory"),
        ({"memory_ceiling_expected": 30, "running_p95": 5}, "memory"),
        ({"budget_ceiling": 27}, None),
    ],
)
def test_what_binds(known: dict[str, float | Fact], binding: str | None) -> None:
    assert facts(NOTHING, **known)["binding_ceiling"].value == binding


CAPS = st.none() | st.integers(1, 2_000)
CEILINGS = st.none() | st.integers(0, 3_000)


@given(CAPS, CEILINGS, CEILINGS, st.integers(0, 2_000), st.none() | st.floats(0, 1))
def test_a_step_is_never_reckless(
    cap: int | None, memory: int | None, latency: int | None, seen: int, attained: float | None
) -> None:
    evidence = PROMISED if cap is None else capped(cap, PROMISED)
    known = {"memory_ceiling_expected": memory, "latency_ceiling": latency, "slo_attainment": attained}
    given_ = {"slo_target": 0.99} | {name: float(value) for name, value in known.items() if value is not None}
    value = facts(evidence, running_max=seen, running_p95=0.9 * seen, **given_)["next_max_num_seqs"].number
    if value is None:
        return
    assert value == int(value) >= 1
    if cap is None or value > cap:
        assert value <= max(math.floor(1.5 * seen), seen + 1)
        assert value <= min(max(c, 1) for c in (memory, latency) if c is not None)
    if cap is not None and value < cap and (attained is None or attained >= 0.99):
        assert value >= min(seen, cap)
