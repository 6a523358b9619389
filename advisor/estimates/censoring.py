"""What the sample of lengths leaves out: refused and cut requests, rows without usage, a span that is too short."""

from __future__ import annotations

import math

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.domain.exported import ExportedLengths
from advisor.domain.fact import Fact, computed, measured, unknown

from . import lengths
from .length_sample import TELL_LENGTHS, believed_agents

HOUR, DAY = 3600.0, 86400.0
MOST_COVERAGE = 1.1


def facts(evidence: Evidence, limit: int | None) -> dict[str, Fact]:
    """How far the lengths can be trusted. `limit`: max_model_len where it is known, tokens."""
    return {
        "refused_share_now": _refused_now(evidence),
        "finish_length_share": _cut_share(evidence, limit),
        "length_coverage": _coverage(evidence),
        "observed_days": _observed_days(evidence),
    }


def _refused_now(evidence: Evidence) -> Fact:
    log, http = evidence.log, evidence.http
    if log is not None and log.requests and log.tells_refusals:
        return measured(log.refused / log.requests, n=log.requests, source=log.source)
    agents = believed_agents(evidence)
    if agents is not None and agents.requests:
        return measured(
            agents.outcomes["refused_length"] / agents.requests, n=round(agents.requests), source=agents.source
        )
    if http is not None and (answers := http.ok + http.client_errors + http.server_errors) > 0:
        n = round(answers)
        if http.client_errors == 0:
            return measured(0.0, n=n, source="http_requests_total: no 4xx answer")
        most = http.client_errors / answers
        return measured(
            None, low=0.0, high=most, n=n, source="http_requests_total: 4xx mixes refusals with other errors"
        )
    return unknown(f"no source counts refused requests: give {TELL_LENGTHS}, or scrape http_requests_total")


def _cut_share(evidence: Evidence, limit: int | None) -> Fact:
    log = evidence.log
    if log is not None and log.served.n and log.tells_cuts:
        cut = log.cut.n if limit is None else log.cut.above(limit - 1)
        share = cut / log.served.n
        if limit is None and cut:
            return measured(
                None, low=0.0, high=share, n=log.served.n, source="finish_reason length; the limit is unknown"
            )
        return measured(share, n=log.served.n, source=f"{log.source}: finish_reason length at the limit")
    agents = believed_agents(evidence)
    if agents is not None:
        return _cut_as_counted(agents, limit)
    pairs = [(e.windows.total("finished"), e.windows.total("finished_length")) for e in evidence.engines]
    told = [(every, cut) for every, cut in pairs if every is not None and cut is not None]
    finished = sum(every for every, _ in told)
    if finished <= 0:
        return unknown(f"no finished requests seen: give {TELL_LENGTHS}, or engine metrics")
    most = min(sum(cut for _, cut in told) / finished, 1.0)
    if most == 0:
        return measured(0.0, n=round(finished), source="request_success_total: none finished for length")
    story = "request_success_total: the client's max_tokens and max_model_len are not told apart"
    return measured(None, low=0.0, high=most, n=round(finished), source=story)


def _cut_as_counted(agents: ExportedLengths, limit: int | None) -> Fact:
    """Of the answers that were cut, at most those in buckets that reach the limit were cut by it, not by max_tokens.

    Worked: 500 of 10,000 cut, and 3 of all in the bucket up to a limit of 8,192 or above: between 0 and 0.03 %.
    """
    total, cut = agents.histograms["total"], agents.outcomes["cut"]
    reaching = float(total.counts[np.searchsorted(total.edges, limit or 0) :].sum())
    story = f"{agents.source}: finish_reason length, in requests that may have reached the limit"
    most = min(cut, reaching) / total.n
    return measured(0.0 if most == 0 else None, low=0.0, high=most, n=round(total.n), source=story)


def _coverage(evidence: Evidence) -> Fact:
    prompt, _ = lengths.engine_marginals(evidence)
    agents = believed_agents(evidence)
    if agents is not None:
        name, served = "the host agents", agents.histograms["total"].n
    elif evidence.log is not None and evidence.log.served.n:
        name, served = "the log", float(evidence.log.served.n)
    else:
        return unknown(f"no requests with token counts: give {TELL_LENGTHS}")
    if prompt is None:
        return unknown(f"no engine metrics to compare {name} with (--prometheus)")
    share = served / prompt.n
    if share > MOST_COVERAGE:
        story = f"{name} saw {share:.1f}x the requests that the engines finished"
        return unknown(f"{story}: they do not cover the same time or the same replicas, so its gaps cannot be told")
    return computed(
        min(share, 1.0), n=round(prompt.n), source=f"requests with usage that {name} saw / finished by the engines"
    )


def _observed_days(evidence: Evidence) -> Fact:
    """In begun hours: from its first request to its last a window of 7 days is never quite 7 days."""
    agents = believed_agents(evidence)
    if agents is not None:
        return measured(agents.span_seconds / DAY, source=agents.source)
    if evidence.log is None or evidence.log.last_seconds <= evidence.log.first_seconds:
        return unknown(f"no requests with token counts: give {TELL_LENGTHS}")
    hours = math.ceil((evidence.log.last_seconds - evidence.log.first_seconds) / HOUR)
    return measured(hours * HOUR / DAY, source=evidence.log.source)
