"""What one replica serves with so many seats taken, and how much of it demand may use.

A replica with N seats that decode O tokens each at a gap of ITL(N) serves N / (residence) requests a second, where
residence = prefill steps + O x ITL(N) (Little's law). Worked: 24 seats, 211 tokens at 16.6 ms: 24 / 3.5 s = 6.9/s.

Where the step time is not identified, only what was observed at a batch of D is known: residence = running / finished a
second (Little's law again, prompts included), at least O x ITL(D). It grows with the batch and so does what a replica
serves, hence its capacity at N seats lies between min(N, D) / residence and max(N, D) / residence; far from D that is
an interval, and never a reason to do with less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import Evidence, as_floats
from advisor.domain.policy import Policy

from .length_change import mean_lengths_now
from .lengths import marginals
from .load import engines_per_instance
from .step_time import LEAST_SPREAD, REACH, StepTime
from .step_windows import LEAST_WINDOWS
from .token_budget import mean_lengths, step_budget

SPREAD_HEADROOM, BATCH_HEADROOM = 0.75, 0.95
GAPS = ("itl_sum", "itl_count", "steps")


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


def serves_with(evidence: Evidence, step: StepTime | str, seats: float | None) -> Service | None:
    """What one replica serves with all seats taken; None when lengths, seats or the time of a step are not known.

    Where the lengths of requests changed, demand is of both kinds, and so are the bounds: 29 seats that served 7.0/s of
    200 tokens serve 3.1/s of 600.
    """
    means = mean_lengths(evidence)
    if means is None or seats is None:
        return None
    told, now = _serves(evidence, step, seats, means), mean_lengths_now(evidence)
    changed = None if now is None else _serves(evidence, step, seats, now)
    if told is None or changed is None:
        return told
    high = None if told.high is None or changed.high is None else max(told.high, changed.high)
    story = f"{told.story}; of the lengths since they changed: {changed.story}"
    return Service(min(told.low, changed.low), high, max(told.residence, changed.residence), story)


def _serves(evidence: Evidence, step: StepTime | str, seats: float, means: tuple[float, float]) -> Service | None:
    engines, budget = engines_per_instance(evidence), step_budget(evidence)
    chunks = math.ceil(means[0] / budget) if budget else 1
    if isinstance(step, StepTime):
        within = min(seats, REACH * step.widest)
        residence = (means[1] / step.tokens_per_gap + chunks) * step.itl(within)
        rate = engines * within / residence
        return Service(rate, rate if within == seats else None, residence, _story(within, residence, engines))
    gap, batch = _observed_gap(evidence)
    residence = max((means[1] + chunks) * gap, _observed_residence(evidence))
    if residence <= 0 or batch <= 0:
        return None
    low, high = sorted((engines * seats / residence, engines * batch / residence))
    quick = _gap_of_smaller(evidence, seats)
    high = max(high, engines * seats / ((means[1] + chunks) * quick)) if quick else high
    story = f"{_story(seats, residence, engines)}, at the {batch:,.1f} observed"
    return Service(low, high, residence, story)


def _observed_gap(evidence: Evidence) -> tuple[float, float]:
    """Mean gap between tokens in seconds, and mean decode batch, over all engines; zeros where they are not known."""
    rows = [tuple(e.windows.total(name) or 0.0 for name in GAPS) for e in evidence.engines]
    seconds, gaps, steps = np.array([r for r in rows if all(r)]).reshape(-1, 3).sum(axis=0)
    return (float(seconds / gaps), float(gaps / steps)) if gaps else (0.0, 0.0)


def _gap_of_smaller(evidence: Evidence, seats: float) -> float | None:
    """Mean gap, in seconds, while no more decoded than there are seats: with all of them taken it is no shorter.

    None where the batch hardly varied, so that the mean of all windows is of that batch. Half of the time alone and
    half with 99 others, the mean residence is of the many, and far too long for 30 seats.
    """
    counted = [e.windows.deltas for e in evidence.engines if set(GAPS) <= e.windows.deltas.keys()]
    read = [np.array([deltas[name] for name in GAPS]) for deltas in counted]
    if not read:
        return None
    seconds, gaps, steps = np.concatenate(read, axis=1)
    good = (seconds > 0) & (gaps > 0) & (steps > 0)
    batch = gaps[good] / steps[good]
    if batch.size < LEAST_WINDOWS or np.quantile(batch, 0.95) < LEAST_SPREAD * np.quantile(batch, 0.05):
        return None
    small = batch <= seats
    return float(seconds[good][small].sum() / gaps[good][small].sum()) if small.any() else None


def _observed_residence(evidence: Evidence) -> float:
    """Seconds that a request was seen to hold its seat, over all engines; 0 where running or finished is not known."""
    held = finished = 0.0
    for engine in evidence.engines:
        running = engine.samples.running[np.isfinite(engine.samples.running)]
        ended = engine.windows.total("finished")
        if engine.lifetime or not running.size or not ended:
            continue
        held += float(running.mean()) * float(np.sum(engine.windows.end - engine.windows.start))
        finished += ended
    return held / finished if finished else 0.0


def _story(seats: float, residence: float, engines: float) -> str:
    each = f"{engines:g} engines x " if engines > 1 else ""
    return f"{each}{seats:,.0f} seats / {residence:.3g} s that a request holds one"


def headroom_for(evidence: Evidence, policy: Policy) -> float:
    """Share of a capacity that demand may use: less where output lengths vary by more than their mean.

    Batch work may wait: there only as much is left as keeps a queue from growing for good.
    """
    if evidence.workload == "batch":
        return BATCH_HEADROOM
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
