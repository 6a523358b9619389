"""Predictions held against the window that followed, and how the advice of each rule scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from advisor.domain.life import AdviceRecord, Score, TrackRecord
from advisor.domain.numbers import quantity, span, unit_of

from .sameness import moved
from .terms import Terms

if TYPE_CHECKING:
    from advisor.domain.advice import Prediction
    from advisor.domain.fact import Fact

_MOSTLY = 0.9
_LEAST_NOISE = {"ratio": 0.005, "seconds": 0.0005}
"""Half a percent of requests, half a millisecond: below that nothing is a difference, whatever it is relative to."""


def judged(record: AdviceRecord, facts: Mapping[str, Fact], now: float, terms: Terms) -> AdviceRecord:
    """Verified when every prediction that can be decided held, regressed when one clearly did not.

    Stays applied, with a note on each score, while too little was observed, while the traffic is another one, or where
    no prediction can be decided.
    """
    if not _observed_long_enough(record, facts, now, terms):
        return record
    unlike = incomparable(record.baseline, facts, terms)
    scores = tuple(_score(p, record, facts, unlike, terms) for p in record.advice.prediction)
    verdicts = [score.held for score in scores if score.held is not None]
    if not verdicts:
        return replace(record, scores=scores)
    return replace(record, state="verified" if all(verdicts) else "regressed", since=now, scores=scores)


def incomparable(before: Mapping[str, float], after: Mapping[str, Fact], terms: Terms) -> str:
    """Why traffic before and after cannot be compared; empty when it can.

    Mean demand within 30 % and the median of total tokens within 25 %, of those that both sides tell; at least one.
    """
    limits = {"demand_requests_per_second_mean": terms.demand_within, "total_tokens_p50": terms.lengths_within}
    told = {name: (before[name], now) for name in limits if name in before and (now := after[name].number) is not None}
    if not told:
        return "not comparable: neither demand nor lengths are known before and after"
    for name, (then, now) in told.items():
        if moved(then, now) > limits[name]:
            unit = unit_of(name)
            return f"not comparable: {name} went from {quantity(then, unit)} to {quantity(now, unit)}"
    return ""


def holds(prediction: Prediction, fact: Fact, terms: Terms) -> bool | None:
    """Whether what was measured lies within what was predicted, give or take the noise; None where it is Unknown.

    A bound counts as missed when the fact's whole interval lies beyond it by more than the noise: 10 % of the bound,
    for a ratio of the nearer end. 99 % predicted and 98.6 % measured held, 98 % did not.
    """
    least = fact.low if fact.low is not None else fact.number
    most = fact.high if fact.high is not None else fact.number
    if least is None and most is None:
        return None
    low, high, unit = prediction.low, prediction.high, prediction.unit
    above = high is not None and least is not None and least > high + _noise(high, unit, terms)
    below = low is not None and most is not None and most < low - _noise(low, unit, terms)
    return not (above or below)


def _noise(bound: float, unit: str, terms: Terms) -> float:
    size = min(abs(bound), abs(1 - bound)) if unit == "ratio" and bound <= 1 else abs(bound)
    return max(terms.noise * size, _LEAST_NOISE.get(unit, 0.0))


def _score(prediction: Prediction, record: AdviceRecord, facts: Mapping[str, Fact], unlike: str, terms: Terms) -> Score:
    fact = facts[prediction.metric]
    note = fact.unknown or unlike or _stale(fact, record)
    if not note and fact.number is None:
        note = f"measured {span(fact.low, fact.high, prediction.unit)}"
    decidable = not (fact.is_unknown or unlike or _stale(fact, record))
    return Score(
        metric=prediction.metric,
        unit=prediction.unit,
        low=prediction.low,
        high=prediction.high,
        before=record.baseline.get(prediction.metric, prediction.now),
        after=fact.number,
        held=holds(prediction, fact, terms) if decidable else None,
        note=note,
    )


def _observed_long_enough(record: AdviceRecord, facts: Mapping[str, Fact], now: float, terms: Terms) -> bool:
    observed = facts["observed_seconds"].number
    since = now - (record.applied_at if record.applied_at is not None else now)
    return since >= terms.settle_seconds and (observed is None or observed >= terms.settle_seconds)


def _stale(fact: Fact, record: AdviceRecord) -> str:
    """Some facts cover the whole window: they tell of the change once it has been there for nine tenths of it."""
    if fact.window is None or record.applied_at is None:
        return ""
    try:
        start, end = (datetime.fromisoformat(part).timestamp() for part in fact.window.split("/"))
    except ValueError:
        return ""
    after = end - max(start, record.applied_at)
    return "" if after >= _MOSTLY * (end - start) else "it still covers days from before the change"


def track_records(records: Iterable[AdviceRecord]) -> tuple[TrackRecord, ...]:
    """For each rule whose advice was followed: how often, and how that ended; by the rule's id."""
    states: dict[str, list[str]] = {}
    for record in records:
        if record.applied_at is not None:
            states.setdefault(record.advice.rule, []).append(record.state)
    return tuple(
        TrackRecord(
            rule=rule,
            followed=len(ended),
            held=ended.count("verified"),
            regressed=ended.count("regressed"),
            undecided=len(ended) - ended.count("verified") - ended.count("regressed"),
        )
        for rule, ended in sorted(states.items())
    )
