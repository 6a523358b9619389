"""Whether demand fits: arrivals against what one replica serves within its objectives, and the replicas that follow.

A replica with N seats that decode O tokens each at a gap of ITL(N) serves N / (residence) requests a second, where
residence = prefill steps + O x ITL(N) (Little's law). Worked: 24 seats, 211 tokens at 16.6 ms: 24 / 3.5 s = 6.9/s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.histogram import Floats
from advisor.domain.policy import Policy

from .step_time import REACH, StepTime
from .token_budget import mean_lengths

SLOT = 300.0
LEAST_SLOTS = 3
SPREAD_HEADROOM = 0.75
NO_DEMAND = "arrivals over time are not known: give a request log (--logs) or engine metrics (--prometheus)"


def facts(evidence: Evidence, policy: Policy, step: StepTime | str, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Demand, capacity at the seats that the ceilings allow, and the replicas that carry the one with the other."""
    rates = arrival_rates(evidence)
    out = _demand(rates)
    replicas = evidence.replicas
    out["replicas"] = (
        unknown("no source tells how many replicas serve")
        if replicas is None
        else measured(replicas, source="engines seen" if evidence.engines else "as stated")
    )
    seats = _seats(evidence, known)
    residence = _residence(evidence, step, seats)
    count = replicas or 1
    demand = out["demand_requests_per_second_p99"].number
    out["sequences_demanded"] = _sequences(demand, residence, count)
    out["capacity_requests_per_second_per_replica"] = _capacity(rates, count, seats, residence, known)
    headroom = headroom_for(evidence, policy)
    out["demand_over_capacity"] = _pressure(demand, residence, seats, count, headroom)
    out["recommended_replicas"] = _replicas(out["demand_over_capacity"], count)
    return out


def arrival_rates(evidence: Evidence) -> Floats:
    """Requests per second that arrived at the deployment, per 5-minute slot; empty when nothing tells."""
    if evidence.log is not None and evidence.log.arrivals:
        slots: dict[int, int] = {}
        for at, count in evidence.log.arrivals.items():
            slots[int(at // SLOT)] = slots.get(int(at // SLOT), 0) + count
        first, last = min(slots), max(slots)
        inner = range(first + 1, last) if last - first > 2 else range(first, last + 1)
        return np.array([slots.get(s, 0) / SLOT for s in inner])
    return _finished_rates(evidence)


def _finished_rates(evidence: Evidence) -> Floats:
    """Finished requests stand for arrivals: over 5 minutes the queue hardly changes the count."""
    slots: dict[int, float] = {}
    for engine in evidence.engines:
        finished = engine.windows.deltas.get("finished")
        if engine.lifetime or finished is None:
            continue
        good = np.isfinite(finished)
        for end, count in zip(engine.windows.end[good], finished[good], strict=True):
            slot = int((end - 1e-6) // SLOT)
            slots[slot] = slots.get(slot, 0.0) + float(count)
    ordered = sorted(slots)
    return np.array([slots[s] / SLOT for s in ordered[1:-1]])


def _demand(rates: Floats) -> dict[str, Fact]:
    if rates.size < LEAST_SLOTS:
        return {f"demand_requests_per_second_{k}": unknown(NO_DEMAND) for k in ("p99", "mean")}
    n, story = int(rates.size), "5-minute slots"
    return {
        "demand_requests_per_second_p99": measured(float(np.quantile(rates, 0.99)), n=n, source=story),
        "demand_requests_per_second_mean": measured(float(rates.mean()), n=n, source=story),
    }


def _seats(evidence: Evidence, known: Mapping[str, Fact]) -> float | None:
    """Seats of one replica that the ceilings allow: the proposed cap, no wider than the token budget can fill."""
    steps = [known[name].number for name in ("next_max_num_seqs", "recommended_max_num_seqs")]
    proposed = min((s for s in steps if s is not None), default=known["latency_ceiling"].high)
    cap = evidence.count_flag("max_num_seqs")
    known_seats = [s for s in (proposed or cap, known["budget_ceiling"].number) if s is not None]
    return max(min(known_seats), 1.0) if known_seats else None


def _residence(evidence: Evidence, step: StepTime | str, seats: float | None) -> float | None:
    """Seconds that one request holds its seat when all seats are taken; None when the step time is not known."""
    means = mean_lengths(evidence)
    if means is None or seats is None:
        return None
    if isinstance(step, StepTime):
        budget = evidence.count_flag("max_num_batched_tokens")
        chunks = math.ceil(means[0] / budget) if budget else 1
        return (means[1] + chunks) * step.itl(min(seats, REACH * step.widest))
    gaps = [
        (s, n) for e in evidence.engines if (s := e.windows.total("itl_sum")) and (n := e.windows.total("itl_count"))
    ]
    if not gaps:
        return None
    return means[1] * sum(s for s, _ in gaps) / sum(n for _, n in gaps)


def _sequences(demand: float | None, residence: float | None, replicas: int) -> Fact:
    if demand is None or residence is None:
        return unknown(NO_DEMAND if demand is None else "the time that a request holds its seat is not known")
    story = f"{demand:.3g} requests/s x {residence:.3g} s / {replicas} replicas"
    return computed(demand * residence / replicas, source=story)


def _capacity(
    rates: Floats, replicas: int, seats: float | None, residence: float | None, known: Mapping[str, Fact]
) -> Fact:
    attained, asked = known["slo_attainment"], known["slo_target"].number
    if asked is not None and attained.floor is not None and attained.floor >= asked and rates.size >= LEAST_SLOTS:
        most = float(rates.max()) / replicas
        return measured(
            None, low=most, n=int(rates.size), source="busiest 5 minutes, objectives met; never seen failing"
        )
    if seats is None or residence is None:
        return unknown("needs the step time (engine metrics over time) and a cap to judge")
    story = f"{seats:,.0f} seats / {residence:.3g} s that a request holds one"
    return computed(seats / residence, source=story)


def _pressure(
    demand: float | None, residence: float | None, seats: float | None, replicas: int, headroom: float
) -> Fact:
    if demand is None or residence is None or seats is None:
        return unknown(NO_DEMAND if demand is None else "the capacity at the proposed cap is not known")
    one = seats / residence
    story = f"{demand:.3g} requests/s against {replicas} x {one:.3g}/s at {seats:,.0f} seats, used to {headroom:.0%}"
    return computed(demand / (one * replicas * headroom), source=story)


def _replicas(pressure: Fact, replicas: int) -> Fact:
    if pressure.number is None:
        return unknown(pressure.unknown or "the capacity at the proposed cap is not known")
    value = max(math.ceil(replicas * pressure.number - 1e-9), 1)
    return computed(value, source=f"{replicas} x {pressure.number:.2f}, rounded up")


def headroom_for(evidence: Evidence, policy: Policy) -> float:
    """Share of a capacity that demand may use: less where output lengths vary by more than their mean."""
    joint = evidence.log.served if evidence.log and evidence.log.served.n else evidence.joint
    if joint is None or not joint.n:
        return policy.demand_headroom
    outputs = joint.output.astype(float)
    mean = float(np.average(outputs, weights=joint.counts))
    sd = math.sqrt(float(np.average((outputs - mean) ** 2, weights=joint.counts)))
    return min(SPREAD_HEADROOM, policy.demand_headroom) if sd > mean else policy.demand_headroom
