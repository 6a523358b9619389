"""What the deployment really served while requests waited all the time: capacity by measurement, without any model.

While something is always waiting, what finishes is all that these flags can serve. Demand above that grows the queue,
whatever a step-time model says, and a lower cap serves no more. Worked: 0.19 requests/s finished in saturated slots,
the p99 of arrivals is 0.25/s and may use 90 %: 0.25 / (0.19 x 0.9) = 146 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from advisor.domain.evidence import EngineSeries, Evidence, as_floats
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.numbers import ratio
from advisor.domain.policy import Policy

from .demand import FULLY_READ, SLOT, per_slot
from .service_rate import headroom_for
from .shared_steps import kinds_of_requests

LEAST_SLOTS = 3
SLOW, EVEN_USE = 0.1, 0.8
LEAST_SCRAPES = 5
MOST_PREEMPTED = 0.2
"""Where more requests are preempted, much of the time goes into computing them again: a lower cap serves more."""
NEVER = "requests never waited through three whole 5-minute slots without a fifth of them being preempted"


def facts(evidence: Evidence, policy: Policy, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """The saturated rate, demand against it, and the replicas advised where that asks for more than the model."""
    rates = [rate for engine in _running(evidence.engines) for rate in _saturated_rates(engine)]
    if len(rates) < LEAST_SLOTS:
        return {name: unknown(NEVER) for name in ("saturated_requests_per_second", "demand_over_saturated_rate")}
    # Demand is that of the whole deployment, so a replica that runs apart is taken to serve as much as the others.
    rate = float(np.mean(rates)) * len(_running(evidence.every_engine))
    served = measured(rate, n=len(rates), source="finished in 5-minute slots in which requests waited at every scrape")
    demand, carried = known["demand_requests_per_second_p99"].number, known["demand_to_carry"].number
    replicas = evidence.replicas
    if demand is None or carried is None or rate <= 0:
        return {"saturated_requests_per_second": served, "demand_over_saturated_rate": unknown("demand is not known")}
    headroom = headroom_for(evidence, policy)
    pressure = demand / (rate * headroom)
    story = f"{demand:.3g} requests/s against {rate:.3g}/s served while saturated, used to {ratio(headroom)}"
    out = {
        "saturated_requests_per_second": served,
        "demand_over_saturated_rate": computed(pressure, n=len(rates), source=story),
    }
    if replicas is not None:
        batch = evidence.workload == "batch"
        slowest = float(np.quantile(rates, SLOW)) or float(np.mean(rates))
        each = (rate if batch else slowest * len(_running(evidence.every_engine))) / replicas
        use = headroom if batch else _use(evidence)
        out["recommended_replicas"] = _replicas(known["recommended_replicas"], carried, each, use)
    return out


def _replicas(told: Fact, demand: float, rate: float, use: float) -> Fact:
    """The replicas that what one served while saturated asks for, where that is more than the model's number."""
    wanted = max(math.ceil(demand / (rate * use) - 1e-9), math.ceil(told.floor or 0))
    if told.number is not None and wanted <= told.number:
        return told
    story = f"{demand:.3g} requests/s, used to {ratio(use)}: {rate:.3g}/s a replica while saturated"
    return computed(wanted, source=f"{story}, rounded up")


def _use(evidence: Evidence) -> float:
    """How far a replica may be used, so that requests wait no longer on average the more unequal their work is.

    The wait grows with u / (1 - u) x (1 + cv^2) / 2 (Pollaczek and Khinchine), and u = 80 % is taken for cv = 1. Work
    is the cache that a request holds, times how long: (I + O / 2) O. Worked: cv = 2, so u / (1 - u) = 4 x 2 / 5 and
    u = 62 %.
    """
    kinds = kinds_of_requests(evidence)
    if kinds is None:
        return EVEN_USE
    prompt, output, counts = kinds
    work = (prompt + output / 2) * output
    mean = float(np.average(work, weights=counts))
    squared = float(np.average((work - mean) ** 2, weights=counts)) / mean**2 if mean > 0 else 1.0
    ratio = EVEN_USE / (1 - EVEN_USE) * 2 / (1 + max(squared, 1.0))
    return ratio / (1 + ratio)


def _running(engines: Iterable[EngineSeries]) -> list[EngineSeries]:
    return [e for e in engines if not e.lifetime and e.windows.end.size]


def gain_of_next_cap(evidence: Evidence, known: Mapping[str, Fact]) -> Fact:
    """What a replica serves at the next cap / what it finishes while requests wait and a fifth is preempted.

    Work that is done twice serves nobody: fewer at once may serve more. Where they do not, a lower cap only adds to the
    queue. Worked: 0.98/s finish while three of four are preempted, 11 seats serve 1.35/s: 138 %.
    """
    rates = [rate for engine in _running(evidence.engines) for rate in _saturated_rates(engine, thrashing=True)]
    then, replicas = known["capacity_at_next_cap"].floor, evidence.replicas
    if len(rates) < LEAST_SLOTS or not replicas:
        return unknown("requests never waited through three whole 5-minute slots with a fifth of them preempted")
    now = float(np.mean(rates)) * len(_running(evidence.every_engine)) / replicas
    if then is None or now <= 0:
        return unknown(known["capacity_at_next_cap"].unknown or "nothing finishes")
    return computed(then / now, n=len(rates), source=f"{then:.3g}/s at the next cap, {now:.3g}/s while thrashing")


def _saturated_rates(engine: EngineSeries, *, thrashing: bool = False) -> list[float]:
    """Requests per second that one engine finished in each 5-minute slot with something waiting at every scrape.

    Of the slots in which less than a fifth of them was preempted, or of the others.
    """
    samples, finished = engine.samples, engine.windows.deltas.get("finished")
    if finished is None or samples.time.size == 0:
        return []
    slots, place = np.unique(samples.time // SLOT, return_inverse=True)
    scrapes = np.bincount(place)
    waited = np.bincount(place, samples.waiting > 0)
    good = np.isfinite(finished) & (engine.windows.end - engine.windows.start <= SLOT)
    start, end = engine.windows.start[good], engine.windows.end[good]
    grid = as_floats(np.arange(slots[0], slots[-1] + 2) * SLOT)
    served = per_slot(grid, start, end, finished[good])
    read = per_slot(grid, start, end, end - start) >= FULLY_READ * SLOT
    preempted = engine.windows.deltas.get("preemptions")
    again = np.zeros(served.size) if preempted is None else per_slot(grid, start, end, np.nan_to_num(preempted[good]))
    full = slots[(scrapes >= LEAST_SCRAPES) & (waited == scrapes)].astype(np.int64) - int(slots[0])
    told = [s for s in full if read[s] and bool(again[s] >= MOST_PREEMPTED * served[s]) == thrashing]
    return [float(served[s]) / SLOT for s in told]
