from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, Samples, Slo, as_floats
from advisor.domain.fact import Fact
from advisor.domain.policy import Policy
from advisor.estimates import capacity, demand
from advisor.estimates.step_time import StepTime
from tests.unit.estimates.evidence import NOTHING, bounded, engine, flags, joint, log, sheet, windows

# 24 seats decode at 10 + 0.275 x 24 = 16.6 ms; 1 prompt chunk and 211 tokens are 3.52 s: 6.82 requests a second
LINE = StepTime(0.010, 0.275e-3, None, None, 0.9, 0.001, 100, 24.0)
ONE = 24 / (212 * 0.0166)
CAPACITY = "capacity_requests_per_second_per_replica"
LENGTHS = joint((1160, 211, 5_000))


def facts(evidence: Evidence, step: StepTime | str = LINE, **known: float | Fact) -> dict[str, Fact]:
    return capacity.facts(evidence, Policy(), step, sheet(**known))


def slots(*counts: int) -> dict[int, int]:
    """Arrivals of successive 5-minute slots."""
    return {300 * k: n for k, n in enumerate(counts) if n}


def arriving(per_second: float, replicas: int | None = 2, n: int = 100) -> Evidence:
    counted = log(LENGTHS, arrivals=slots(*[round(300 * per_second)] * (n + 2)))
    return replace(NOTHING, log=counted, replicas=replicas)


def finishing(*per_window: float, seconds: float = 60.0, start: float = 0.0, name: str = "0") -> EngineSeries:
    return engine(counters=windows({"finished": per_window}, seconds=seconds, start=start), name=name)


def rates(*engines: EngineSeries) -> list[float]:
    return [float(rate) for rate in demand.arrivals_of(replace(NOTHING, engines=engines), None).per_second]


def test_what_came_before_the_present_epoch_was_not_held_by_it() -> None:
    # 100 slots at 6/s, then a restart, then 20 slots at 0.3/s within the objectives
    arrived = log(LENGTHS, arrivals=slots(*[1_800] * 100, *[90] * 22))
    now = replace(engine(counters=windows(GAPS)), epoch_start=100 * 300.0)
    restarted = replace(NOTHING, log=arrived, replicas=1, engines=(now,))
    out = facts(restarted, slo_attainment=1.0, slo_target=0.99)
    assert out[CAPACITY].low == pytest.approx(0.3)
    assert out["demand_over_observed_rate"].value == pytest.approx(6 / 0.3)
    whole = facts(replace(restarted, engines=()), slo_attainment=1.0, slo_target=0.99)
    assert whole[CAPACITY].low == pytest.approx(6.0)
    assert whole["demand_over_observed_rate"].value == pytest.approx(1.0)


def test_demand_is_the_p99_of_five_minutes() -> None:
    # 100 whole slots of 300 requests but one of 900, between two that were seen in part
    burst = slots(5, *[300] * 60, 900, *[300] * 39, 5)
    out = facts(replace(NOTHING, log=log(LENGTHS, arrivals=burst)))
    p99 = out["demand_requests_per_second_p99"]
    assert (p99.value, p99.n) == pytest.approx((np.quantile([1.0] * 99 + [3.0], 0.99), 100))
    assert out["demand_requests_per_second_mean"].value == pytest.approx(1.02)


def test_a_slot_without_arrivals_is_a_slot_of_none() -> None:
    out = facts(replace(NOTHING, log=log(LENGTHS, arrivals=slots(300, 300, 0, 0, 300, 300))))
    assert out["demand_requests_per_second_mean"].value == pytest.approx(0.5)


def test_two_slots_are_no_distribution() -> None:
    out = facts(replace(NOTHING, log=log(LENGTHS, arrivals=slots(300, 300))))
    assert out["demand_requests_per_second_p99"].is_unknown


def test_finished_requests_stand_in_for_arrivals() -> None:
    # 60 a minute on each of two engines
    assert rates(finishing(*[60.0] * 20), finishing(*[60.0] * 20, name="1")) == pytest.approx([2.0] * 4)


def test_a_queue_that_grows_arrived_too() -> None:
    # 60 a minute finish while 30 a minute join the queue: 1.5/s arrive
    times = as_floats(np.arange(1, 41) * 30.0)
    growing = replace(
        finishing(*[60.0] * 20), samples=Samples(times, np.full(40, 8.0), as_floats(15.0 * np.arange(1, 41)), None)
    )
    assert rates(growing) == pytest.approx([1.5] * 4, rel=0.06)


def test_a_long_window_is_no_burst() -> None:
    # 3,600 in an hour are 1/s, in each of its twelve slots
    assert rates(finishing(3_600.0, 7_200.0, seconds=3_600.0)) == pytest.approx([1.0] * 12 + [2.0] * 12)


def test_slots_in_which_an_engine_was_not_read_are_not_counted() -> None:
    hole = finishing(*[60.0] * 5, *[float("nan")] * 5, *[60.0] * 10)
    assert rates(hole) == pytest.approx([1.0] * 3)
    # one that restarted ten minutes later was part of the deployment before
    late = finishing(*[60.0] * 10, start=600.0, name="1")
    assert rates(finishing(*[60.0] * 20), late) == pytest.approx([2.0] * 2)


def test_an_engine_that_does_not_count_hides_demand() -> None:
    blind = engine(counters=windows({"steps": [1.0] * 20}), name="1")
    assert rates(finishing(*[60.0] * 20), blind) == []


def test_engines_that_left_and_lifetime_totals_tell_no_rate() -> None:
    assert rates(finishing(*[60.0] * 20), engine(name="1")) == pytest.approx([1.0] * 4)
    assert rates(replace(finishing(*[60.0] * 20), lifetime=True)) == []


def test_a_log_that_covers_part_of_the_traffic_gives_way() -> None:
    both = replace(arriving(1.0), engines=(finishing(*[240.0] * 40),))
    assert demand.arrivals_of(both, 0.25).per_second.max() == pytest.approx(4.0)
    assert demand.arrivals_of(both, 0.97).per_second.max() == pytest.approx(1.0)
    assert demand.arrivals_of(both, None).per_second.max() == pytest.approx(1.0)
    assert demand.arrivals_of(arriving(1.0), 0.25).per_second.max() == pytest.approx(1.0)


def test_littles_law() -> None:
    out = facts(arriving(10.0), next_max_num_seqs=24)
    assert out["capacity_requests_per_second_per_replica"].value == pytest.approx(ONE)
    # 10/s against 2 x 6.82/s used to 90 %: 81 %; 1.63 replicas
    assert out["demand_over_capacity"].value == pytest.approx(10 / (2 * ONE * 0.9))
    assert out["recommended_replicas"].value == 2
    assert out["sequences_demanded"].value == pytest.approx(10 * 212 * 0.0166 / 2)


def test_a_prompt_takes_as_many_steps_as_it_has_chunks() -> None:
    # 1,160 tokens in chunks of 512: three
    chunked = replace(arriving(1.0), flags=flags(max_num_batched_tokens=512))
    value = facts(chunked, next_max_num_seqs=24)["capacity_requests_per_second_per_replica"].value
    assert value == pytest.approx(24 / (214 * 0.0166))


def test_data_parallel_engines_multiply_what_a_replica_serves() -> None:
    four = replace(arriving(10.0), flags=flags(data_parallel_size=4))
    out = facts(four, next_max_num_seqs=24)
    assert out["capacity_requests_per_second_per_replica"].value == pytest.approx(4 * ONE)
    assert out["recommended_replicas"].value == 1


def test_seats_beyond_reach_are_not_counted_on() -> None:
    out = facts(arriving(10.0), next_max_num_seqs=480)
    # at 48, twice what was observed: 48 / (212 x 23.2 ms) = 9.76/s, and more with more seats
    least = 48 / (212 * 0.0232)
    one = out["capacity_requests_per_second_per_replica"]
    assert (one.value, one.low, one.high) == pytest.approx((None, least, None))
    pressure = out["demand_over_capacity"]
    assert (pressure.value, pressure.low, pressure.high) == pytest.approx((None, 0.0, 10 / (2 * least * 0.9)))
    replicas = out["recommended_replicas"]
    assert (replicas.value, replicas.low, replicas.high) == (None, 1, 2)


GAPS: Mapping[str, list[float]] = {"itl_sum": [80.0], "itl_count": [4_000.0], "steps": [500.0]}


def test_without_a_step_time_only_the_observed_gap_counts() -> None:
    # 8 decode at 20 ms: 8 / (212 x 0.02) = 1.89/s are sure; 64 seats would serve 15.1/s at the same gap
    seen = replace(arriving(2.0), engines=(engine(counters=windows(GAPS)),))
    one = facts(seen, "not fitted", next_max_num_seqs=64)["capacity_requests_per_second_per_replica"]
    assert (one.value, one.low, one.high) == pytest.approx((None, 8 / 4.24, 64 / 4.24))
    out = facts(seen, "not fitted", next_max_num_seqs=64)
    assert out["recommended_replicas"].value is None
    # at the batch that was observed it is a figure
    assert facts(seen, "not fitted", next_max_num_seqs=8)["demand_over_capacity"].value == pytest.approx(
        2 / (2 * 8 / 4.24 * 0.9)
    )


def test_ceilings_known_by_bounds_leave_the_capacity_between_bounds() -> None:
    # the target lies between 8 and 24, and 24 is the step: 8 seats serve 8 / (212 x 12.2 ms) = 3.09/s
    least = 8 / (212 * 0.0122)
    out = facts(arriving(10.0), next_max_num_seqs=24, recommended_max_num_seqs=bounded(8, 24))
    one = out["capacity_requests_per_second_per_replica"]
    assert (one.value, one.low, one.high) == pytest.approx((None, least, ONE))
    # 10 / (6.82 x 0.9) = 1.6 at the best, 10 / (3.09 x 0.9) = 3.6 at the worst
    replicas = out["recommended_replicas"]
    assert (replicas.value, replicas.low, replicas.high) == (None, 2, 4)
    # how full the proposed cap would be is another question
    assert out["demand_over_capacity"].value == pytest.approx(10 / (2 * ONE * 0.9))


def test_unknown_replicas_are_not_one() -> None:
    out = facts(arriving(10.0, replicas=None), next_max_num_seqs=24)
    assert out["replicas"].is_unknown
    assert out["demand_over_capacity"].is_unknown
    assert out["sequences_demanded"].is_unknown
    # how many it takes does not depend on how many there are: 10 / (6.82 x 0.9) = 1.63
    assert out["recommended_replicas"].value == 2


def test_objectives_that_hold_bound_the_capacity_from_below() -> None:
    met = facts(arriving(10.0), next_max_num_seqs=24, slo_attainment=0.995, slo_target=0.99)
    one = met["capacity_requests_per_second_per_replica"]
    assert (one.value, one.low) == pytest.approx((None, 5.0))


@pytest.mark.parametrize(
    ("holds", "told"),
    [
        (6.0, (6.0, 6.0, 7.0)),
        (5.0, (None, 5.0, ONE)),  # 6.82 / 5 = 1.36: the measurement or the model is wrong
    ],
)
def test_a_measured_rate_is_believed_where_the_time_of_a_step_is_near(
    holds: float, told: tuple[float | None, float, float]
) -> None:
    counted = [[n * 300 * share, n * 300 * (1 - share), 0.0] for n, share in ((holds, 1.0), (holds + 1, 0.5))]
    edges = as_floats(300.0 * np.arange(3))
    read = CounterWindows(edges[:-1], edges[1:], {}, tpot_edges=as_floats([0.05, 10.0]), tpot=np.array(counted))
    seen = replace(arriving(10.0), engines=(engine(counters=read),), slo=Slo(tpot_seconds=0.05))
    out = facts(seen, next_max_num_seqs=24, slo_attainment=0.7, slo_target=0.99)
    one = out["capacity_requests_per_second_per_replica"]
    assert (one.value, one.low, one.high) == pytest.approx(told)


@pytest.mark.parametrize(
    ("attained", "next_cap", "value", "high"),
    [
        (0.985, 24.0, None, 2.0),  # 24 seats would serve 6.82/s, and at 2/s the objectives are missed with them
        (0.985, 36.0, 36 / (212 * 0.0199), 36 / (212 * 0.0199)),  # the cap is still to be raised
        (bounded(0.98, 0.995), 24.0, ONE, ONE),  # they may be met
    ],
)
def test_seats_tell_no_rate_within_objectives_that_are_missed(
    attained: float | Fact, next_cap: float, value: float | None, high: float
) -> None:
    running = {"max_num_seqs": 24.0, "next_max_num_seqs": next_cap}
    told = facts(arriving(2.0, replicas=1), LINE, slo_attainment=attained, slo_target=0.99, **running)[CAPACITY]
    assert (told.value, told.high) == pytest.approx((value, high))


def test_the_token_budget_may_fill_fewer_seats() -> None:
    out = facts(arriving(1.0), next_max_num_seqs=240, budget_ceiling=24)
    assert out["capacity_requests_per_second_per_replica"].value == pytest.approx(ONE)


@pytest.mark.parametrize(
    ("evidence", "step", "known"),
    [
        (arriving(1.0), LINE, {}),
        (arriving(1.0), "not fitted", {"next_max_num_seqs": 24.0}),
        (replace(NOTHING, replicas=2), LINE, {"next_max_num_seqs": 24.0}),
        (replace(arriving(1.0), log=log(joint((5, 0, 9)))), "not fitted", {"next_max_num_seqs": 24.0}),
    ],
)
def test_what_is_missing_leaves_the_capacity_unknown(
    evidence: Evidence, step: StepTime | str, known: dict[str, float]
) -> None:
    out = facts(evidence, step, **known)
    for name in ("capacity_requests_per_second_per_replica", "demand_over_capacity", "recommended_replicas"):
        assert out[name].is_unknown


def test_a_step_on_the_way_up_bounds_the_pressure_only_from_above() -> None:
    """16 seats of today, 24 next, 100 in the end: what 24 cannot carry, 100 may, and no replica follows from it."""
    climbing = facts(arriving(16.0), max_num_seqs=16.0, next_max_num_seqs=24.0, recommended_max_num_seqs=100.0)
    pressure = climbing["demand_over_capacity"]
    assert (pressure.value, pressure.low) == (None, 0.0)
    # 16 requests/s of two replicas at 6.82 each, used to 90 %
    assert pressure.high == pytest.approx(16 / (2 * ONE * 0.9))
    there = facts(arriving(16.0), max_num_seqs=16.0, next_max_num_seqs=24.0, recommended_max_num_seqs=24.0)
    assert there["demand_over_capacity"].value == pytest.approx(16 / (2 * ONE * 0.9))
    starved = facts(
        arriving(16.0), max_num_seqs=16.0, next_max_num_seqs=24.0, recommended_max_num_seqs=100.0, budget_ceiling=20.0
    )
    assert starved["demand_over_capacity"].value is not None


def test_several_tokens_a_gap_free_the_seat_sooner() -> None:
    quick = replace(LINE, tokens_per_gap=2.0)
    held = facts(arriving(1.0), quick, next_max_num_seqs=24.0)["sequences_demanded"]
    # (105.5 gaps + 1 chunk) x 16.6 ms, half a request a second and replica
    assert held.value == pytest.approx(0.5 * 106.5 * 0.0166)


def held(*rows: tuple[float, float]) -> EngineSeries:
    """5-minute windows of so many requests a second, of which such a share is within 50 ms a token."""
    edges = as_floats(300.0 * np.arange(len(rows) + 1))
    n = np.array([300 * rate for rate, _ in rows])
    within = n * np.array([share for _, share in rows])
    counted = np.stack([within, n - within, np.zeros(len(rows))], axis=1)
    bounds = as_floats([0.05, 10.0])
    return engine(counters=CounterWindows(edges[:-1], edges[1:], {"finished": n}, tpot_edges=bounds, tpot=counted))


def test_a_burst_that_every_request_missed_is_no_capacity() -> None:
    # 20/s for ten minutes, all of them late, in a day at 4/s: 98.3 % of all requests are within, 97 % are promised
    busy = held(*[(4.0, 1.0)] * 286, (20.0, 0.0), (20.0, 0.0))
    promised = Slo(tpot_seconds=0.05, percentile=97.0)
    evidence = replace(NOTHING, engines=(busy,), replicas=1, slo=promised)
    told = facts(evidence, "no step time", slo_attainment=0.98, slo_target=0.97)[CAPACITY]
    assert (told.value, told.low, told.high) == pytest.approx((4.0, 4.0, 20.0))


def test_what_ten_replicas_served_is_not_shared_by_the_two_that_are_left() -> None:
    gone = [finishing(*[600.0] * 24, seconds=300.0, name=f"{n}") for n in range(2, 10)]
    stay = [finishing(*[600.0] * 24, *[60.0] * 24, seconds=300.0, name=f"{n}") for n in range(2)]
    evidence = replace(NOTHING, engines=(*stay, *gone), replicas=2)
    assert facts(evidence, slo_attainment=1.0, slo_target=0.99)[CAPACITY].low == pytest.approx(0.2)


def test_a_surge_is_half_an_hour_in_a_row_and_no_burst() -> None:
    surge = demand.Arrivals(as_floats(300.0 * np.arange(12)), as_floats([1, 1, 4, 4, 4, 4, 4, 4, 1, 1, 1, 1]))
    assert demand.busiest_half_hour(surge) == pytest.approx(4.0)
    burst = demand.Arrivals(surge.start, as_floats([1, 1, 19, *[1] * 9]))
    assert demand.busiest_half_hour(burst) == pytest.approx(4.0)
    gap = demand.Arrivals(as_floats([0, 300, 600, 1200, 1500, 1800]), as_floats([9.0] * 6))
    assert demand.busiest_half_hour(gap) is None


def test_the_busiest_half_hour_stands_against_what_the_replicas_carry_without_headroom() -> None:
    # a week at 1/s and an hour at 10/s: the p99 of two replicas' demand is 1/s, what they carry 2 x 6.82
    counted = log(LENGTHS, arrivals=slots(*[300] * 2000, *[3_000] * 12, 300))
    told = facts(replace(NOTHING, log=counted, replicas=2), next_max_num_seqs=24)
    assert told["demand_requests_per_second_p99"].value == pytest.approx(1.0)
    assert told["busiest_half_hour_over_capacity"].number == pytest.approx(10 / (2 * ONE))
