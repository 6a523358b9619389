"""What the deployment really served while requests waited all the time: capacity by measurement, without any model.

While something is always waiting, what finishes is all that these flags can serve. Demand above that grows the queue,
whatever a step-time model says, and a lower cap serves no more. Worked: 0.19 requests/s finished in saturated slots,
the p99 of arrivals is 0.25/s and may use 90 %: 0.25 / (0.19 x 0.9) = 146 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from advisor.domain.evidence import EngineSeries, Evidence
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.policy import Policy

from .capacity import SLOT, headroom_for

LEAST_SLOTS = 3
LEAST_SCRAPES = 5
NEVER = "requests never waited through three whole 5-minute slots"


def facts(evidence: Evidence, policy: Policy, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """The saturated rate, demand against it, and the replicas advised where that asks for more than the model."""
    rates = [rate for engine in evidence.engines for rate in _saturated_rates(engine)]
    if len(rates) < LEAST_SLOTS:
        return {name: unknown(NEVER) for name in ("saturated_requests_per_second", "demand_over_saturated_rate")}
    rate = float(np.mean(rates)) * len(evidence.engines)
    served = measured(rate, n=len(rates), source="finished in 5-minute slots in which requests waited at every scrape")
    demand, replicas = known["demand_requests_per_second_p99"].number, evidence.replicas
    if demand is None or rate <= 0:
        return {"saturated_requests_per_second": served, "demand_over_saturated_rate": unknown("demand is not known")}
    headroom = headroom_for(evidence, policy)
    pressure = demand / (rate * headroom)
    story = f"{demand:.3g} requests/s against {rate:.3g}/s served while saturated, used to {headroom:.0%}"
    out = {
        "saturated_requests_per_second": served,
        "demand_over_saturated_rate": computed(pressure, n=len(rates), source=story),
    }
    wanted = math.ceil((replicas or 1) * pressure - 1e-9)
    if replicas is not None and wanted > (known["recommended_replicas"].number or 0):
        out["recommended_replicas"] = computed(wanted, source=f"{replicas} x {pressure:.2f}, rounded up: {story}")
    return out


def _saturated_rates(engine: EngineSeries) -> list[float]:
    """Requests per second that one engine finished in each 5-minute slot with something waiting at every scrape."""
    samples, finished = engine.samples, engine.windows.deltas.get("finished")
    if engine.lifetime or finished is None or samples.time.size == 0:
        return []
    slots, place = np.unique(samples.time // SLOT, return_inverse=True)
    scrapes = np.bincount(place)
    waited = np.bincount(place, samples.waiting > 0)
    full = set(slots[(scrapes >= LEAST_SCRAPES) & (waited == scrapes)].tolist())
    good = np.isfinite(finished)
    ends, counts = engine.windows.end[good], finished[good]
    of_slot = (ends - 1e-6) // SLOT
    return [float(counts[of_slot == slot].sum()) / SLOT for slot in sorted(full)]
