"""The largest concurrency within the TPOT objective: measured by a sweep, else by live traffic; never interpolated.

Live traffic is beside it worked out from the time of a step (`shared_steps`). Where both say the same to a quarter the
lower one counts; where they do not, the ceiling is only known to lie between them. Worked: a log holds up to 38 and the
step allows 33, so 33; 16 and 24 are "between 16 and 24".
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression
from scipy.special import bdtr

from advisor.domain.evidence import EngineSeries, Evidence, as_floats
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.domain.histogram import Floats, Ints

from .latency import merged
from .length_change import first_alike, length_change
from .load import engines_per_instance, mean_decode_batch, sequence_cap
from .long_gaps import by_prompts
from .shared_steps import SharedSteps
from .step_time import REACH, StepTime
from .sweep_ceiling import from_sweep, on_one_engine
from .sweep_lengths import for_traffic, on_other_lengths

LEAST_AT_LEVEL = 50
LIKELY = 0.01
LEAST_WINDOW_REQUESTS = 5
MOST_BATCH = 1e6
ALIKE = 1.25
MOST_HEAVIER = 1.1
"""Where requests ask more than that many times what the mean of all did, what a log measured over all is not theirs."""
NOT_MEASURED = (
    "latency by concurrency was not measured: give a request log with ttft and duration (--logs), engine metrics over "
    "time (--prometheus), or a sweep (--sweep)"
)
NOT_APART = (
    "their time per token by concurrency is not told apart from earlier ones': engine metrics over time (--prometheus) "
    "would tell it, or the time since alone (--since)"
)
PASSED_THROUGH = 0.05
"""Levels with fewer of the requests were only passed on the way to others: more prompts come then than answers end."""


def latency_ceiling(evidence: Evidence, step: StepTime | str, shared: SharedSteps | None) -> Fact:
    """The ceiling by the best means there is, or why there is none. "At least N" where N was never seen failing."""
    target = evidence.slo.tpot_seconds
    if evidence.workload == "batch":
        return unknown("batch work promises no time per token: no latency ceiling")
    if target is None:
        return unknown("no time-per-token objective is given (--slo-tpot)")
    sweep = on_one_engine(evidence)
    other = None if sweep is None else on_other_lengths(sweep, evidence)
    if sweep is not None and other is None:
        return from_sweep(sweep, target)
    live = _live(evidence, target, step)
    if sweep is None and (why := by_prompts(evidence, target, live)):
        return unknown(why)
    if live.is_unknown:
        return live if sweep is None else for_traffic(from_sweep(sweep, target), other)
    ceiling = _beside(live, _by_step(evidence, target, step, shared))
    return ceiling if other is None else replace(ceiling, source=f"{ceiling.source}; no sweep, as {other.told}")


def _live(evidence: Evidence, target: float, step: StepTime | str) -> Fact:
    """By the traffic; once requests ask more of a step a log, which does not tell when it was, says nothing of them."""
    change = length_change(evidence)
    if change is not None and change.heavier > MOST_HEAVIER:
        since = _from_windows(evidence, target, step)
        if since is None:
            return unknown(f"{change.told}: {NOT_APART}")
        return since if since.is_unknown else replace(since, source=f"{since.source}; measured since {change.told}")
    live = _from_log(evidence, target) or _from_windows(evidence, target, step) or _from_lifetime(evidence, target)
    return unknown(NOT_MEASURED) if live is None else live


def _by_step(evidence: Evidence, target: float, step: StepTime | str, shared: SharedSteps | None) -> Fact | None:
    """The ceiling that the time of a step allows, "at least" where it lies beyond what that reaches."""
    if isinstance(step, str) or shared is None:
        return None
    reach = math.floor(REACH * step.widest)
    within = shared.sequences_within(target, evidence.slo.share, reach)
    told = "at least " if within == reach else ""
    return computed(None if told else within, low=within, source=f"{told}{within:,} by the time of a step")


def _beside(live: Fact, by_step: Fact | None) -> Fact:
    """What was measured, and what the time of a step allows; a ceiling that was never seen failing stands alone."""
    if by_step is None or live.is_unknown or live.high is None:
        return live
    story, within = f"{live.source}; {by_step.source}", by_step.floor or 0.0
    if live.number is None:
        low = live.low or 0.0
        if by_step.number is None:
            return replace(live, low=max(low, min(within, live.high)), source=story)
        return replace(live, value=within if low <= within <= live.high else None, low=min(low, within), source=story)
    least, most = sorted((live.number, within))
    if most <= ALIKE * least:
        told = live.number if by_step.number is None else least
        return replace(live, value=told, low=min(live.low or told, told), source=story)
    if by_step.number is None and within < live.number:
        return live
    high = max(most, live.high) if by_step.number is None else most
    return replace(live, value=None, low=min(live.low or least, least), high=high, source=story)


def from_levels(levels: Ints, within: Floats, requests: Floats, share: float) -> tuple[int | None, int | None]:
    """(largest level whose share of requests within the target holds, first level that fails); None for "none".

    `levels` ascending concurrency, `within` requests within the target at each, `requests` all. The share is made
    falling by isotonic regression, so that a lucky level above an unlucky one does not decide; a block of levels fails
    when so few within the target would be a 1 % accident at the share promised.
    """
    fitted = isotonic_regression(within / requests, weights=requests, increasing=False)
    starts = fitted.blocks[:-1]
    ok, every = np.add.reduceat(within, starts), np.add.reduceat(requests, starts)
    failing = np.repeat(~_likely(ok, every, share), np.diff(fitted.blocks)).nonzero()[0]
    if failing.size == 0:
        return int(levels[-1]), None
    first = int(failing[0])
    return (int(levels[first - 1]) if first else None), int(levels[first])


def reached(levels: Ints, within: Floats, requests: Floats, share: float) -> int:
    """Largest level up to which the share within the target, made falling, is itself the one promised; else 0."""
    fitted = isotonic_regression(within / requests, weights=requests, increasing=False).x
    return max(levels[fitted >= share - 1e-12].tolist(), default=0)


def _from_log(evidence: Evidence, target: float) -> Fact | None:
    sample = evidence.log.latency if evidence.log else None
    if sample is None or evidence.log is None:
        return None
    timed = np.isfinite(sample.tpot_seconds)
    share = engines_per_instance(evidence)
    decoding, in_flight = (np.ceil(n[timed] / share).astype(np.int64) for n in (sample.concurrency, sample.in_flight))
    seats = _seats(evidence, decoding, in_flight)
    counts = sample.counts[timed].astype(float)
    ok = counts * (sample.tpot_seconds[timed] <= target * (1 + 1e-9))
    levels, within, requests = _pool(seats, ok, counts, evidence.slo.share)
    if levels.size == 0:
        return None
    best, worst = from_levels(levels, within, requests, evidence.slo.share)
    n, story = (
        int(requests.sum()),
        f"{evidence.log.source}: share of requests within {target * 1e3:g} ms by concurrency",
    )
    if worst is None:
        return measured(None, low=best, n=n, source=f"{story}; never seen failing")
    if best is None:
        return unknown(f"{story}: too low at every concurrency seen, from {worst:,} up: not a matter of concurrency")
    low = reached(levels, within, requests, evidence.slo.share)
    if requests[levels <= worst].sum() < PASSED_THROUGH * n:
        most = reached(levels, within, requests, 0.5)
        story += f"; the load only passed through {best:,} to {worst:,}"
        return measured(None, low=min(low, best), high=max(most, worst), n=n, source=story)
    return measured(best, low=min(low, best), high=worst, n=n, source=story)


def _seats(evidence: Evidence, decoding: Ints, in_flight: Ints) -> Ints:
    """Seats taken: requests in flight, prefilling ones too, up to the cap; decoding ones where no cap is known."""
    cap = sequence_cap(evidence)
    return decoding if cap is None else np.maximum(np.minimum(in_flight, cap), decoding)


def _pool(seats: Ints, ok: Floats, counts: Floats, share: float) -> tuple[Ints, Floats, Floats]:
    """Sum per level, and join neighbours upwards until each has enough requests to say something.

    Joined levels count as their mean, so that one request at 40 beside fifty at 10 does not speak for 40. The few that
    are left above the last one can show a failure, but not that anything holds.
    """
    levels, place = np.unique(seats, return_inverse=True)
    within, requests = np.bincount(place, ok), np.bincount(place, counts)
    keep: list[tuple[int, float, float]] = []
    held_ok = held = held_seats = 0.0
    for level, good, every in zip(levels.tolist(), within.tolist(), requests.tolist(), strict=True):
        held_ok, held, held_seats = held_ok + good, held + every, held_seats + level * every
        if held >= LEAST_AT_LEVEL:
            keep.append((int(held_seats / held), held_ok, held))
            held_ok = held = held_seats = 0.0
    if held and keep and not _likely(held_ok, held, share):
        keep.append((int(held_seats / held), held_ok, held))
    table = np.array(keep, dtype=float).reshape(-1, 3)
    return table[:, 0].astype(np.int64), table[:, 1], table[:, 2]


def _likely(within: npt.ArrayLike, requests: npt.ArrayLike, share: float) -> npt.NDArray[np.bool_]:
    """Whether so few within the target happen by accident where `share` of requests is."""
    n = np.round(as_floats(requests)).astype(np.int64)
    return np.asarray(bdtr(np.floor(as_floats(within)), n, share) >= LIKELY)


def _from_windows(evidence: Evidence, target: float, step: StepTime | str) -> Fact | None:
    """From TPOT buckets per window: only bounds, because a request's time per token spans windows of another load.

    Below: the largest batch up to which every window's requests hold, by the bucket edge at or under the target. Above,
    once something failed: where the mean gap alone reaches the target, as a mean above it cannot hold a percentile.
    """
    batch, requests, least = _windows(evidence, target)
    if batch.size == 0:
        return None
    levels = _pool(np.round(batch).astype(np.int64), least, requests, evidence.slo.share)
    if levels[0].size == 0:
        return None
    best, fails = from_levels(*levels, evidence.slo.share)
    n, story = int(requests.sum()), "TPOT buckets by mean decode batch, per window"
    if fails is None:
        return computed(None, low=best, n=n, source=f"{story}; never seen failing")
    if isinstance(step, str):
        return computed(None, low=best or 0, n=n, source=f"{story}; step time not identified: {step}")
    most = math.floor(step.sequences_within(target))
    if most < 1:
        alone = step.itl(1.0) / step.tokens_per_gap
        return unknown(f"{story}: one sequence alone takes {alone * 1e3:.3g} ms a token: not a matter of concurrency")
    story += f"; the mean gap alone reaches {target * 1e3:g} ms at {most:,}"
    return computed(None, low=min(best or 0, most), high=most, n=n, source=story)


def _from_lifetime(evidence: Evidence, target: float) -> Fact | None:
    """From one scrape: where enough requests met the target since the start, the mean batch never failed it."""
    buckets = merged(evidence, "tpot")
    batches = [b for e in evidence.engines if e.lifetime and (b := mean_decode_batch(e)) is not None]
    if buckets is None or not batches or buckets.n < LEAST_AT_LEVEL:
        return None
    if buckets.share_within(target)[0] < evidence.slo.share:
        return None
    story = "TPOT buckets and mean decode batch since the engine started; never seen failing"
    return computed(None, low=max(math.floor(min(batches)), 1), n=round(buckets.n), source=story)


def _windows(evidence: Evidence, target: float) -> tuple[Floats, Floats, Floats]:
    rows: list[tuple[float, float, float]] = []
    for engine in evidence.engines:
        w = engine.windows
        if engine.lifetime or w.tpot is None or w.tpot_edges is None:
            continue
        under = w.tpot_edges <= target * (1 + 1e-9)
        batch, finished = _batches(engine), w.tpot.sum(axis=1)
        use = np.isfinite(finished) & (finished >= LEAST_WINDOW_REQUESTS) & (batch <= MOST_BATCH)
        use[: first_alike(engine)] = False
        least = w.tpot[:, :-1][:, under].sum(axis=1)
        rows += zip(batch[use], finished[use], least[use], strict=True)
    table = np.array(rows, dtype=float).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _batches(engine: EngineSeries) -> Floats:
    """Mean decode batch of each window; of engines that count no gaps, mean running sequences; NaN where unknown."""
    w, samples = engine.windows, engine.samples
    if {"itl_count", "steps"} <= w.deltas.keys():
        gaps, steps = w.deltas["itl_count"], w.deltas["steps"]
        return _ratio(gaps, steps)
    seen = np.isfinite(samples.running)
    total, count = (np.concatenate([[0], np.cumsum(v)]) for v in (np.where(seen, samples.running, 0), seen))
    before, until = (np.searchsorted(samples.time, edge, side="right") for edge in (w.start, w.end))
    return _ratio(total[until] - total[before], count[until] - count[before])


def _ratio(above: Floats, below: Floats) -> Floats:
    """Above / below; NaN where less than one stands below."""
    ratio: Floats = np.divide(above, below, out=np.full(below.size, np.nan), where=below >= 1)
    return ratio
