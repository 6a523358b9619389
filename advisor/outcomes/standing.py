"""Which advice stands now, and in which state: the judgement of one evaluation seen with the memory of earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from advisor.domain.advice import SEVERITIES, Advice, Finding, Judgement, Status, Verdict
from advisor.domain.life import AdviceRecord, LifeState

from .sameness import same_question
from .terms import Terms

if TYPE_CHECKING:
    from advisor.domain.report import Report

_CANNOT_TELL: tuple[Verdict, ...] = ("run_sweep", "fix_instrumentation")
WAITING: tuple[LifeState, ...] = ("open", "queued")
_LIFE = "advice/"
_NO_TERMS = Terms()


def with_states(report: Report, records: Iterable[AdviceRecord], terms: Terms = _NO_TERMS) -> Report:
    """The report that people see: advice under its lasting id and first value, in the state of its life."""
    of: dict[str, list[AdviceRecord]] = {}
    for record in records:
        of.setdefault(record.deployment, []).append(record)
    at = report.generated_at
    shown = tuple(
        replace(d, judgement=standing(d.judgement, of.get(d.evidence.name, ()), at, terms)) for d in report.deployments
    )
    return replace(report, deployments=shown)


def standing(judgement: Judgement, records: Sequence[AdviceRecord], at: float, terms: Terms = _NO_TERMS) -> Judgement:
    """One deployment's judgement with the states of its advice; the same again when it is applied once more.

    Open advice comes first, then queued. What is snoozed, rejected or applied follows, and each is a finding as well
    that says until when or why. Nothing to act on makes the status `ok`, unless it was `cannot_tell` or `no_data`.
    """
    relevant = arrange(_in_order([r for r in records if _is_shown(r, at, terms)], judgement), at, terms)
    waiting = [r for r in relevant if r.state in WAITING]
    told = [r for r in relevant if r.state not in WAITING]
    unrecorded = [a for a in judgement.advice if not _is_recorded(a, records, relevant)]
    advice = (*(_shown(r) for r in waiting), *unrecorded, *(_shown(r) for r in told))
    kept = tuple(f for f in judgement.findings if not f.rule.startswith(_LIFE))
    findings = (*(Finding(_LIFE + r.id, _told(r), ()) for r in told), *kept)
    return replace(judgement, status=_status(judgement.status, advice), advice=advice, findings=findings)


def arrange(records: Sequence[AdviceRecord], now: float, terms: Terms) -> list[AdviceRecord]:
    """Open or queued, for everything that waits; open first, then queued, then the others, in the order given.

    As the arbiter judged, with three exceptions. Advice that is open and was not seen at the last evaluation keeps its
    place, so that a hovering fact does not swap what is advised. Where what was judged open is snoozed or rejected, the
    next moves up. While a change is observed, only what is critical is open: a second change would spoil the verdict.
    """
    waiting = [r for r in records if r.state in WAITING]
    latest = max((r.last_seen for r in records), default=0.0)
    opened = _leaders(waiting, latest)
    if any(_is_observed(r, now, terms) for r in records):
        opened = [r for r in opened if r.advice.severity == "critical"]
    first = [_moved_to(r, "open", now) for r in waiting if r in opened]
    then = [_moved_to(r, "queued", now) for r in waiting if r not in opened]
    return [*first, *then, *(r for r in records if r not in waiting)]


def _leaders(waiting: Sequence[AdviceRecord], latest: float) -> Sequence[AdviceRecord]:
    judged = [r for r in waiting if r.last_seen >= latest and r.advice.state == "open"]
    lasting = [r for r in waiting if r.last_seen < latest and r.state == "open"]
    if lasting:
        return [*lasting, *(r for r in judged if r.advice.severity == "critical")]
    return judged or waiting[:1]


def _moved_to(record: AdviceRecord, state: LifeState, now: float) -> AdviceRecord:
    return record if record.state == state else replace(record, state=state, since=now)


def _is_observed(record: AdviceRecord, now: float, terms: Terms) -> bool:
    """A verdict that does not come must not hold everything else for ever."""
    return record.state == "applied" and now - (record.applied_at or 0) < 2 * terms.settle_seconds


def _in_order(records: Sequence[AdviceRecord], judgement: Judgement) -> list[AdviceRecord]:
    place = {(a.rule, a.knob): number for number, a in enumerate(judgement.advice)}

    def key(record: AdviceRecord) -> tuple[int, int, str]:
        advice = record.advice
        return place.get((advice.rule, advice.knob), len(place)), SEVERITIES.index(advice.severity), advice.rule

    return sorted(records, key=key)


def _is_shown(record: AdviceRecord, at: float, terms: Terms) -> bool:
    """Waiting advice always; muted advice while it would hold; an applied change while it may still be judged."""
    if record.state in ("snoozed", "rejected"):
        return at - record.last_seen < terms.grace_seconds
    if record.state == "applied":
        return at - (record.applied_at or 0) < terms.forget_seconds
    return record.state in WAITING


def _is_recorded(advice: Advice, records: Sequence[AdviceRecord], relevant: Sequence[AdviceRecord]) -> bool:
    return any(r.id == advice.id for r in records) or any(same_question(r.advice, advice) for r in relevant)


def _shown(record: AdviceRecord) -> Advice:
    return replace(record.advice, state=record.state)


def _told(record: AdviceRecord) -> str:
    """`--max-num-seqs 24 is rejected: the batch job needs the cache`."""
    what = record.advice.flag or record.advice.title
    if record.state == "applied":
        return f"{what} is applied since {_day(record.applied_at or record.since)} and being observed"
    until = f" until {_day(record.until)}" if record.state == "snoozed" and record.until is not None else ""
    return f"{what} is {record.state}{until}" + (f": {record.reason}" if record.reason else "")


def _status(judged: Status, advice: Sequence[Advice]) -> Status:
    if advice and advice[0].state == "open":
        return "cannot_tell" if advice[0].verdict in _CANNOT_TELL else "advice"
    return "ok" if judged == "advice" else judged


def _day(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%d %b %Y")
