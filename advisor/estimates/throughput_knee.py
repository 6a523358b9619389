"""From which concurrency on a sweep shows no more tokens per second: what comes on top only waits."""

from __future__ import annotations

import math

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.sweep import Sweep, SweepPoint

ALL = 0.95
"""Share of the best throughput that counts as all of it: sweeps repeat within about 5 %."""


def facts(evidence: Evidence) -> dict[str, Fact]:
    """The knee, and what lies beyond it; the knee of a sweep that still rises at its end is only bounded.

    Worked: 8, 24, 40 and 48 sequences at 62, 41, 26 and 19 tokens/s each are 496, 984, 1,040 and 912 tokens/s. 95 % of
    the best are 988, so the knee is 40, and 88 % of its throughput is left at 48.
    """
    sweep = evidence.sweep
    points = sorted(sweep.points, key=lambda p: p.concurrency) if sweep else []
    if sweep is None or len(points) < 2:
        return dict.fromkeys(("throughput_knee", "throughput_beyond_knee"), unknown("needs a sweep (--sweep)"))
    rates = [_throughput(sweep, p) for p in points]
    told = [rate for rate in rates if rate is not None]
    if len(told) < len(rates):
        why = unknown("the sweep does not say how much was served at each concurrency")
        return {"throughput_knee": why, "throughput_beyond_knee": why}
    place = next(at for at, rate in enumerate(told) if rate >= ALL * max(told))
    knee, story = points[place].concurrency, f"{sweep.source}: {told[place]:,.4g} there, {max(told):,.4g} at most"
    if place == len(points) - 1:
        rising = unknown("throughput still rises at the highest concurrency swept")
        return {"throughput_knee": computed(None, low=knee, source=story), "throughput_beyond_knee": rising}
    return {
        "throughput_knee": computed(knee, source=story),
        "throughput_beyond_knee": computed(told[-1] / told[place], source=story),
    }


def _throughput(sweep: Sweep, point: SweepPoint) -> float | None:
    """Requests per second where every level has them, else tokens per second of sequences that ran together."""
    if all(p.requests_per_second is not None for p in sweep.points):
        rate = point.requests_per_second or 0.0
    elif sweep.in_flight or point.at_most or point.statistic != "mean" or not point.tpot_seconds > 0:
        return None
    else:
        rate = point.concurrency / point.tpot_seconds
    return rate if 0 < rate < math.inf else None
