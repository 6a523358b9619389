"""What was observed, in words that agree with each other."""

from __future__ import annotations

from dataclasses import replace

from advisor.domain.evidence import Slo
from advisor.domain.fact import Fact, FactSheet, computed, measured
from advisor.outlets.observations import observed
from tests.unit.outlets import samples

ASKED = Fact(value=0.99, source="objective", basis="assumed")
CAPACITY = "capacity_requests_per_second_per_replica"


def told(title: str, facts: dict[str, Fact], slo: Slo | None = None) -> str | None:
    shown = samples.healthy()
    evidence = replace(shown.evidence, slo=slo or Slo())
    return dict(observed(replace(shown, evidence=evidence, facts=FactSheet(facts)))).get(title)


def demand(capacity: Fact, ratio: Fact, **facts: Fact) -> str | None:
    stated = {"replicas": measured(1.0, source="test"), "slo_target": ASKED, **facts}
    arrivals = measured(0.249, source="test")
    known = {CAPACITY: capacity, "demand_over_capacity": ratio, "demand_requests_per_second_p99": arrivals}
    return told("DEMAND", stated | known)


def test_a_measured_rate_that_carries_demand_is_not_contradicted_by_arithmetic() -> None:
    seen = measured(None, low=0.25, n=144, source="busiest 5 minutes")
    assert demand(seen, computed(1.94, source="seats")) == (
        "p99 0.249 req/s · one replica serves at least 0.25 req/s within its objectives"
    )
    roomy = computed(None, low=0.0, high=0.74, source="seats")
    assert demand(seen, roomy) == (
        "p99 0.249 req/s · one replica serves at least 0.25 req/s within its objectives · "
        "demand at most 0.74x the capacity"
    )


def test_a_ratio_stands_where_nothing_refutes_it() -> None:
    seen = measured(None, low=0.20, n=144, source="busiest 5 minutes")
    assert demand(seen, computed(1.94, source="seats")) == (
        "p99 0.249 req/s · one replica serves at least 0.2 req/s within its objectives · demand 1.94x the capacity"
    )


def test_what_seats_would_serve_is_not_said_to_be_within_the_objectives() -> None:
    assert demand(computed(0.27, source="16 seats / 59.4 s"), computed(1.07, source="seats")) == (
        "p99 0.249 req/s · the seats of one replica would serve 0.27 req/s · demand 1.07x the capacity"
    )


def test_nothing_is_within_its_objectives_while_the_gaps_miss_theirs() -> None:
    seen, gaps = measured(None, low=2.94, n=144, source="test"), measured(0.976, source="test")
    text = demand(seen, computed(0.6, source="seats"), slo_attainment_itl=gaps)
    assert text == "p99 0.249 req/s · one replica serves at least 2.94 req/s · demand 0.6x the capacity"


def test_a_share_is_told_with_the_targets_that_it_is_of() -> None:
    met = {"slo_attainment": measured(1.0, source="test")}
    both = met | {"slo_attainment_itl": measured(0.976, source="test")}
    assert told("LATENCY", both, Slo(ttft_seconds=2.0, itl_seconds=0.1)) == (
        "TTFT met by 100 % of requests · ITL met by 97.6 % of gaps"
    )
    assert told("LATENCY", met) == "objectives met by 100 % of requests"
    assert told("LATENCY", {}) is None
