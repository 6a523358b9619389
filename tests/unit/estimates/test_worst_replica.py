"""Whether one engine alone misses the objectives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, Slo, as_floats
from advisor.domain.fact import Fact
from advisor.estimates import worst_replica
from tests.unit.estimates.evidence import NOTHING, buckets, engine

PROMISED = replace(NOTHING, slo=Slo(tpot_seconds=0.05))


def served(missed: float, requests: float = 1_000, edge: float = 0.05, name: str = "a") -> EngineSeries:
    tpot = buckets([edge, 1.0], [requests - missed, missed, 0])
    return engine(instance=name, latencies={"tpot": tpot})


def told(*engines: EngineSeries, base: Evidence = PROMISED) -> dict[str, Fact]:
    return worst_replica.facts(replace(base, engines=engines))


def test_one_of_four_stands_out() -> None:
    # it misses 300 of 1,000, the others 2 of 3,000
    found = told(served(1, name="a"), served(300, name="b"), served(1, name="c"), served(0, name="d"))
    assert found["slo_attainment_without_worst"].value == pytest.approx(1 - 2 / 3_000)
    assert found["worst_replica"].value == "b"
    assert found["worst_replica_load"].value == 1.0


def test_the_router_feeds_it_more() -> None:
    # 2,500 of 4,000 requests, and 1,000 is the mean
    found = told(served(800, 2_500), *(served(1, 500, name=name) for name in "bcd"))
    assert found["worst_replica_load"].value == 2.5


@pytest.mark.parametrize(
    "engines",
    [
        (served(300), served(200, name="b")),  # the other one misses nearly as many
        (served(9), served(1, name="b")),  # one in a hundred may miss
        (served(300, edge=0.04), served(0, name="b", edge=0.04)),  # no edge at 50 ms: all 300 may be within it
        (served(300),),
        (served(300), engine(instance="b")),
        (served(300), served(0, 50, name="b")),
    ],
)
def test_otherwise_nobody_is_named(engines: tuple[EngineSeries, ...]) -> None:
    assert all(fact.is_unknown for fact in told(*engines).values())


def test_without_an_objective_nothing_is_missed() -> None:
    assert all(fact.is_unknown for fact in told(served(300), served(0, name="b"), base=NOTHING).values())


def test_a_request_that_misses_both_targets_is_one() -> None:
    # 300 miss the time per token and 300 the first token: between 300 and 600 requests of 1,000
    both = Slo(tpot_seconds=0.05, ttft_seconds=0.05)
    each = [
        replace(e, latencies={"tpot": e.latencies["tpot"], "ttft": e.latencies["tpot"]})
        for e in (served(300), served(2, name="b"))
    ]
    others = told(*each, base=replace(NOTHING, slo=both))["slo_attainment_without_worst"]
    assert (others.value, others.low, others.high) == pytest.approx((None, 0.996, 0.998))


@pytest.mark.parametrize(("missed", "requests", "named"), [(8, 200, True), (6, 200, False), (60, 2_000, True)])
def test_what_chance_shows_names_nobody(missed: float, requests: float, named: bool) -> None:
    # P(8 or more of 200 at 1 %) x 2 = 0.2 %, P(6 or more) x 2 = 3.2 %
    found = told(served(missed, requests), served(1, requests, name="b"))
    assert found["worst_replica"].is_unknown is not named


def test_an_idle_engine_hides_nobody() -> None:
    found = told(served(300), served(1, name="b"), served(0, 12, name="c"), served(0, 0, name="d"))
    assert found["worst_replica"].value == "a"


def missing_in(*hours: int) -> EngineSeries:
    """300 of 1,000 requests miss, in these hours of two days."""
    start = as_floats(np.arange(48) * 3_600.0)
    counts = np.array([[20.0, 300 / len(hours) if hour in hours else 0.0] for hour in range(48)])
    counters = CounterWindows(start, start + 3_599, {}, tpot_edges=as_floats([0.05]), tpot=counts)
    return replace(served(300), windows=counters)


@pytest.mark.parametrize(("hours", "named"), [((5, 6, 30), True), ((5,), False), ((5, 6), False)])
def test_one_bad_hour_is_no_bad_server(hours: tuple[int, ...], named: bool) -> None:
    assert told(missing_in(*hours), served(0, name="b"))["worst_replica"].is_unknown is not named


def test_each_objective_is_counted_by_its_own_requests() -> None:
    # 60 of 120 answers of several tokens miss, and no first token of 10,000: 0.6 %, not 50 %
    both = replace(NOTHING, slo=Slo(tpot_seconds=0.05, ttft_seconds=0.05))
    few, many = served(60, 120), served(0, 10_000, name="b").latencies["tpot"]
    odd = replace(few, latencies={"tpot": few.latencies["tpot"], "ttft": many})
    fine = replace(served(0, name="b"), latencies={"tpot": many, "ttft": many})
    assert told(odd, fine, base=both)["worst_replica"].is_unknown
