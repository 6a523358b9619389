"""Whether first tokens are late for waiting or for their own prompts: only a wait gets shorter with more replicas.

Who waits at most w and gets the first token after T + w or later would be late without any wait. So at least
P(ttft > T + w) - P(wait > w) are late by themselves, whatever w is, and the largest of these counts. Worked: 6 s are
promised, 16.4 % take longer than 9 s, and 13.1 % wait longer than 3 s: at least 3.3 % would be late on any number of
replicas, so at most 96.7 % can meet it.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.numbers import seconds

from .latency import LEAST_REQUESTS, merged


def attainment_unqueued(evidence: Evidence, known: Mapping[str, Fact]) -> Fact:
    """Share of requests whose first token could be in time if nobody waited: between what is now and at most."""
    queue, first, attained = merged(evidence, "queue"), merged(evidence, "ttft"), known["slo_attainment_ttft"]
    target = evidence.slo.ttft_seconds
    if target is None or attained.ceiling is None or queue is None or first is None:
        return unknown("needs a TTFT objective, and the engines' histograms of first tokens and queue times")
    if min(queue.n, first.n) < LEAST_REQUESTS:
        return unknown(f"fewer than {LEAST_REQUESTS} first tokens were counted")
    late, wait = max(
        ((queue.share_within(wait)[0] - first.share_within(target + wait)[1], wait) for wait in queue.edges.tolist()),
        default=(0.0, 0.0),
    )
    if late <= 0:
        return computed(None, low=attained.floor, high=1.0, n=round(queue.n), source="whoever is late may have waited")
    story = f"{late:.1%} at least take longer than {seconds(target + wait)} without waiting longer than {seconds(wait)}"
    return computed(None, low=attained.floor, high=1 - late, n=round(queue.n), source=story)
