"""How few replicas would do, by what was observed alone, and whether something else decides their number already.

Nothing is extrapolated to do with less: at demand p99 and with the imbalance that was seen, each replica may carry at
most the rate at which one was seen within its objectives, over slots long enough that chance is no load. Worked: 40
requests/s at p99, 1.1 times as many on the busiest as on average, 6.2/s seen within them: 40 x 1.1 / 6.2 = 7.1, so 8 of
12 stay. Of 24 simulated replicas with requests of 150 s, which all are needed, slots of 5 minutes kept 20, an hour 24.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.numbers import duration

from .demand import SLOT
from .growth import sure_growth
from .load import engines_per_instance, serving
from .measured_capacity import served_within, steady_slot

LEAST_SECONDS = 6.0 * 86_400


def facts(evidence: Evidence, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """The replicas to keep, and how many came and went."""
    return {"replicas_to_keep": _to_keep(evidence, known), "replicas_left_ratio": _left(evidence)}


def _to_keep(evidence: Evidence, known: Mapping[str, Fact]) -> Fact:
    demand, replicas = known["demand_requests_per_second_p99"].number, evidence.replicas
    slot, uneven = steady_slot(evidence), known["replica_imbalance"].number
    if demand is None or not replicas:
        return unknown("needs the demand and how many replicas serve")
    slots = known["demand_requests_per_second_p99"].n
    if slots is not None and slots * SLOT < LEAST_SECONDS:
        return unknown(f"arrivals are known of {duration(slots * SLOT)} only: a week of them tells the busiest hours")
    if slot is None:
        return unknown("a replica finishes fewer than 50 requests an hour: too few to tell load from chance")
    served = served_within(evidence, slot)
    if served is None:
        return unknown("no rate was seen to hold the objectives: needs objectives and latency histograms")
    each = served.holds * engines_per_instance(evidence)
    grown = sure_growth(known["demand_growth_per_week"])
    needed = math.ceil(demand * grown * max(uneven or 1.0, 1.0) / each - 1e-9)
    story = f"{demand:.3g} requests/s x {uneven or 1.0:.2f} imbalance / {each:.3g}/s seen within the objectives"
    story += f" for {duration(slot)}"
    story += f", x {grown:.2f} growth of a week" if grown > 1 else ""
    if replicas > 1 and needed < 2:
        return computed(2, source=f"{story}; not below two, so that one may fail")
    return computed(max(needed, 1), source=story)


def _left(evidence: Evidence) -> Fact:
    """Engines without a reading at the end of the window; a rollout to new addresses is once the whole fleet."""
    engines = [e for e in evidence.every_engine if not e.lifetime]
    stayed = len(serving(engines))
    if not stayed:
        return unknown("no engine metrics over time: give --prometheus")
    left = len(engines) - stayed
    return measured(left / stayed, n=len(engines), source=f"{left} engines left, {stayed} serve")
