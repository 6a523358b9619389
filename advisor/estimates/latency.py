"""Time to first token, time per output token, gaps between tokens, and the share of requests that met their targets.

From a request log: exact to the 1 % bins it is kept in. From histograms: between bucket edges; when two targets are
given, the share that met both lies between max(0, a + b - 1) and min(a, b) (Frechet).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from advisor.domain.evidence import Evidence, LatencySample
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.histogram import Buckets, Floats, Ints

from .lengths import marginals

NO_LATENCY = (
    "no latencies: give engine metrics (--prometheus, --engine) or a request log with ttft and duration (--logs)"
)
LEAST_REQUESTS = 100

Share = tuple[float, float, int, str]


def facts(evidence: Evidence) -> dict[str, Fact]:
    """Percentiles of TTFT, TPOT and ITL, and the attainment of the objectives."""
    itl = merged(evidence, "itl")
    out = {
        "ttft_p50": _percentile(evidence, "ttft", 0.5),
        "ttft_p99": _percentile(evidence, "ttft", 0.99),
        "tpot_p99": _percentile(evidence, "tpot", 0.99),
        "itl_p99": _between(itl, 0.99),
        "itl_mean": unknown(NO_LATENCY),
        "slo_target": unknown("no latency objective is given (--slo-tpot, --slo-ttft)"),
    }
    if itl is not None and itl.mean is not None:
        out["itl_mean"] = measured(itl.mean, n=round(itl.n), source="inter_token_latency_seconds, sum / count")
    return out | _attainment(evidence) | _target(evidence) | {"slo_attainment_itl": _gaps(evidence, itl)}


def merged(evidence: Evidence, name: str) -> Buckets | None:
    """One latency histogram over all engines of the deployment, present epoch."""
    return Buckets.merge(e.latencies[name] for e in evidence.engines if name in e.latencies)


def _percentile(evidence: Evidence, name: str, q: float) -> Fact:
    sample = evidence.log.latency if evidence.log else None
    if sample is not None and evidence.log is not None:
        values, counts = _finite(sample, name)
        if counts.sum() >= LEAST_REQUESTS:
            order = np.argsort(values)
            place = int(np.searchsorted(np.cumsum(counts[order]), q * counts.sum()))
            return measured(float(values[order][place]), n=int(counts.sum()), source=evidence.log.source)
    return _between(merged(evidence, name), q)


def _between(buckets: Buckets | None, q: float) -> Fact:
    if buckets is None:
        return unknown(NO_LATENCY)
    if buckets.n < LEAST_REQUESTS:
        return unknown(f"{buckets.n:.0f} observations; {LEAST_REQUESTS} are needed")
    low, high = buckets.quantile_bounds(q)
    above = high if np.isfinite(high) else None
    return measured(None, low=low, high=above, n=round(buckets.n), source="between bucket edges")


def _target(evidence: Evidence) -> dict[str, Fact]:
    slo = evidence.slo
    given = any(target is not None for target in (slo.tpot_seconds, slo.ttft_seconds, slo.itl_seconds))
    return {"slo_target": Fact(value=slo.share, source="objective", basis="assumed")} if given else {}


def _gaps(evidence: Evidence, itl: Buckets | None) -> Fact:
    if evidence.slo.itl_seconds is None:
        return unknown("no objective for the gap between tokens is given (--slo-itl)")
    if itl is None or itl.n < LEAST_REQUESTS:
        return unknown(NO_LATENCY)
    low, high = itl.share_within(evidence.slo.itl_seconds)
    return _as_fact((low, high, round(itl.n), "inter_token_latency_seconds"))


def _attainment(evidence: Evidence) -> dict[str, Fact]:
    slo = evidence.slo
    shares = {
        "tpot": _share(evidence, "tpot", slo.tpot_seconds),
        "ttft": _share(evidence, "ttft", slo.ttft_seconds),
    }
    out = {f"slo_attainment_{name}": _as_fact(share) for name, share in shares.items()}
    asked = slo.of_requests.keys()
    for name in {"tpot", "ttft"} - asked:
        out[f"slo_attainment_{name}"] = unknown(f"no {name.upper()} objective is given (--slo-{name})")
    if not asked:
        return out | {"slo_attainment": unknown("no latency objective is given (--slo-tpot, --slo-ttft)")}
    return out | {"slo_attainment": _every(evidence, [shares[name] for name in sorted(asked)])}


def _every(evidence: Evidence, parts: list[Share | None]) -> Fact:
    sample = _logged(evidence)
    if sample is not None and evidence.log is not None and all(parts):
        met = _met(sample.tpot_seconds, evidence.slo.tpot_seconds) & _met(
            sample.ttft_seconds, evidence.slo.ttft_seconds
        )
        n = int(sample.counts.sum())
        return measured(float(sample.counts[met].sum()) / n, n=n, source=evidence.log.source)
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return unknown(NO_LATENCY)
    low, high = met_all([(low, high) for low, high, _, _ in known])
    return _as_fact((low, high, min(n for _, _, n, _ in known), "histogram buckets"))


def met_all(shares: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Between which bounds the share lies that met every target, of the bounds for each (Frechet)."""
    return max(0.0, sum(low for low, _ in shares) - len(shares) + 1), min(high for _, high in shares)


def _share(evidence: Evidence, name: str, target: float | None) -> Share | None:
    if target is None:
        return None
    if name == "tpot" and (answers := _of_one_token(evidence)):
        return 1.0, 1.0, answers, "no answer has two tokens, so none has a time per token"
    sample = _logged(evidence)
    if sample is not None and evidence.log is not None:
        values = sample.tpot_seconds if name == "tpot" else sample.ttft_seconds
        if np.isnan(values).all():
            return None
        share = float(sample.counts[_met(values, target)].sum() / sample.counts.sum())
        return share, share, int(sample.counts.sum()), evidence.log.source
    buckets = merged(evidence, name)
    if buckets is None or buckets.n < LEAST_REQUESTS:
        return None
    low, high = buckets.share_within(target)
    return low, high, round(buckets.n), "histogram buckets"


def _of_one_token(evidence: Evidence) -> int:
    """How many answers there are, where none has two tokens; else 0."""
    joint, (_, outputs) = evidence.best_joint, marginals(evidence)
    if joint is not None and joint.n:
        n, longer = joint.n, int(joint.counts[joint.output > 1].sum())
    elif outputs is not None and outputs.n:
        n, longer = round(outputs.n), math.ceil(outputs.n * (1 - outputs.share_within(1.0)[0]) - 1e-9)
    else:
        return 0
    return n if n >= LEAST_REQUESTS and not longer else 0


def _logged(evidence: Evidence) -> LatencySample | None:
    sample = evidence.log.latency if evidence.log else None
    if sample is None or sample.counts.sum() < LEAST_REQUESTS or np.isnan(sample.ttft_seconds).any():
        return None
    return sample


def _met(values: Floats, target: float | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows met a target; a request of one token has no time per token to miss."""
    return np.ones(values.size, bool) if target is None else ~(values > target * (1 + 1e-9))


def _as_fact(share: Share | None) -> Fact:
    if share is None:
        return unknown(NO_LATENCY)
    low, high, n, source = share
    if high - low < 1e-9:
        return measured(low, n=n, source=source)
    return computed(None, low=low, high=high, n=n, source=f"{source}: no bucket edge at the target")


def _finite(sample: LatencySample, name: str) -> tuple[Floats, Ints]:
    values = sample.ttft_seconds if name == "ttft" else sample.tpot_seconds
    use = np.isfinite(values)
    return values[use], sample.counts[use]
