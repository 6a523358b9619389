"""One prediction held against the same hours before and after a change.

A bound that was told of the whole window moves with the hours that are compared: 0.20 -> at most 0.05 predicted, and
0.40 before on these hours, is at most 0.10 there. A bound that is the setting itself, or a target of requests, stands.

The miss m is the mean over pairs of what was measured beyond the bound. Its standard error s comes from the spread
between parts of the week (six hours each): within one, hours are no separate witnesses. With the slack that nobody
calls a difference, the prediction is missed where m - t s > slack with Student's t at 99.9 %, because it is looked at
every hour, and held where m + t s <= slack with t at 90 %; between them it cannot be told from noise. Worked: 17 parts,
m = 4 ms, s = 0.5 ms, slack 1.5 ms: t is 3.69, and 4 - 1.85 = 2.15 ms are beyond what noise explains: missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from advisor.domain.advice import Advice, Prediction
from advisor.domain.hours import DEMAND, OF_REQUESTS, HourFacts
from advisor.domain.numbers import quantity

from .pairing import Pair, Pairs
from .terms import Terms

LEAST_PARTS = 3
_T_999 = (22.33, 10.21, 7.17, 5.89, 5.21, 4.79, 4.5, 4.3, 4.14, 4.02, 3.93, 3.85, 3.79, 3.73, 3.69)
_T_90 = (1.886, 1.638, 1.533, 1.476, 1.44, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.35, 1.345, 1.341, 1.337)
"""Student's t from 2 to 16 degrees of freedom; beyond, the last one."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Means over the pairs, the bounds on these hours, and the verdict: None where noise hides it."""

    before: float
    after: float
    low: float | None
    high: float | None
    held: bool | None
    hours: int


@dataclass(frozen=True, slots=True)
class _Row:
    before: float
    after: float
    weight: float
    period: int


def compared(
    prediction: Prediction, advice: Advice, paired: Pairs, slack: Callable[[float, str], float], terms: Terms
) -> Compared | str:
    """The prediction on the hours that tell its metric; or why they do not test it yet."""
    rows = [row for pair in paired.pairs if (row := _row(pair, prediction.metric)) is not None]
    if len(rows) < terms.compared_hours or len({row.period for row in rows}) < LEAST_PARTS:
        few = f"still collecting: {len(rows)} of {terms.compared_hours} comparable hours"
        return "; ".join(part for part in (few, paired.unlike) if part)
    before = _mean([r.before for r in rows], rows)
    if calm := _calm(prediction, before, paired.usual, terms):
        return calm
    bounds = [(_factor(bound, prediction, advice), bound) for bound in (prediction.low, prediction.high)]
    low, high = (None if bound is None else bound if f is None else f * before for f, bound in bounds)
    verdicts = [
        _verdict([sign * (row.after - _bound(row, factor, bound)) for row in rows], rows, slack(mean, prediction.unit))
        for sign, mean, (factor, bound) in zip((-1, 1), (low, high), bounds, strict=True)
        if bound is not None and mean is not None
    ]
    held = False if False in verdicts else None if None in verdicts else True
    return Compared(before, _mean([r.after for r in rows], rows), low, high, held, len(rows))


def _calm(prediction: Prediction, before: float, usual: Sequence[HourFacts], terms: Terms) -> str:
    """Why the hours do not test a prediction: what it is about hardly happened on them before, either."""
    known = [h.figures[prediction.metric] for h in usual if prediction.metric in h.figures]
    ordinary = sum(known) / len(known)
    if before >= terms.usual_tested * ordinary:
        return ""
    on_them, on_all = (quantity(value, prediction.unit) for value in (before, ordinary))
    return f"still collecting: it was {on_them} on the hours compared so far, {on_all} on all before the change"


def _row(pair: Pair, metric: str) -> _Row | None:
    then = [(h.figures[metric], h.figures[DEMAND]) for h in pair.before if metric in h.figures]
    if metric not in pair.after.figures or not then:
        return None
    # Both sides of a pair count alike, and as much as there were requests where the metric is one of requests.
    weight = sum(demand for _, demand in then) / len(then) if metric in OF_REQUESTS else 1.0
    return _Row(sum(value for value, _ in then) / len(then), pair.after.figures[metric], weight, pair.period)


def _factor(bound: float | None, prediction: Prediction, advice: Advice) -> float | None:
    """The bound as a multiple of what was measured before; None for one that stands whatever the hour."""
    if bound is None or bound == advice.recommended or prediction.metric.startswith("slo_attainment"):
        return None
    if prediction.now is None:
        # Only its upper end was known, and "no more than now" is all that such a prediction can say.
        return 1.0 if prediction.low is None else None
    return bound / prediction.now if prediction.now > 0 else None


def _bound(row: _Row, factor: float | None, bound: float) -> float:
    return bound if factor is None else factor * row.before


def _verdict(misses: Sequence[float], rows: Sequence[_Row], slack: float) -> bool | None:
    miss = _mean(misses, rows)
    error, parts = _standard_error(misses, rows, miss)
    place = min(parts, len(_T_999) + LEAST_PARTS - 1) - LEAST_PARTS
    if miss - _T_999[place] * error > slack:
        return False
    return True if miss + _T_90[place] * error <= slack else None


def _mean(values: Sequence[float], rows: Sequence[_Row]) -> float:
    weights = sum(row.weight for row in rows)
    return sum(value * row.weight for value, row in zip(values, rows, strict=True)) / weights


def _standard_error(values: Sequence[float], rows: Sequence[_Row], mean: float) -> tuple[float, int]:
    """Of a weighted mean whose values are independent only between periods; and how many periods there are."""
    sums: dict[int, float] = {}
    for value, row in zip(values, rows, strict=True):
        sums[row.period] = sums.get(row.period, 0.0) + row.weight * (value - mean)
    parts = len(sums)
    spread = sum(s * s for s in sums.values()) * parts / (parts - 1)
    return math.sqrt(spread) / sum(row.weight for row in rows), parts
