"""How few replicas would do, and how many came and went."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import EngineSeries
from advisor.domain.fact import Fact
from advisor.estimates import fleet_size
from tests.unit.estimates.evidence import NOTHING, engine, gauges, sheet
from tests.unit.estimates.test_measured_capacity import TPOT, seen, slots


def to_keep(replicas: int, rate: float = 10.0, **known: float) -> Fact:
    measured_at = replace(seen(slots((5, 1.0), (rate, 0.998))), replicas=replicas)
    return fleet_size.facts(measured_at, sheet(**known))["replicas_to_keep"]


@pytest.mark.parametrize(
    ("replicas", "demand", "imbalance", "kept"),
    # 40 x 1.1 / 10 = 4.4; 25 / 10 = 2.5; 5 / 10: but not below two where there were two; one stays one
    [(12, 40.0, 1.1, 5), (4, 25.0, 1.0, 3), (3, 5.0, 1.0, 2), (1, 5.0, 1.0, 1), (2, 60.0, 1.0, 6)],
)
def test_each_replica_carries_what_one_was_seen_to_carry(
    replicas: int, demand: float, imbalance: float, kept: int
) -> None:
    found = to_keep(replicas, demand_requests_per_second_p99=demand, replica_imbalance=imbalance)
    assert found.value == kept


def test_nothing_is_extrapolated() -> None:
    assert to_keep(4).is_unknown
    never = replace(seen(slots((10, 0.9))), replicas=4)
    assert fleet_size.facts(never, sheet(demand_requests_per_second_p99=5.0))["replicas_to_keep"].is_unknown


def serving(until: float, name: str) -> EngineSeries:
    return engine(gauges(np.full(40, 5.0), every=until / 40), name=name)


def test_engines_that_stopped_being_read_left() -> None:
    # two serve at the end, three stopped half way, one is known by its lengths only
    engines = [
        serving(36_000, "0"),
        serving(36_000, "1"),
        *(serving(18_000, f"{n}") for n in (2, 3, 4)),
        engine(name="5"),
    ]
    found = fleet_size.facts(replace(NOTHING, engines=tuple(engines), slo=TPOT), sheet())["replicas_left_ratio"]
    assert (found.value, found.n) == (2.0, 6)


def test_without_scrapes_nobody_knows_who_left() -> None:
    assert fleet_size.facts(NOTHING, sheet())["replicas_left_ratio"].is_unknown
