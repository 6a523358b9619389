"""What the estimates promise of other settings and loads than those observed, each played afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from statistics import mean

from advisor.domain.evidence import Slo
from advisor.domain.fact import Fact, FactSheet
from advisor.domain.policy import Policy
from tests.accuracy.observation import observe
from tests.accuracy.plants import Plant
from tests.recording.deployment import play
from tests.recording.export import EngineRun

HOURS = 2.2
BUSY = 0.92
PROMISE = Policy().kv_overflow_risk
SHARE = Slo().share
KNEE_SEATS = 40
SLACK = 1.25
MANY_SEATS = 256
ROOMY = 400
FULL = 1.4
NO_MORE = 1.02
PLAYS = 3
OVERLOADS = (1.4, 1.9, 2.6)
FIRST_TOKEN_SECONDS = 10.0
MANY_REQUESTS = 12_000
"""Enough to tell 99 % where long prompts are rare: of 4,000 one plant held 25 seats by one seed and 31 by another."""


@dataclass(frozen=True, slots=True)
class Promises:
    """What came of one plant's promises: relative errors, or whether they held; None where nothing was promised."""

    itl: float | None
    capacity_at_cap: float | None
    capacity: float | None
    preempted_share: float | None
    memory_ceiling: float | None
    latency_holds: bool | None
    latency_ceiling: float | None
    replicas_hold: bool | None


def promises(plant: Plant, *, logged: bool) -> Promises:
    """Observe a plant at its cap, one without a cap and one that is overloaded, and play what is said of each."""
    at_cap = plant.serving(plant.traffic(BUSY * plant.rate(plant.flags.max_num_seqs)), HOURS)
    said = observe(at_cap, Slo(tpot_seconds=1.0), logged=logged)
    preempted_share, memory_ceiling = _memory(plant, said)
    capacity, latency_holds, latency_ceiling = _latency(plant, logged=logged)
    itl, capacity_at_cap = _next_cap(plant, said)
    return Promises(
        itl=itl,
        capacity_at_cap=capacity_at_cap,
        capacity=capacity,
        preempted_share=preempted_share,
        memory_ceiling=memory_ceiling,
        latency_holds=latency_holds,
        latency_ceiling=latency_ceiling,
        replicas_hold=_replicas(plant, logged=logged),
    )


def _next_cap(plant: Plant, said: FactSheet) -> tuple[float | None, float | None]:
    """Errors of the gap between tokens and the requests per second predicted with every seat of the next cap taken."""
    cap = said["next_max_num_seqs"].number
    if cap is None:
        return None, None
    played = plant.with_cap(int(cap)).saturated()
    itl, capacity = said["itl_at_next_cap"], said["capacity_at_next_cap"]
    return _error(itl, played.itl_seconds), _error(capacity, played.requests_per_second)


def _error(said: Fact, played: float) -> float | None:
    return None if said.number is None else said.number / played - 1


def _memory(plant: Plant, said: FactSheet) -> tuple[float | None, float | None]:
    """The preempted share at the ceiling, and the ceiling's error against the largest that keeps the promise.

    No error where twice as many seats keep it too and serve no more: there memory never binds.
    """
    ceiling = said["memory_ceiling_expected"].number
    if ceiling is None:
        return None, None
    preempted_share, served = _full(plant, int(ceiling))
    twice, served_by_twice = _full(plant, 2 * int(ceiling))
    if twice <= PROMISE and served_by_twice <= NO_MORE * served:
        return preempted_share, None
    truth = _largest(lambda n: _full(plant, n)[0] <= PROMISE, int(ceiling))
    return preempted_share, ceiling / truth - 1


@cache
def _full(plant: Plant, cap: int) -> tuple[float, float]:
    """Preempted share and requests per second with demand for every seat: means of plays, as long requests are rare."""
    played = [replace(plant, seed=plant.seed + again).with_cap(cap).saturated() for again in range(PLAYS)]
    return mean(one.preempted_share for one in played), mean(one.requests_per_second for one in played)


def _latency(plant: Plant, *, logged: bool) -> tuple[float | None, bool | None, float | None]:
    """Of a plant without a cap whose load outgrows its objective: errors of its capacity and ceiling, and the bounds.

    What is simulated is the largest number of seats that meets it while all are taken, and the requests per second that
    these serve. The bounds hold when that number is no more than a quarter beyond them.
    """
    slo = Slo(tpot_seconds=round(plant.gap(KNEE_SEATS) * SLACK, 4))
    flags = replace(plant.flags, max_num_seqs=MANY_SEATS, kv_pool_tokens=round(plant.held * ROOMY))
    free = replace(plant, flags=flags)
    said = observe(free.serving(free.traffic(free.rate(0.6 * KNEE_SEATS), 1.0), HOURS), slo, logged=logged)
    ceiling, target = said["latency_ceiling"], slo.tpot_seconds or 0.0
    truth = _largest(lambda n: free.with_cap(n).saturated(MANY_REQUESTS).within(target) >= SHARE, KNEE_SEATS)
    served = free.with_cap(truth).saturated().requests_per_second
    capacity = _error(said["capacity_requests_per_second_per_replica"], served)
    if ceiling.is_unknown:
        return capacity, None, None
    low, high = (ceiling.low or 0.0) / SLACK, (ceiling.high or MANY_SEATS) * SLACK
    return capacity, low <= truth <= high, _error(ceiling, truth)


def _replicas(plant: Plant, *, logged: bool) -> bool | None:
    """Whether the replicas advised to an overloaded plant, whose cache has no room either, meet its objectives."""
    cap = plant.flags.max_num_seqs
    slo = Slo(plant.gap(cap) * 2, ttft_seconds=FIRST_TOKEN_SECONDS)
    pool = max(round(plant.held * cap * FULL), plant.flags.max_model_len + plant.flags.block_size)
    full = replace(plant, flags=replace(plant.flags, kv_pool_tokens=pool))
    overload = full.traffic(OVERLOADS[plant.seed % len(OVERLOADS)] * full.rate(cap))
    advised = observe(full.serving(overload, HOURS / 2), slo, logged=logged)["recommended_replicas"].number
    if advised is None:
        return None
    runs = play(full.serving(replace(overload, seed=plant.seed + 1), HOURS / 2, int(advised)))
    return _attained(runs, slo) >= SHARE


def _attained(runs: Iterable[EngineRun], slo: Slo) -> float:
    """The share of finished requests that met both objectives."""
    done = [r for run in runs for r in run.requests if not math.isnan(r.finished)]
    met = [
        r.first_token - r.arrival <= (slo.ttft_seconds or math.inf)
        and (r.finished - r.first_token) / max(r.generated - 1, 1) <= (slo.tpot_seconds or math.inf)
        for r in done
    ]
    return sum(met) / len(met)


def _largest(holds: Callable[[int], bool], near: int) -> int:
    """The largest number for which `holds`, which it does from 1 up to there; looked for from `near`, to 8 %."""
    low, high = (near, 2 * near) if holds(near) else (1, near)
    while high - low > max(1, low // 12):
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
