"""Whether the objectives are missed by one engine alone: then more of the same do not help, mending that one does.

An engine stands out where it misses at least three times as often as all others together, and more often than promised,
whatever its buckets leave open; where chance alone would show one such engine in less than 1 of 100 fleets (binomial,
times the number of engines); and where it misses in three different hours or more, for misses come in clusters. Worked:
four engines of 1,000 requests, one misses 300, the others 2 of 3,000: without it 99.93 % meet their targets. With as
many requests as the others it is the server that is slow, with more the router. 8 misses of 200 beside 2 of 200, where
1 % may be missed: P(8 or more at 1 %) x 2 = 0.2 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from advisor.domain.evidence import EngineSeries, Evidence
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.hours import HOUR_SECONDS

from .latency import LEAST_REQUESTS

STANDS_OUT = 3.0
CHANCE, LEAST_HOURS = 0.01, 3
NOBODY = "no engine misses the objectives far more often than the others"
FACTS = ("slo_attainment_without_worst", "worst_replica", "worst_replica_load")


@dataclass(frozen=True, slots=True)
class _Missed:
    """Requests of one engine that missed a target: at least, at most, and of how many; in how many different hours."""

    instance: str
    least: float
    most: float
    requests: float
    hours: float


def facts(evidence: Evidence) -> dict[str, Fact]:
    """The engine that stands out, and the share of all other requests that meet every target."""
    told = [_missed(evidence, engine) for engine in evidence.engines]
    missed = [m for m in told if m is not None and m.requests]
    able = [m for m in missed if m.requests >= LEAST_REQUESTS]
    if len(missed) < 2 or not able or None in told:
        return dict.fromkeys(FACTS, unknown("needs an objective and latency histograms of two engines or more"))
    worst = max(able, key=lambda m: m.least / m.requests)
    others = [m for m in missed if m is not worst]
    requests = sum(m.requests for m in others)
    if requests < LEAST_REQUESTS:
        return dict.fromkeys(FACTS, unknown(f"the other engines served fewer than {LEAST_REQUESTS} requests"))
    low, high = (1 - sum(bound) / requests for bound in ([m.most for m in others], [m.least for m in others]))
    share = worst.least / worst.requests
    if share < STANDS_OUT * (1 - low) or not _surely(worst, max(1 - low, 1 - evidence.slo.share), len(missed)):
        return dict.fromkeys(FACTS, unknown(NOBODY))
    story, n = f"all engines but {worst.instance}, which misses {share:.0%} at least", round(requests)
    without = measured(low, n=n, source=story) if low == high else computed(None, low=low, high=high, n=n, source=story)
    load = worst.requests * len(missed) / (requests + worst.requests)
    return {
        "slo_attainment_without_worst": without,
        "worst_replica": computed(worst.instance, n=round(worst.requests), source="latency histograms of each engine"),
        "worst_replica_load": measured(
            load, source=f"{worst.requests:,.0f} requests of {worst.instance} / mean of all"
        ),
    }


def _surely(worst: _Missed, usual: float, engines: int) -> bool:
    """Whether it misses more often than `usual`, the share that others miss or may miss, and not by chance."""
    if worst.hours < LEAST_HOURS:
        return False
    return engines * float(binom.sf(math.floor(worst.least) - 1, round(worst.requests), usual)) < CHANCE


def _missed(evidence: Evidence, engine: EngineSeries) -> _Missed | None:
    """None where an objective has no histogram on this engine. A request that misses both targets is counted once."""
    asked = evidence.slo.of_requests
    read = {name: engine.latencies[name] for name in asked if name in engine.latencies}
    if not asked or len(read) < len(asked):
        return None
    shares = [(*read[name].share_within(target), read[name].n) for name, target in asked.items() if read[name].n]
    least = max(((1 - high) * n for _, high, n in shares), default=0.0)
    most = sum((1 - low) * n for low, _, n in shares)
    requests = max((n for *_, n in shares), default=0.0)
    return _Missed(engine.instance, least, min(most, requests), requests, _hours_of_misses(engine, asked))


def _hours_of_misses(engine: EngineSeries, asked: Mapping[str, float]) -> float:
    """In how many hours its windows show requests beyond a target; infinite where no window tells."""
    read = [(counted, asked[name]) for name in asked if (counted := engine.windows.latencies(name)) is not None]
    hours: set[int] = set()
    for (counts, edges), target in read:
        beyond = np.nansum(counts[:, np.append(edges > target * (1 + 1e-9), True)], axis=1) > 0
        hours.update((engine.windows.end[beyond] // HOUR_SECONDS).astype(int).tolist())
    return float(len(hours)) if read else math.inf
