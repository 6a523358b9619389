"""How to try a change before it is everywhere: on one replica, with what its restart costs and what a canary shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from advisor.domain.advice import Advice, Judgement
from advisor.domain.canary import Canary
from advisor.domain.evidence import EngineSeries, Evidence
from advisor.domain.fact import Fact
from advisor.domain.numbers import duration, quantity, ratio, setting, span

LEAST_SCRAPES_APART = 2.0


def with_trials(
    judgement: Judgement, evidence: Evidence, facts: Mapping[str, Fact], canaries: Sequence[Canary]
) -> Judgement:
    """The judgement with each piece of advice saying how to try it."""
    advice = tuple(replace(one, trial=trial(one, evidence, facts, canaries)) for one in judgement.advice)
    return replace(judgement, advice=advice)


def trial(advice: Advice, evidence: Evidence, facts: Mapping[str, Fact], canaries: Sequence[Canary]) -> str:
    """One replica first, or what the canary shows that tries it already; empty for what cannot be tried on a part."""
    replicas = evidence.replicas or 0
    if advice.verdict != "change_flag" or advice.current is None or replicas < 2:
        return ""
    for canary in canaries:
        if (tried := _tried(advice, canary)) is not None:
            shows = _shows(advice, canary) if tried == advice.recommended else ""
            return f"{_who(canary)} already with {advice.knob} {setting(tried)}{_company(advice, canary)}{shows}"
    return (
        f"on one replica first, its siblings are the comparison; {_load(advice, facts, replicas)}; {_start(evidence)}"
    )


def _tried(advice: Advice, canary: Canary) -> float | None:
    """The canary's value, where it lies between the present one and the one advised, or is that."""
    current, advised = advice.current, advice.recommended
    values = [d.canary for d in canary.differences if d.setting == advice.knob]
    if not values or current is None or advised is None or not isinstance(values[0], int | float):
        return None
    low, high = sorted((current, advised))
    return float(values[0]) if low <= values[0] <= high and values[0] != current else None


def _who(canary: Canary) -> str:
    first, *more = canary.instances
    return f"{first} runs" if not more else f"{first} and {len(more)} more run"


def _company(advice: Advice, canary: Canary) -> str:
    others = [d.setting.replace("_", " ") for d in canary.differences if d.setting != advice.knob]
    besides = f" (and another {', '.join(others)})" if others else ""
    return f"{besides}: its comparison with its siblings is the best test of this prediction"


def _shows(advice: Advice, canary: Canary) -> str:
    """What is predicted beside what the canary has: `; itl_mean 16.6 ms there, 16.1-17.2 ms expected`."""
    there = {reading.metric: reading.canary for reading in canary.readings}
    told = [
        f"{p.metric} {quantity(there[p.metric], p.unit)} there, {span(p.low, p.high, p.unit)} expected"
        for p in advice.prediction
        if there.get(p.metric) is not None
    ]
    return f"; {', '.join(told)}" if told else ""


def _load(advice: Advice, facts: Mapping[str, Fact], replicas: int) -> str:
    """Whether the others carry p99 demand while one of n restarts: demand / capacity x n / (n - 1).

    At 70 % on four replicas the other three run at 93 %.
    """
    others = "the other carries" if replicas == 2 else f"the other {replicas - 1} carry"
    bounds = _pressure(advice, facts)
    if bounds is None:
        return f"whether {others} the load while it restarts is not known"
    low, high = (bound * replicas / (replicas - 1) for bound in bounds)
    if high <= 1:
        return f"while it restarts {others} the load, at most {ratio(high)} of what they can at p99 demand"
    if low > 1:
        return f"while it restarts {others} p99 demand only to {ratio(1 / low)}: add a replica, or take a quiet hour"
    return f"whether {others} p99 demand while it restarts cannot be told ({ratio(low, high)} of what they can)"


def _pressure(advice: Advice, facts: Mapping[str, Fact]) -> tuple[float, float] | None:
    """Demand over capacity at the cap that runs now, between two bounds: what was served saturated, else the model.

    The model is of the proposed cap, and with more seats no engine serves more than in proportion to them.
    """
    saturated, modelled = facts["demand_over_saturated_rate"].number, facts["demand_over_capacity"]
    if saturated is not None:
        return saturated, saturated
    low, high = modelled.floor, modelled.ceiling
    if modelled.is_unknown or low is None or high is None:
        return None
    seats = 1.0
    if advice.knob == "max_num_seqs" and advice.current and advice.recommended:
        seats = advice.recommended / advice.current
    return low * min(seats, 1.0), high * max(seats, 1.0)


def _start(evidence: Evidence) -> str:
    """How long replicas needed from the start of the process to their first scrape, where a start was seen."""
    seen = [took for engine in evidence.engines if (took := _started_in(engine, evidence.window.start)) is not None]
    if not seen:
        return "how long a start takes was not seen"
    return f"the last start took about {duration(max(seen))} until it was scraped"


def _started_in(engine: EngineSeries, window_start: float) -> float | None:
    """Seconds from the epoch's start to its first scrape; None where a usual gap between scrapes explains them."""
    time = engine.samples.time
    if engine.lifetime or time.size < 3 or engine.epoch_start < window_start:
        return None
    took = float(time[0]) - engine.epoch_start
    return took if took > LEAST_SCRAPES_APART * float(np.median(np.diff(time))) else None
