"""Whether one engine alone misses the objectives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.evidence import EngineSeries, Evidence, Slo
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
