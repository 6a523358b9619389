"""Whether demand fits: arrivals against what one replica serves within its objectives, and the replicas that follow.

A replica with N seats that decode O tokens each at a gap of ITL(N) serves N / (residence) requests a second, where
residence = prefill steps + O x ITL(N) (Little's law). Worked: 24 seats, 211 tokens at 16.6 ms: 24 / 3.5 s = 6.9/s.

Where the step time is not identified, only the gap at the batch D that was observed is known. The gap grows with the
batch and so does what a replica serves, hence its capacity at N seats lies between min(N, D) / residence and
max(N, D) / residence; far from D that is an interval, and never a reason to do with less. It is one, too, where the
ceilings are only known by bounds: what is served within the objectives lies between what the least and the most of
these seats serve, and the replicas that carry demand between what the one and the other ask for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from advisor.domain.evidence import Evidence, as_floats
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.histogram import Floats
from advisor.domain.policy import Policy

from .demand import LEAST_SLOTS, NO_DEMAND, arrival_rates, demand_facts
from .lengths import marginals
from .load import engines_per_instance
from .measured_capacity import served_within
from .step_time import REACH, StepTime
from .token_budget import mean_lengths, step_budget

SPREAD_HEADROOM = 0.75
NARROW = 1.25
NO_REPLICAS = "no source tells how many replicas serve"
NO_CAPACITY = "the capacity at the proposed cap is not known"


@dataclass(frozen=True, slots=True)
class Service:
    """Requests per second that one replica serves with `seats` taken on each of its engines, between two bounds.

    `residence`: seconds that one request then holds its seat. `high` is None where more seats than could be judged
    would serve more.
    """

    low: float
    high: float | None
    residence: float
    story: str


def facts(evidence: Evidence, policy: Policy, step: StepTime | str, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Demand, capacity at the seats that the ceilings allow, and the replicas that carry the one with the other."""
    rates = arrival_rates(evidence, known["length_coverage"].number)
    out = demand_facts(rates)
    replicas = evidence.replicas or None
    out["replicas"] = (
        unknown(NO_REPLICAS)
        if replicas is None
        else measured(replicas, source="engines seen" if evidence.engines else "as stated")
    )
    seats = _seats(evidence, known)
    service = _service(evidence, step, seats)
    if service is not None and _more_to_come(known, seats):
        service = replace(service, high=None)
    wanted, headroom = out["demand_requests_per_second_p99"].number, headroom_for(evidence, policy)
    out["sequences_demanded"] = _sequences(wanted, service, replicas)
    sure = _surely_within(service, _service(evidence, step, _least_seats(known, seats)))
    out["capacity_requests_per_second_per_replica"] = _capacity(evidence, rates, sure, known)
    out["demand_over_capacity"] = _pressure(_needed(wanted, service, headroom), replicas)
    out |= _at_caps(evidence, step, wanted, replicas, known)
    out["recommended_replicas"] = _replicas(_needed(wanted, sure, headroom))
    return out


def _seats(evidence: Evidence, known: Mapping[str, Fact]) -> float | None:
    """Seats of one engine that the ceilings allow: the proposed cap, no wider than the token budget can fill."""
    steps = [known[name].number for name in ("next_max_num_seqs", "recommended_max_num_seqs")]
    proposed = min((s for s in steps if s is not None), default=known["latency_ceiling"].high)
    cap = evidence.count_flag("max_num_seqs")
    known_seats = [s for s in (proposed or cap, known["budget_ceiling"].number) if s is not None]
    return max(min(known_seats), 1.0) if known_seats else None


def _least_seats(known: Mapping[str, Fact], seats: float | None) -> float | None:
    """Of these seats those that the ceilings surely allow, where these are only known by bounds."""
    target = known["recommended_max_num_seqs"]
    if seats is None or target.number is not None or target.low is None or target.high is None:
        return seats
    return min(seats, max(target.low, 1.0))


def _surely_within(service: Service | None, least: Service | None) -> Service | None:
    """What is served within the objectives: at least with the least seats, at most with those of the proposed cap."""
    return service if service is None or least is None else replace(service, low=min(service.low, least.low))


def _more_to_come(known: Mapping[str, Fact], seats: float | None) -> bool:
    """Whether these seats are only a step: a cap on its way up to the target serves more, and costs no replica."""
    following, target = known["next_max_num_seqs"].number, known["recommended_max_num_seqs"].number
    cap = known["max_num_seqs"].number
    if following is None or target is None or cap is None:
        return False
    return seats == following and cap < following < target


def _service(evidence: Evidence, step: StepTime | str, seats: float | None) -> Service | None:
    """What one replica serves with all seats taken; None when lengths, seats or the time of a step are not known."""
    means = mean_lengths(evidence)
    if means is None or seats is None:
        return None
    engines = engines_per_instance(evidence)
    if isinstance(step, StepTime):
        budget = step_budget(evidence)
        chunks = math.ceil(means[0] / budget) if budget else 1
        within = min(seats, REACH * step.widest)
        residence = (means[1] / step.tokens_per_gap + chunks) * step.itl(within)
        rate = engines * within / residence
        return Service(rate, rate if within == seats else None, residence, _story(within, residence, engines))
    gap, batch = _observed_gap(evidence)
    residence = means[1] * gap
    if residence <= 0 or batch <= 0:
        return None
    low, high = sorted((engines * seats / residence, engines * batch / residence))
    story = f"{_story(seats, residence, engines)}, at the {batch:,.1f} observed"
    return Service(low, high, residence, story)


def _at_caps(
    evidence: Evidence, step: StepTime | str, demand: float | None, replicas: int | None, known: Mapping[str, Fact]
) -> dict[str, Fact]:
    """What the seats of the present and of the next cap serve, whatever the ceilings allow, and demand against it."""
    names = {"capacity_at_cap": "max_num_seqs", "capacity_at_next_cap": "next_max_num_seqs"}
    serves = {name: _service(evidence, step, known[cap].number) for name, cap in names.items()}
    out = {
        name: unknown("needs the cap, lengths and the time of a step")
        if service is None
        else _within(service.low, service.high, service.story)
        for name, service in serves.items()
    }
    carried = out["capacity_at_cap"].number
    if carried is None or demand is None or replicas is None:
        return out | {"demand_over_cap_capacity": unknown(NO_DEMAND if demand is None else NO_CAPACITY)}
    story = f"{demand:.3g} requests/s against {replicas} x {carried:.3g}/s"
    return out | {"demand_over_cap_capacity": computed(demand / (replicas * carried), source=story)}


def _observed_gap(evidence: Evidence) -> tuple[float, float]:
    """Mean gap between tokens in seconds, and mean decode batch, over all engines; zeros where they are not known."""
    rows = [tuple(e.windows.total(name) or 0.0 for name in ("itl_sum", "itl_count", "steps")) for e in evidence.engines]
    seconds, gaps, steps = np.array([r for r in rows if all(r)]).reshape(-1, 3).sum(axis=0)
    return (float(seconds / gaps), float(gaps / steps)) if gaps else (0.0, 0.0)


def _story(seats: float, residence: float, engines: float) -> str:
    each = f"{engines:g} engines x " if engines > 1 else ""
    return f"{each}{seats:,.0f} seats / {residence:.3g} s that a request holds one"


def _sequences(demand: float | None, service: Service | None, replicas: int | None) -> Fact:
    if demand is None or replicas is None:
        return unknown(NO_DEMAND if demand is None else NO_REPLICAS)
    if service is None:
        return unknown("the time that a request holds its seat is not known")
    story = f"{demand:.3g} requests/s x {service.residence:.3g} s / {replicas} replicas"
    return computed(demand * service.residence / replicas, source=story)


def _capacity(evidence: Evidence, rates: Floats, service: Service | None, known: Mapping[str, Fact]) -> Fact:
    """Measured first: the busiest slot while the objectives held, else the rate up to which they did; else computed."""
    attained, asked, replicas = known["slo_attainment"].floor, known["slo_target"].number, evidence.replicas
    met = asked is not None and attained is not None and attained >= asked
    if met and replicas and rates.size >= LEAST_SLOTS:
        most = float(rates.max()) / replicas
        story = "busiest 5 minutes, objectives met; never seen failing"
        return measured(None, low=most, n=int(rates.size), source=story)
    served = served_within(evidence) if asked is not None else None
    if served is not None:
        each = engines_per_instance(evidence)
        fails = None if served.fails is None else each * served.fails
        story = "largest 5-minute rate with the share within the objectives surely held"
        computed_too = f"; {service.low:.3g}/s by the time of a step" if service is not None else ""
        value = each * served.holds
        if service is not None and service.low > NARROW * value:
            # Slots of an overload finish no more than good ones: where they fail says little of the rate that holds.
            return computed(None, low=value, high=service.low, n=served.requests, source=story + computed_too)
        return measured(value, low=value, high=fails, n=served.requests, source=story + computed_too)
    if service is None:
        return unknown("needs the step time (engine metrics over time) and a cap to judge")
    return _within(service.low, service.high, service.story)


def _needed(demand: float | None, service: Service | None, headroom: float) -> Fact:
    """Replicas, not rounded, that carry the demand with headroom."""
    if demand is None or service is None:
        return unknown(NO_DEMAND if demand is None else NO_CAPACITY)
    least = 0.0 if service.high is None else demand / (service.high * headroom)
    story = f"{demand:.3g} requests/s, used to {headroom:.0%}: {service.story}"
    return _within(least, demand / (service.low * headroom), story)


def _within(low: float, high: float | None, story: str) -> Fact:
    """The figure where its bounds are as good as one, the bounds themselves where they are not."""
    if high is None or high > NARROW * low:
        return computed(None, low=low, high=high, source=story)
    return computed((low + high) / 2, low=low, high=high, source=story)


def _pressure(needed: Fact, replicas: int | None) -> Fact:
    if needed.is_unknown or replicas is None:
        return unknown(needed.unknown or NO_REPLICAS)
    parts = [None if x is None else x / replicas for x in (needed.number, needed.low, needed.high)]
    return computed(parts[0], low=parts[1], high=parts[2], source=f"{needed.source}, {replicas} replicas")


def _replicas(needed: Fact) -> Fact:
    if needed.is_unknown:
        return unknown(needed.unknown or NO_CAPACITY)
    parts = [None if x is None else max(math.ceil(x - 1e-9), 1) for x in (needed.number, needed.low, needed.high)]
    return computed(parts[0], low=parts[1], high=parts[2], source=f"{needed.source}, rounded up")


def headroom_for(evidence: Evidence, policy: Policy) -> float:
    """Share of a capacity that demand may use: less where output lengths vary by more than their mean."""
    joint = evidence.best_joint
    _, buckets = marginals(evidence)
    if joint is not None and joint.n:
        outputs, weights = joint.output.astype(float), as_floats(joint.counts)
    elif buckets is not None and buckets.edges.size:
        edges = np.concatenate([[0.0], buckets.edges, buckets.edges[-1:]])
        outputs, weights = (edges[:-1] + edges[1:]) / 2, buckets.counts
    else:
        return policy.demand_headroom
    mean = float(np.average(outputs, weights=weights))
    sd = math.sqrt(float(np.average((outputs - mean) ** 2, weights=weights)))
    return min(SPREAD_HEADROOM, policy.demand_headroom) if sd > mean else policy.demand_headroom
