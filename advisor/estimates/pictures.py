"""Evidence -> the figures of the charts: lengths in bins, and seconds a token over concurrency."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact
from advisor.domain.histogram import TokenCounts
from advisor.domain.pictures import CurvePicture, CurvePoint, LengthPicture, Pictures

from . import sweep_ceiling
from .length_sample import length_sample
from .load import engines_per_instance
from .log_origin import believed

LENGTH_BINS = 48
MOST_POINTS = 60


def pictures(evidence: Evidence, facts: Mapping[str, Fact]) -> Pictures:
    """Both charts, each None where the evidence has nothing to draw."""
    shown = believed(evidence, facts)
    return Pictures(_lengths(shown, facts), _curve(shown, facts))


def _lengths(evidence: Evidence, facts: Mapping[str, Fact]) -> LengthPicture | None:
    sample = length_sample(evidence)
    if sample is None:
        return None
    totals = sample.totals
    edges, shares = _binned(totals)
    return LengthPicture(
        edges=edges,
        shares=shares,
        requests=totals.n,
        p999_tokens=facts["total_tokens_p999"].number,
        proposal_tokens=facts["recommended_max_model_len"].number,
        limit_tokens=facts["max_model_len"].number,
        source=facts["total_tokens_p50"].source or "",
    )


def _binned(totals: TokenCounts) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Geometric bins from the shortest to the longest request, so that body and tail are both seen."""
    low, high = max(float(totals.lengths[0]), 1.0), float(totals.largest) + 1
    edges = np.geomspace(low, max(high, low * 1.01), LENGTH_BINS + 1)
    counts, _ = np.histogram(np.maximum(totals.lengths, low), bins=edges, weights=totals.counts)
    return tuple(edges.tolist()), tuple((counts / counts.sum()).tolist())


def _curve(evidence: Evidence, facts: Mapping[str, Fact]) -> CurvePicture | None:
    points, source = _sweep_points(evidence) or _live_points(evidence)
    base, slope = facts["itl_base"].number, facts["itl_per_sequence"].number
    line = None if base is None or slope is None else (base, slope)
    if not points and line is None:
        return None
    return CurvePicture(
        points=points,
        line=line,
        objective_seconds=evidence.slo.tpot_seconds,
        memory_ceiling=facts["memory_ceiling_expected"].number or facts["memory_ceiling_guaranteed"].number,
        latency_ceiling=facts["latency_ceiling"].number,
        cap=facts["max_num_seqs"].number,
        next_cap=facts["next_max_num_seqs"].number,
        source=source,
    )


def _sweep_points(evidence: Evidence) -> tuple[tuple[CurvePoint, ...], str] | None:
    sweep = sweep_ceiling.on_one_engine(evidence)
    if sweep is None:
        return None
    return tuple(CurvePoint(p.concurrency, p.tpot_seconds, 1.0) for p in sweep.points), f"sweep, {sweep.source}"


def _live_points(evidence: Evidence) -> tuple[tuple[CurvePoint, ...], str]:
    """Mean time per token by concurrency, of logged requests; at most MOST_POINTS levels."""
    sample = evidence.log.latency if evidence.log else None
    if sample is None or evidence.log is None:
        return (), "live traffic"
    timed = np.isfinite(sample.tpot_seconds)
    levels = np.ceil(sample.concurrency[timed] / engines_per_instance(evidence)).astype(np.int64)
    if levels.size == 0:
        return (), evidence.log.source
    width = max(1, -(-int(levels.max()) // MOST_POINTS))
    _, place = np.unique(levels // width, return_inverse=True)
    weight = np.bincount(place, sample.counts[timed])
    seconds = np.bincount(place, sample.counts[timed] * sample.tpot_seconds[timed]) / weight
    concurrency = np.bincount(place, sample.counts[timed] * levels) / weight
    rows = zip(concurrency.tolist(), seconds.tolist(), weight.tolist(), strict=True)
    return tuple(CurvePoint(*row) for row in rows), evidence.log.source
