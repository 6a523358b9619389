"""Whether the objectives are missed by one engine alone: then more of the same do not help, mending that one does.

An engine stands out where it misses at least three times as often as all others together, and more often than promised,
whatever its buckets leave open. Worked: four engines of 1,000 requests, one misses 300, the others 2 of 3,000: without
it 99.93 % meet their targets. With as many requests as the others it is the server that is slow, with more the router.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.domain.evidence import EngineSeries, Evidence
from advisor.domain.fact import Fact, computed, measured, unknown

from .latency import LEAST_REQUESTS

STANDS_OUT = 3.0
NOBODY = "no engine misses the objectives far more often than the others"
FACTS = ("slo_attainment_without_worst", "worst_replica", "worst_replica_load")


@dataclass(frozen=True, slots=True)
class _Missed:
    """Requests of one engine that missed a target: at least, at most, and of how many."""

    instance: str
    least: float
    most: float
    requests: float


def facts(evidence: Evidence) -> dict[str, Fact]:
    """The engine that stands out, and the share of all other requests that meet every target."""
    missed = [m for engine in evidence.engines if (m := _missed(evidence, engine)) is not None]
    if len(missed) < 2 or len(missed) < len(evidence.engines):
        return dict.fromkeys(FACTS, unknown("needs an objective and latency histograms of two engines or more"))
    worst = max(missed, key=lambda m: m.least / m.requests)
    others = [m for m in missed if m is not worst]
    requests = sum(m.requests for m in others)
    low, high = (1 - sum(bound) / requests for bound in ([m.most for m in others], [m.least for m in others]))
    share = worst.least / worst.requests
    if share <= 1 - evidence.slo.share or share < STANDS_OUT * (1 - low):
        return dict.fromkeys(FACTS, unknown(NOBODY))
    story, n = f"all engines but {worst.instance}, which misses {share:.0%} at least", round(requests)
    told = measured(low, n=n, source=story) if low == high else computed(None, low=low, high=high, n=n, source=story)
    load = worst.requests * len(missed) / (requests + worst.requests)
    return {
        "slo_attainment_without_worst": told,
        "worst_replica": computed(worst.instance, n=round(worst.requests), source="latency histograms of each engine"),
        "worst_replica_load": measured(
            load, source=f"{worst.requests:,.0f} requests of {worst.instance} / mean of all"
        ),
    }


def _missed(evidence: Evidence, engine: EngineSeries) -> _Missed | None:
    """None where an objective has no histogram on this engine. A request that misses both targets is counted once."""
    slo = evidence.slo
    asked = {name: target for name, target in (("tpot", slo.tpot_seconds), ("ttft", slo.ttft_seconds)) if target}
    read = {name: engine.latencies[name] for name in asked if name in engine.latencies}
    if not asked or len(read) < len(asked) or min(buckets.n for buckets in read.values()) < LEAST_REQUESTS:
        return None
    shares = [read[name].share_within(target) for name, target in asked.items()]
    requests = max(buckets.n for buckets in read.values())
    least, most = max(1 - high for _, high in shares), min(sum(1 - low for low, _ in shares), 1.0)
    return _Missed(engine.instance, least * requests, most * requests, requests)
