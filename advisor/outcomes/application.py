"""Whether somebody followed a piece of advice: told by the setting that runs, not by anybody's word."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.domain.life import AdviceRecord

from .sameness import moved
from .terms import Terms

if TYPE_CHECKING:
    from advisor.domain.advice import Advice
    from advisor.domain.report import DeploymentReport

COMPARED = ("demand_requests_per_second_mean", "total_tokens_p50")
"""What makes traffic before and after a change comparable."""

_GUESSES = ("inferred", "default")
_HALFWAY, _WHOLE, _FAR_BEYOND = 0.5, 0.999, 1.5


def baseline(advice: Advice, report: DeploymentReport) -> dict[str, float]:
    """The facts that a prediction will be held against, as they are before the change."""
    names = (*(prediction.metric for prediction in advice.prediction), *COMPARED)
    facts = report.facts
    return {name: number for name in names if name in facts and (number := facts[name].number) is not None}


def progress(advice: Advice, report: DeploymentReport, terms: Terms) -> float | None:
    """How far the running setting went from `current` (0) to `recommended` (1); None where nobody can tell.

    16 -> 24 advised and 20 running is 0.5. A value that is only inferred or a default tells nothing: it may be there
    because the source that knew better is down.
    """
    running = _running(advice, report)
    if running is None or advice.recommended is None:
        return None
    if advice.current is None or advice.current == advice.recommended:
        return 1.0 if moved(advice.recommended, running) <= terms.same_within else 0.0
    return (running - advice.current) / (advice.recommended - advice.current)


def noticed(record: AdviceRecord, report: DeploymentReport, now: float, terms: Terms) -> AdviceRecord:
    """Applied, when the setting took the advised value or moved at least halfway towards it.

    Replicas that are taken away must all be gone: one that crashed is no decision.
    """
    gone = progress(record.advice, report, terms)
    needed = _WHOLE if record.advice.verdict == "remove_replicas" else _HALFWAY
    if gone is None or gone < needed:
        return record
    at = _changed_at(record, report, now)
    return replace(record, state="applied", since=now, until=None, applied_at=at)


def left_behind(record: AdviceRecord, report: DeploymentReport, terms: Terms) -> str | None:
    """Why an applied change can no longer be judged: it was undone, or the setting moved on; None while it stands."""
    gone, knob = progress(record.advice, report, terms), record.advice.knob
    if gone is None or _HALFWAY <= gone <= _FAR_BEYOND:
        return None
    now = f"{knob} is {_running(record.advice, report):g}"
    return f"{'undone' if gone < _HALFWAY else 'changed again'} before it could be judged: {now}"


def _running(advice: Advice, report: DeploymentReport) -> float | None:
    if advice.knob is None or advice.knob not in report.facts:
        return None
    flag = report.evidence.flags.get(advice.knob)
    if flag is not None and flag.source in _GUESSES:
        return None
    return report.facts[advice.knob].number


def _changed_at(record: AdviceRecord, report: DeploymentReport, now: float) -> float:
    """When the engine says that the flag changed, where that lies between the two evaluations; else this one."""
    flag = report.evidence.flags.get(record.advice.knob or "")
    since = flag.since if flag is not None else None
    return since if since is not None and record.last_seen <= since <= now else now
