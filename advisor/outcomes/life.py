"""From one evaluation to the next: what stays, what is new, what was followed, what ends and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.domain.hours import HourFacts
from advisor.domain.life import LIVE, AdviceRecord
from advisor.domain.numbers import setting

from .application import baseline, left_behind, noticed
from .sameness import is_graver, moved, refreshed, same_advice, same_question, stays_muted
from .scoring import judged
from .standing import WAITING, arrange
from .terms import Terms

if TYPE_CHECKING:
    from advisor.domain.advice import Advice
    from advisor.domain.report import DeploymentReport

HoursOf = Callable[[str, float], Sequence[HourFacts]]
NO_LONGER = "no longer holds"
_MUTED = ("snoozed", "rejected")
_NO_TERMS = Terms()


def _no_hours(_deployment: str, _since: float) -> Sequence[HourFacts]:
    return ()


def advance(
    records: Sequence[AdviceRecord],
    reports: Sequence[DeploymentReport],
    now: float,
    terms: Terms = _NO_TERMS,
    hours: HoursOf = _no_hours,
) -> tuple[AdviceRecord, ...]:
    """All records, live and ended, after the evaluation that `reports` come from.

    A deployment that is not among the reports keeps its records: not to be seen is not to be fine. `hours` tells what
    was measured of a deployment hour by hour since a moment; it is asked where a followed change is to be judged.
    """
    of: dict[str, list[AdviceRecord]] = {report.evidence.name: [] for report in reports}
    for record in records:
        of.setdefault(record.deployment, []).append(record)
    reported = {report.evidence.name: report for report in reports}
    out: list[AdviceRecord] = []
    for name, own in of.items():
        report = reported.get(name)
        out += _unseen(own, now, terms) if report is None else _Evaluation(report, now, terms, hours).of(own)
    return tuple(out)


def _unseen(records: Iterable[AdviceRecord], now: float, terms: Terms) -> list[AdviceRecord]:
    return [
        _ended(r, "nobody could judge it any more", now)
        if r.state in WAITING and now - r.last_seen >= terms.forget_seconds
        else r
        for r in records
    ]


def _ended(record: AdviceRecord, reason: str, now: float) -> AdviceRecord:
    return replace(record, state="superseded", since=now, until=None, reason=reason)


class _Evaluation:
    """One evaluation of one deployment."""

    def __init__(self, report: DeploymentReport, now: float, terms: Terms, hours: HoursOf) -> None:
        self.report, self.now, self.terms, self.hours = report, now, terms, hours
        self.undetermined = {rule.rule for rule in report.judgement.undetermined}

    def of(self, records: Sequence[AdviceRecord]) -> list[AdviceRecord]:
        """The deployment's records after it: what stands in the order of the judgement, then what ended."""
        # Live records first: what ended is only continued where nothing live is the same advice.
        before = sorted(map(self._moved_on, records), key=lambda r: r.state not in LIVE)
        taken = {r.id for r in records}
        seen: list[AdviceRecord] = []
        for advice in self.report.judgement.advice:
            same = next((r for r in before if self._is_same(r, advice)), None)
            if same is None:
                seen.append(self._first_seen(advice, taken))
            else:
                before.remove(same)
                seen.append(self._seen_again(same, advice))
        rest = [self._not_seen(r) for r in before]
        standing = [*seen, *(r for r in rest if r.state in LIVE)]
        return [*arrange(standing, self.now, self.terms), *(r for r in rest if r.state not in LIVE)]

    def _moved_on(self, record: AdviceRecord) -> AdviceRecord:
        """What happens to a record whatever the rules say now: followed, judged, or woken from its snooze."""
        if record.state == "applied":
            reason = left_behind(record, self.report, self.terms)
            if reason is not None:
                return _ended(record, reason, self.now)
            since = (record.applied_at or self.now) - self.terms.back_seconds
            hours = self.hours(record.deployment, since)
            return judged(record, self.report.facts, hours, self.now, self.terms)
        if record.state not in LIVE:
            return record
        applied = noticed(record, self.report, self.now, self.terms)
        if applied.state == "snoozed" and (applied.until or 0) <= self.now:
            return replace(applied, state="open", since=self.now, until=None, reason=None)
        return applied

    def _is_same(self, record: AdviceRecord, advice: Advice) -> bool:
        terms = self.terms
        if record.state in _MUTED:
            silent = stays_muted(record.advice, advice, terms.muted_within)
            return silent or same_advice(record.advice, advice, terms.same_within)
        if record.state == "superseded":
            lately = record.reason == NO_LONGER and self.now - record.since < terms.revive_seconds
            return lately and same_advice(record.advice, advice, terms.same_within)
        if record.state == "applied":
            # A change that could never be judged must not hide the same advice for ever.
            recent = self.now - (record.applied_at or 0) < terms.forget_seconds
            return recent and same_advice(record.advice, advice, terms.same_within)
        return record.state in WAITING and same_advice(record.advice, advice, terms.same_within)

    def _seen_again(self, record: AdviceRecord, advice: Advice) -> AdviceRecord:
        if record.state == "applied":
            return record
        if record.state in _MUTED and stays_muted(record.advice, advice, self.terms.muted_within):
            return replace(record, last_seen=self.now)
        back = record.state not in WAITING
        return replace(
            record,
            advice=refreshed(record.advice, advice),
            state="queued" if back else record.state,
            since=self.now if back else record.since,
            until=None,
            reason=None,
            last_seen=self.now,
            baseline=baseline(advice, self.report),
        )

    def _first_seen(self, advice: Advice, taken: set[str]) -> AdviceRecord:
        again = (f"{advice.id}-{number}" for number in range(2, len(taken) + 3))
        fresh = advice.id if advice.id not in taken else next(i for i in again if i not in taken)
        return AdviceRecord(
            deployment=self.report.evidence.name,
            advice=replace(advice, id=fresh),
            state="queued",
            since=self.now,
            first_seen=self.now,
            last_seen=self.now,
            baseline=baseline(advice, self.report),
        )

    def _not_seen(self, record: AdviceRecord) -> AdviceRecord:
        """What is not said any more: replaced at once by another value, else kept for a while before it ends."""
        if record.state not in (*WAITING, *_MUTED):
            return record
        reason = self._replaced_by(record)
        if reason is None and record.state != "rejected":
            reason = self._run_out(record)
        return record if reason is None else _ended(record, reason, self.now)

    def _replaced_by(self, record: AdviceRecord) -> str | None:
        old = record.advice
        for new in self.report.judgement.advice:
            if record.state in _MUTED and same_question(old, new):
                return _comeback(old, new)
            if record.state in WAITING and (same_question(old, new) or (old.knob and old.knob == new.knob)):
                return f"replaced: {_value(new)} instead of {_value(old)}"
        return None

    def _run_out(self, record: AdviceRecord) -> str | None:
        silent = self.now - record.last_seen
        if record.advice.rule in self.undetermined or self.report.judgement.status == "no_data":
            return "nobody could judge it any more" if silent >= self.terms.forget_seconds else None
        if record.state == "snoozed":
            return None
        return NO_LONGER if silent >= self.terms.grace_seconds else None


def _comeback(old: Advice, new: Advice) -> str:
    if is_graver(new, old):
        return f"its severity rose from {old.severity} to {new.severity}"
    return f"its value moved by {moved(old.recommended, new.recommended):.0%}, to {_value(new)}"


def _value(advice: Advice) -> str:
    if advice.recommended is None:
        return advice.flag or advice.title
    return f"{advice.knob} {setting(advice.recommended)}"
