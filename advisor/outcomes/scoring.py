"""Predictions held against the window that followed, and how the advice of each rule scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from advisor.domain.hours import LOAD_DEPENDENT, HourFacts
from advisor.domain.life import AdviceRecord, Score, TrackRecord
from advisor.domain.numbers import quantity, span, unit_of

from .pairing import paired
from .same_hours import compared
from .sameness import moved
from .terms import DAY, Terms

if TYPE_CHECKING:
    from advisor.domain.advice import Prediction
    from advisor.domain.fact import Fact

_MOSTLY = 0.9
_LEAST_NOISE = {"ratio": 0.005, "seconds": 0.0005}
"""Half a percent of requests, half a millisecond: below that nothing is a difference, whatever it is relative to."""


def judged(
    record: AdviceRecord, facts: Mapping[str, Fact], hours: Sequence[HourFacts], now: float, terms: Terms
) -> AdviceRecord:
    """Regressed when a prediction clearly failed, verified when every one that can be decided held.

    Facts that move with the load are compared on the same hours before and after, others over the whole window. Stays
    applied, with a note on each score, while too little was observed, while the traffic is another one, or where no
    prediction can be decided; what may still be decided holds up the verdict for a week.
    """
    if not _observed_long_enough(record, facts, now, terms):
        return record
    scores = _Scoring(record, facts, hours, now, terms).scores()
    verdicts = [score.held for score in scores]
    patient = now - (record.applied_at or now) < terms.patience_seconds
    waits = patient and any(score.held is None and score.metric in LOAD_DEPENDENT for score in scores)
    if False in verdicts:
        return replace(record, state="regressed", since=now, scores=scores)
    if True in verdicts and not waits:
        return replace(record, state="verified", since=now, scores=scores)
    return replace(record, scores=scores)


class _Scoring:
    """The predictions of one applied change, each held against what tells it."""

    def __init__(
        self,
        record: AdviceRecord,
        facts: Mapping[str, Fact],
        hours: Sequence[HourFacts],
        now: float,
        terms: Terms,
    ) -> None:
        self.record, self.facts, self.terms = record, facts, terms
        self.applied_for = now - (record.applied_at or now)
        self.unlike = incomparable(record.baseline, facts, terms)
        self.told_hourly = frozenset(name for hour in hours for name in hour.figures)
        self.paired = paired(record, hours, terms)

    def scores(self) -> tuple[Score, ...]:
        """One score a prediction."""
        return tuple(
            self._on_same_hours(p) if p.metric in LOAD_DEPENDENT and p.metric in self.told_hourly else self._whole(p)
            for p in self.record.advice.prediction
        )

    def _on_same_hours(self, prediction: Prediction) -> Score:
        slack = partial(_noise, terms=self.terms)
        found = compared(prediction, self.record.advice, self.paired, slack, self.terms)
        if isinstance(found, str):
            return self._score(prediction, None, held=None, note=found)
        blurred = "; within the noise of these hours" if found.held is None else ""
        note = f"{found.hours} {self.paired.cycle}{blurred}"
        score = self._score(prediction, found.after, held=found.held, note=note, hours=found.hours)
        return replace(score, low=found.low, high=found.high, before=found.before)

    def _whole(self, prediction: Prediction) -> Score:
        fact = self.facts[prediction.metric]
        waits = self._waits_for_a_week(prediction.metric)
        note = fact.unknown or waits or self.unlike or _stale(fact, self.record)
        held = None if note else holds(prediction, fact, self.terms)
        if not note and fact.number is None:
            note = f"measured {span(fact.low, fact.high, prediction.unit)}"
        return self._score(prediction, fact.number, held=held, note=note)

    def _waits_for_a_week(self, metric: str) -> str:
        """A day and the week before it have other hours in them: without hours to pair, a whole week is compared."""
        if metric not in LOAD_DEPENDENT or self.applied_for >= self.terms.patience_seconds:
            return ""
        return f"not told hour by hour: compared after a whole week, {self.applied_for / DAY:.1f} of 7 days so far"

    def _score(
        self, prediction: Prediction, after: float | None, *, held: bool | None, note: str, hours: int | None = None
    ) -> Score:
        return Score(
            metric=prediction.metric,
            unit=prediction.unit,
            low=prediction.low,
            high=prediction.high,
            before=self.record.baseline.get(prediction.metric, prediction.now),
            after=after,
            held=held,
            note=note,
            hours=hours,
        )


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
