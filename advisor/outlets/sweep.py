"""An imported sweep for people and for scripts: every level, where the objectives are crossed, and both curves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from advisor.domain import numbers
from advisor.domain.evidence import Slo
from advisor.domain.fact import Fact
from advisor.domain.pictures import CurvePicture, CurvePoint
from advisor.domain.sweep import Sweep, SweepPoint

from .drawings import curve
from .layout import hanging, right, wrapped
from .plain import plain


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A sweep with what follows from it. A ceiling is None without an objective; `kept` says what became of it."""

    deployment: str | None
    sweep: Sweep
    slo: Slo
    tpot_ceiling: Fact | None
    ttft_ceiling: Fact | None
    next_concurrency: int | None
    kept: str


def render_table(result: SweepResult, width: int) -> list[str]:
    """Lines of at most `width` columns."""
    blocks = [list(_levels(result, width)), list(_crossings(result, width))]
    blocks += [list(_drawn(result, width, ttft=ttft)) for ttft in (False, True)]
    blocks.append(wrapped(result.kept, width))
    return [line for block in blocks if block for line in ("", *block)][1:]


def render_json(result: SweepResult) -> str:
    """The same as one JSON object, schema_version "1"; times in seconds."""
    return json.dumps(
        {
            "schema_version": "1",
            "deployment": result.deployment,
            "source": result.sweep.source,
            "model": result.sweep.model,
            "flags": dict(result.sweep.flags),
            "slo": {"tpot_seconds": result.slo.tpot_seconds, "ttft_seconds": result.slo.ttft_seconds},
            "points": [_point(point) for point in result.sweep.points],
            "latency_ceiling": _fact(result.tpot_ceiling),
            "ttft_ceiling": _fact(result.ttft_ceiling),
            "next_concurrency": result.next_concurrency,
            "kept": result.kept,
        },
        allow_nan=False,
        indent=2,
    )


def _point(point: SweepPoint) -> dict[str, object]:
    return {name: getattr(point, name) for name in point.__slots__}


def _fact(fact: Fact | None) -> dict[str, object] | None:
    return (
        None if fact is None else {name: getattr(fact, name) for name in ("value", "low", "high", "source", "unknown")}
    )


def _levels(result: SweepResult, width: int) -> Iterator[str]:
    yield from wrapped(f"SWEEP {result.sweep.source.removeprefix('sweep ')}", width)
    yield "".join(right(title, 13) for title in ("concurrency", "TPOT", "TTFT", "requests/s", "requests", "statistic"))
    for point in result.sweep.points:
        most = "<= " if point.at_most else ""
        cells = (
            ("~" if point.computed else "") + numbers.count(point.concurrency),
            most + numbers.seconds(point.tpot_seconds),
            "-" if point.ttft_seconds is None else numbers.seconds(point.ttft_seconds),
            "-" if point.requests_per_second is None else numbers.number(point.requests_per_second),
            "-" if point.requests is None else numbers.count(point.requests),
            point.statistic,
        )
        yield "".join(right(cell, 13) for cell in cells)
    if any(point.computed for point in result.sweep.points):
        yield from wrapped("~ follows from throughput and latency (Little's law); it was not set", width)
    if any(point.at_most for point in result.sweep.points):
        yield from wrapped("<= is no more than; the result has no mean or percentile of TPOT", width)


def _crossings(result: SweepResult, width: int) -> Iterator[str]:
    for name, target, ceiling in (
        ("TPOT", result.slo.tpot_seconds, result.tpot_ceiling),
        ("TTFT", result.slo.ttft_seconds, result.ttft_ceiling),
    ):
        if target is not None and ceiling is not None:
            yield from hanging(f"{name} within {numbers.seconds(target)}: ", _crossing(ceiling), width=width)
    if result.tpot_ceiling is None and result.ttft_ceiling is None:
        yield from wrapped("no objective given: --slo-tpot 40ms, --slo-ttft 2s say where it is crossed", width)
    if result.next_concurrency is not None:
        yield f"measure next: {result.next_concurrency:,}"


def _crossing(ceiling: Fact) -> str:
    if ceiling.unknown is not None:
        return f"cannot tell: {ceiling.unknown}"
    known = numbers.quantity(ceiling.value, "sequences") if ceiling.value is not None else None
    held = known or numbers.span(ceiling.low, ceiling.high, "sequences")
    failing = f", crossed by {numbers.count(ceiling.high)}" if known and ceiling.high is not None else ""
    return f"{held}{failing} ({ceiling.source})"


def _drawn(result: SweepResult, width: int, *, ttft: bool) -> Iterator[str]:
    read: Callable[[SweepPoint], float | None] = (lambda p: p.ttft_seconds) if ttft else (lambda p: p.tpot_seconds)
    ceiling = result.ttft_ceiling if ttft else result.tpot_ceiling
    points = tuple(CurvePoint(p.concurrency, s, 1.0) for p in result.sweep.points if (s := read(p)) is not None)
    if len(points) < 2:
        return
    picture = CurvePicture(
        points=points,
        line=None,
        objective_seconds=result.slo.ttft_seconds if ttft else result.slo.tpot_seconds,
        memory_ceiling=None,
        latency_ceiling=ceiling.number if ceiling else None,
        cap=None,
        next_cap=None,
        source=plain(" and ".join(sorted({p.statistic for p in result.sweep.points}))),
    )
    yield from curve(picture, width, "TIME TO FIRST TOKEN" if ttft else "TIME PER TOKEN")
