"""Whether demand fits: arrivals against what one replica serves within its objectives, and the replicas that follow.

What a replica serves with its seats taken is in service_rate.py. Where the ceilings are only known by bounds, what is
served within the objectives lies between what the least and the most of these seats serve, and the replicas that carry
demand between what the one and the other ask for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.numbers import counted, ratio
from advisor.domain.policy import Policy

from . import growth
from .demand import NO_DEMAND, Arrivals, arrivals_of, busiest_half_hour, demand_facts, epoch_start, last_left
from .load import engines_per_instance
from .measured_capacity import served_within
from .objectives import surely_met, surely_missed
from .service_rate import Service, headroom_for, serves_with
from .step_time import StepTime

NARROW = 1.25
LEAST_CHANGE = 0.1
NO_REPLICAS = "no source tells how many replicas serve"
NO_CAPACITY = "the capacity at the proposed cap is not known"


def facts(evidence: Evidence, policy: Policy, step: StepTime | str, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Demand, capacity at the seats that the ceilings allow, and the replicas that carry the one with the other."""
    arrivals = arrivals_of(evidence, known["length_coverage"].number)
    present = arrivals.since(epoch_start(evidence))
    out = demand_facts(arrivals, present)
    out |= growth.facts(evidence, arrivals, {**known, **out})
    replicas = evidence.replicas or None
    out["replicas"] = (
        unknown(NO_REPLICAS)
        if replicas is None
        else measured(replicas, source="engines seen" if evidence.engines else "as stated")
    )
    seats = _seats(evidence, known)
    service = serves_with(evidence, step, seats)
    if service is not None and _more_to_come(known, seats):
        service = replace(service, high=None)
    wanted, headroom = out["demand_requests_per_second_p99"].number, headroom_for(evidence, policy)
    out["sequences_demanded"] = _sequences(wanted, service, replicas)
    sure = _surely_within(service, serves_with(evidence, step, _least_seats(known, seats)))
    out["capacity_requests_per_second_per_replica"] = _capacity(evidence, present, sure, known)
    needed = _needed(wanted, service, headroom)
    out["demand_over_capacity"] = _pressure(needed, replicas)
    out["busiest_half_hour_over_capacity"] = _pressure(_needed(busiest_half_hour(present), service, 1.0), replicas)
    out["demand_over_capacity_one_down"] = (
        _pressure(needed, replicas - 1) if replicas and replicas > 1 else unknown("needs two replicas")
    )
    out |= _at_caps(evidence, step, wanted, replicas, known)
    out["weeks_to_capacity"] = growth.weeks_left(out)
    out["recommended_replicas"] = _replicas(_needed(out["demand_to_carry"].number, sure, headroom))
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


def _at_caps(
    evidence: Evidence, step: StepTime | str, demand: float | None, replicas: int | None, known: Mapping[str, Fact]
) -> dict[str, Fact]:
    """What the seats of the present and of the next cap serve, whatever the ceilings allow, and demand against it."""
    names = {"capacity_at_cap": "max_num_seqs", "capacity_at_next_cap": "next_max_num_seqs"}
    serves = {name: serves_with(evidence, step, known[cap].number) for name, cap in names.items()}
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


def _sequences(demand: float | None, service: Service | None, replicas: int | None) -> Fact:
    if demand is None or replicas is None:
        return unknown(NO_DEMAND if demand is None else NO_REPLICAS)
    if service is None:
        return unknown("the time that a request holds its seat is not known")
    story = f"{demand:.3g} requests/s x {service.residence:.3g} s / {counted(replicas, 'replica')}"
    return computed(demand * service.residence / replicas, source=story)


def _capacity(evidence: Evidence, present: Arrivals, service: Service | None, known: Mapping[str, Fact]) -> Fact:
    """Measured first: the busiest slot while the objectives held, else the rate up to which they did; else computed."""
    replicas = evidence.replicas
    served = served_within(evidence) if known["slo_target"].number is not None else None
    alike = present.since(last_left(evidence))
    if surely_met(known) and replicas and alike.told and (served is None or served.fails is None):
        most = float(alike.per_second.max()) / replicas
        story = "busiest 5 minutes, objectives met; never seen failing"
        return measured(None, low=most, n=int(alike.start.size), source=story)
    if served is not None:
        each = engines_per_instance(evidence)
        fails = None if served.fails is None else each * served.fails
        story = "largest 5-minute rate with the share within the objectives surely held"
        computed_too = f"; {service.low:.3g}/s by the time of a step" if service is not None else ""
        value = each * served.holds
        if service is not None and service.low > NARROW * value:
            # Slots of an overload finish no more than good ones: where they fail says little of the rate that holds.
            return computed(None, low=value, high=service.low, n=served.requests, source=story + computed_too)
        seen = measured(value, low=value, high=fails, n=served.requests, source=story + computed_too)
        return seen if service is None else seen.instead_of(_within(service.low, service.high, service.story))
    if service is None:
        return unknown("needs the step time (engine metrics over time) and a cap to judge")
    return _missed(present, replicas, service, known) or _within(service.low, service.high, service.story)


def _missed(present: Arrivals, replicas: int | None, service: Service, known: Mapping[str, Fact]) -> Fact | None:
    """Where the objectives are missed with the flags that are proposed, seats tell no rate within them."""
    if not surely_missed(known) or not replicas or not present.told or not _stays(known):
        return None
    busiest = float(present.per_second.max()) / replicas
    if service.low <= busiest:
        return None
    story = f"busiest 5 minutes, objectives missed; seats alone would serve {service.low:.3g}/s"
    return measured(None, high=busiest, n=int(present.start.size), source=story)


def _stays(known: Mapping[str, Fact]) -> bool:
    """Whether the cap that runs is the one proposed, so that what was observed is of the proposal too."""
    cap, following = known["max_num_seqs"].number, known["next_max_num_seqs"].number
    return cap is not None and following is not None and abs(following - cap) < LEAST_CHANGE * cap


def _needed(demand: float | None, service: Service | None, headroom: float) -> Fact:
    """Replicas, not rounded, that carry the demand with headroom."""
    if demand is None or service is None:
        return unknown(NO_DEMAND if demand is None else NO_CAPACITY)
    least = 0.0 if service.high is None else demand / (service.high * headroom)
    story = f"{demand:.3g} requests/s, used to {ratio(headroom)}: {service.story}"
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
    return computed(parts[0], low=parts[1], high=parts[2], source=f"{needed.source}, {counted(replicas, 'replica')}")


def _replicas(needed: Fact) -> Fact:
    if needed.is_unknown:
        return unknown(needed.unknown or NO_CAPACITY)
    parts = [None if x is None else max(math.ceil(x - 1e-9), 1) for x in (needed.number, needed.low, needed.high)]
    return computed(parts[0], low=parts[1], high=parts[2], source=f"{needed.source}, rounded up")
