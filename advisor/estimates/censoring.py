"""What the sample of lengths leaves out: refused and cut requests, rows without usage, a span that is too short."""

from __future__ import annotations

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, measured, unknown

from . import lengths

DAY = 86400.0
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
    if log is not None and log.requests:
        return measured(log.refused / log.requests, n=log.requests, source=log.source)
    if http is not None and (answers := http.ok + http.client_errors + http.server_errors) > 0:
        n = round(answers)
        if http.client_errors == 0:
            return measured(0.0, n=n, source="http_requests_total: no 4xx answer")
        most = http.client_errors / answers
        return measured(
            None, low=0.0, high=most, n=n, source="http_requests_total: 4xx mixes refusals with other errors"
        )
    return unknown("no source counts refused requests: give a request log (--logs) or scrape http_requests_total")


def _cut_share(evidence: Evidence, limit: int | None) -> Fact:
    log = evidence.log
    if log is not None and log.served.n:
        cut = log.cut.n if limit is None else log.cut.above(limit - 1)
        share = cut / log.served.n
        if limit is None and cut:
            return measured(
                None, low=0.0, high=share, n=log.served.n, source="finish_reason length; the limit is unknown"
            )
        return measured(share, n=log.served.n, source=f"{log.source}: finish_reason length at the limit")
    pairs = [(e.windows.total("finished"), e.windows.total("finished_length")) for e in evidence.engines]
    told = [(every, cut) for every, cut in pairs if every is not None and cut is not None]
    finished = sum(every for every, _ in told)
    if finished <= 0:
        return unknown("no finished requests seen: give a request log (--logs) or engine metrics")
    most = min(sum(cut for _, cut in told) / finished, 1.0)
    if most == 0:
        return measured(0.0, n=round(finished), source="request_success_total: none finished for length")
    story = "request_success_total: the client's max_tokens and max_model_len are not told apart"
    return measured(None, low=0.0, high=most, n=round(finished), source=story)


def _coverage(evidence: Evidence) -> Fact:
    prompt, _ = lengths.marginals(evidence)
    if evidence.log is None or not evidence.log.served.n:
        return unknown("no request log with token counts (--logs)")
    if prompt is None:
        return unknown("no engine metrics to compare the log with (--prometheus)")
    share = evidence.log.served.n / prompt.n
    if share > MOST_COVERAGE:
        story = f"the log has {share:.1f}x the requests that the engines finished"
        return unknown(f"{story}: they do not cover the same time or the same replicas, so its gaps cannot be told")
    return computed(
        min(share, 1.0), n=round(prompt.n), source="requests with usage in the log / finished by the engines"
    )


def _observed_days(evidence: Evidence) -> Fact:
    if evidence.log is None or evidence.log.last_seconds <= evidence.log.first_seconds:
        return unknown("no request log (--logs)")
    days = (evidence.log.last_seconds - evidence.log.first_seconds) / DAY
    return measured(days, source=evidence.log.source)
