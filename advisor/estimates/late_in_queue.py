"""Whether first tokens are late for waiting or for their own prompts: only a wait gets shorter with more replicas.

Of those that miss the target for the first token at most those waited for it that were not scheduled for half of that
time; the others are late by themselves. Worked: 6 s are promised, 16.4 % miss them, and 13.1 % wait longer than 3 s: at
least 3.3 % would be late on any number of replicas, so at most 96.7 % can meet it.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown

from .latency import LEAST_REQUESTS, merged

PART = 0.5


def attainment_unqueued(evidence: Evidence, known: Mapping[str, Fact]) -> Fact:
    """Share of requests whose first token could be in time if nobody waited: between what is now and at most."""
    queue, target, attained = merged(evidence, "queue"), evidence.slo.ttft_seconds, known["slo_attainment_ttft"]
    if target is None or attained.ceiling is None or queue is None or queue.n < LEAST_REQUESTS:
        return unknown("needs a TTFT objective, latencies, and the engines' histogram of queue times")
    missed, waited = 1 - attained.ceiling, 1 - queue.share_within(PART * target)[0]
    story = f"{missed:.1%} are late, and {waited:.1%} at most wait longer than {PART * target:g} s"
    return computed(None, low=attained.floor, high=1 - max(missed - waited, 0.0), n=round(queue.n), source=story)
