"""What a sweep says: the largest measured concurrency within an objective, where to measure next, whose it is.

Worked: 26 tokens/s per user at 40 sequences, 19 at 48, 25 needed (40 ms): the ceiling is 40, the next measured 48.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from advisor.domain import numbers
from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, measured, unknown
from advisor.domain.sweep import Sweep, SweepPoint

from .load import engines_per_instance, sequence_cap

NO_CHANGE = 1.1
STEP = 1.5
FIXED_FLAGS = (
    *("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "max_num_batched_tokens"),
    *("quantization", "kv_cache_dtype", "dtype", "speculative_config", "enable_prefix_caching"),
    *("enable_chunked_prefill",),
)
"""Flags that bend the curve of latency over concurrency: a sweep under other values is one of another epoch."""


Latency = Callable[[SweepPoint], float | None]


def from_sweep(sweep: Sweep, target: float, of: Latency | None = None) -> Fact:
    """Largest measured concurrency that passes with every lower one passing; `high` is the next one measured.

    Where the lowest one fails already the ceiling is only known to lie below it. A level of which only the most is
    known that it can be, and that is too much, is left open: it ends the range without failing. `of` reads another
    latency than the time per token off a point, such as the time to first token. `source` says where to measure next.
    """
    ceiling = _ceiling(sweep, target, of or _tpot)
    level = where_next(ceiling)
    return ceiling if level is None else replace(ceiling, source=f"{ceiling.source}; measure {level:,} next")


def _ceiling(sweep: Sweep, target: float, latency: Latency) -> Fact:
    points = [p for p in sorted(sweep.points, key=lambda p: p.concurrency) if latency(p) is not None]
    if not points:
        return unknown(f"{sweep.source} does not report it")
    # A concurrency that was measured twice and failed once has failed, and nothing beyond a failure counts: the curve
    # is taken as rising (its running maximum).
    ending = next((p for p in points if not (latency(p) or 0.0) <= target * (1 + 1e-9)), None)
    passing = [p for p in points if ending is None or p.concurrency < ending.concurrency]
    told = _story if latency is _tpot else partial(_plain_story, latency)
    story = told(points, passing, ending, target)
    if ending is not None and ending.at_most:
        return _open_ended(passing, ending, len(points), story)
    if not passing:
        below = max(math.ceil(points[0].concurrency) - 1, 0)
        return measured(None, low=0, high=below, n=len(points), source=f"{story}; nothing lower was measured")
    best = math.floor(passing[-1].concurrency)
    if ending is None:
        return measured(None, low=best, n=len(points), source=f"{story}; never seen failing")
    return measured(best, low=best, high=ending.concurrency, n=len(points), source=story)


def where_next(ceiling: Fact) -> int | None:
    """The one concurrency to measure next: between the last that passed and the first that failed, or beyond.

    24 passed and 48 failed: 34, their geometric mean. Never failing at 128: 192. Failing from 8 up: 4. None where the
    answer could move by less than 10 %, which is no change.
    """
    low, high = ceiling.floor, ceiling.high
    if low is None or ceiling.is_unknown:
        return None
    if high is None:
        return math.ceil(low * STEP)
    if low < 1:
        return max(math.floor(high / 2), 1) if high >= 1 else None
    between = math.sqrt(low * high)
    return round(between) if low < round(between) < high and between >= NO_CHANGE * low else None


def on_one_engine(evidence: Evidence) -> Sweep | None:
    """The deployment's sweep as one scheduler saw it: in flight / engines behind its address, at most its seats.

    Beyond max_num_seqs requests wait, and the time per token is that of the seats: 128 in flight over 64 seats measured
    64. The sweep's own max_num_seqs, where it says one, goes before the one that runs now. Points that people stated as
    running sequences are taken at their word.
    """
    sweep = evidence.sweep
    if sweep is None or not sweep.points:
        return None
    own = sweep.flags.get("max_num_seqs")
    seats = own if isinstance(own, int) and not isinstance(own, bool) else None
    if sweep.in_flight:
        seats = sequence_cap(evidence) if seats is None else seats
    engines = engines_per_instance(evidence) if sweep.in_flight else 1.0
    points = tuple(replace(p, concurrency=min(p.concurrency / engines, seats or math.inf)) for p in sweep.points)
    return replace(sweep, points=points)


def other_epoch(sweep: Sweep, evidence: Evidence) -> str | None:
    """Why a sweep is none of what runs now, or None: as far as both sides say, nothing that bends the curve differs.

    A larger max_num_seqs than today's is no other epoch: it is how concurrency beyond today's cap is measured.
    """
    for name in FIXED_FLAGS:
        then, now = sweep.flags.get(name), evidence.flag(name)
        if then is not None and now is not None and str(then) != str(now):
            return f"it ran with {name} {then}, {now} runs now"
    then, now = sweep.flags.get("max_num_seqs"), evidence.count_flag("max_num_seqs")
    if isinstance(then, int) and now is not None and then < now:
        return f"it ran with max_num_seqs {then}, {now} runs now"
    if sweep.engine_version and evidence.engine_version and sweep.engine_version != evidence.engine_version:
        return f"it ran on {evidence.engine} {sweep.engine_version}, {evidence.engine_version} runs now"
    return _other_model(sweep, evidence)


def _other_model(sweep: Sweep, evidence: Evidence) -> str | None:
    """A deployment may be named after anything; only a name in the form of a repository names the model for sure."""
    served = evidence.flag("model") or (evidence.name if evidence.name.count("/") == 1 else None)
    if sweep.model is None or not isinstance(served, str):
        return None
    then, now = (text.rstrip("/").rpartition("/")[2].lower() for text in (sweep.model, served))
    return None if then == now else f"it tested {sweep.model}, {served} runs now"


def _tpot(point: SweepPoint) -> float:
    return point.tpot_seconds


def _open_ended(passing: list[SweepPoint], ending: SweepPoint, n: int, story: str) -> Fact:
    left_open = f"at {ending.concurrency:.4g} only an upper bound of the time per token is known, and it is too much"
    if not passing:
        return unknown(f"{story}; {left_open}: give results with mean or p99 TPOT")
    return measured(None, low=math.floor(passing[-1].concurrency), n=n, source=f"{story}; {left_open}")


def _plain_story(
    latency: Latency, points: list[SweepPoint], passing: list[SweepPoint], ending: SweepPoint | None, target: float
) -> str:
    shown = [(seconds, p) for p in (*passing[-1:], ending) if p and (seconds := latency(p)) is not None]
    told = [f"{numbers.seconds(seconds)} at {p.concurrency:.4g}" for seconds, p in shown]
    means = " (means, not percentiles)" if all(p.statistic == "mean" for p in points) else ""
    return f"{', '.join(told)}; {numbers.seconds(target)} asked{means}"


def _story(points: list[SweepPoint], passing: list[SweepPoint], ending: SweepPoint | None, target: float) -> str:
    shown = [p for p in (*passing[-1:], ending) if p and p.tpot_seconds > 0]
    told = [f"{1 / p.tpot_seconds:.3g} tokens/s per user at {p.concurrency:.4g}" for p in shown]
    means = " (means, not percentiles)" if all(p.statistic == "mean" for p in points) else ""
    computed = "; concurrency by Little's law" if any(p.computed for p in points) else ""
    return f"{', '.join(told)}; {1 / target:.3g} needed{means}{computed}"
