"""What would have been advised: the evaluation replayed at moments of the past, each with what was known by then.

A limit advised at one moment is held against the requests of the window that followed it, which is how `max_model_len`
is judged: by the share that it would have refused. Flags, start-up logs, sweeps and rules are today's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from advisor.cycle import run_once
from advisor.domain.errors import UsageError
from advisor.domain.evidence import Evidence, Window
from advisor.domain.replayed import Replayed
from advisor.domain.report import DeploymentReport, Report
from advisor.estimates.context_limit import needs
from advisor.settings import Settings

MOST_MOMENTS = 400


def moments(until: float, since: float, every: float) -> tuple[float, ...]:
    """The moments to replay, oldest first, the last one `until`. Raises UsageError for none, or for too many."""
    if not 0 < every <= since:
        raise UsageError("--every must be a span above 0 that --since holds at least once")
    count = int(since / every) + 1
    if count > MOST_MOMENTS:
        raise UsageError(f"--since and --every make {count:,} evaluations, at most {MOST_MOMENTS} are replayed")
    return tuple(float(at) for at in until - every * np.arange(count)[::-1])


def replay(
    settings: Settings, at: tuple[float, ...], evaluate: Callable[..., Report] = run_once
) -> Iterator[tuple[Replayed, ...]]:
    """Every deployment at each moment; each comes when the window that follows it was read, or at the end."""
    # What an engine says when it is asked is of now, not of then.
    past = settings.model_copy(update={"engines": ()})
    waiting: list[tuple[Replayed, ...]] = []
    for moment in at:
        report = evaluate(past, Window(moment - settings.since, moment))
        seen = {deployment.evidence.name: deployment.evidence for deployment in report.deployments}
        while waiting and waiting[0][0].at + settings.since <= moment:
            yield tuple(_held_against(row, seen, moment - settings.since) for row in waiting.pop(0))
        if rows := tuple(_row(moment, deployment) for deployment in report.deployments):
            waiting.append(rows)
    yield from waiting


def _row(at: float, deployment: DeploymentReport) -> Replayed:
    advice, facts = deployment.judgement.advice, deployment.facts
    return Replayed(
        at=at,
        deployment=deployment.evidence.name,
        status=deployment.judgement.status,
        advice=advice[0] if advice and advice[0].state == "open" else None,
        max_model_len=facts["recommended_max_model_len"].number,
        max_num_seqs=facts["recommended_max_num_seqs"].number,
    )


def _held_against(row: Replayed, seen: Mapping[str, Evidence], window_start: float) -> Replayed:
    """The row with what the window that began at it shows; a window that began later is of other requests."""
    evidence = seen.get(row.deployment)
    needed = needs(evidence) if evidence is not None and row.at <= window_start else None
    if row.max_model_len is None or needed is None or not needed.n:
        return row
    return replace(row, refused_after=needed.above(row.max_model_len) / needed.n)
