"""Whether the objectives hold right now: a week of good hours hides an hour that is failing.

From the engines' latency histograms window by window, over the last hour that was read. Where two targets are given,
the share that met both lies between a + b - 1 and the smaller of both (Frechet). Worked: of 3,600 requests 92 % within
the time per token and 99 % within the first token: between 91 and 92 %.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, measured, unknown
from advisor.domain.histogram import Buckets
from advisor.domain.hours import HOUR_SECONDS

from .latency import LEAST_REQUESTS, met_all


def facts(evidence: Evidence) -> dict[str, Fact]:
    """Of one name: slo_attainment_last_hour."""
    return {"slo_attainment_last_hour": attainment_last_hour(evidence)}


def attainment_last_hour(evidence: Evidence) -> Fact:
    """Share of the requests of the last hour that met every target: a value, or between bucket edges."""
    asked = evidence.slo.of_requests
    read = {name: Buckets.merge(_last_hour(evidence, name)) for name in asked}
    told = [(buckets, asked[name]) for name, buckets in read.items() if buckets is not None]
    if not told or len(told) < len(asked):
        return unknown("needs an objective, and latency histograms over the last hour")
    n = min(buckets.n for buckets, _ in told)
    if n < LEAST_REQUESTS:
        return unknown(f"fewer than {LEAST_REQUESTS} requests were answered in the last hour")
    low, high = met_all([buckets.share_within(target) for buckets, target in told])
    if low == high:
        return measured(low, n=round(n), source="the last hour")
    return measured(None, low=low, high=high, n=round(n), source="the last hour")


def _last_hour(evidence: Evidence, name: str) -> Iterator[Buckets]:
    """What each engine counted in its windows of the last hour."""
    for engine in evidence.engines:
        counted = None if engine.lifetime else engine.windows.latencies(name)
        if counted is not None:
            counts, edges = counted
            recent = engine.windows.start >= evidence.window.end - HOUR_SECONDS
            yield Buckets(edges, np.nansum(counts[recent], axis=0))
