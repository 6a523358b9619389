"""Whether first tokens are late for waiting or for their own prompts: only a wait gets shorter with more replicas.

Who waits at most w and gets the first token after T + w or later would be late without any wait. So at least
P(ttft > T + w) - P(wait > w) are late by themselves, whatever w is. And so is a prompt that alone takes longer to
compute than T, at what a prompt token costs in full steps with a fifth off for the error of that. The larger of both
shares counts. Worked: 6 s are promised, 16.4 % take longer than 9 s, and 13.1 % wait longer than 3 s: at least 3.3 %
would be late on any number of replicas, so at most 96.7 % can meet it. At 0.1 ms a token, 80 us surely, prompts of over
75,000 tokens are late alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.domain.evidence import EngineSeries, Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.histogram import Buckets
from advisor.domain.hours import HOUR_SECONDS
from advisor.domain.numbers import seconds

from .full_step import FullStep
from .latency import LEAST_REQUESTS, merged

SURELY = 0.8


def attainment_unqueued(evidence: Evidence, work: FullStep | str, known: Mapping[str, Fact]) -> Fact:
    """Share of requests whose first token could be in time if nobody waited: between what is now and at most."""
    target, attained = evidence.slo.ttft_seconds, known["slo_attainment_ttft"]
    if target is None or attained.ceiling is None:
        return unknown("needs a TTFT objective and latencies")
    by_wait, by_prompt = _by_waits(evidence, target), _by_prompts(evidence, work, target, known)
    told = [late for late in (by_wait, by_prompt) if late is not None]
    if not told:
        return unknown("needs the engines' histograms of first tokens and queue times, or of prompts and a step time")
    late = max(told)
    if late.share <= 0:
        return computed(None, low=attained.floor, high=1.0, n=late.requests, source="whoever is late may have waited")
    # What is in time today, by a sample of other requests, can be no less in time without a wait.
    most = max(1 - late.share, attained.floor or 0.0)
    return computed(None, low=attained.floor, high=most, n=late.requests, source=late.story)


@dataclass(frozen=True, order=True, slots=True)
class _Late:
    """Share of requests that would be late without any wait, of how many, and why."""

    share: float
    requests: int
    story: str


def _by_waits(evidence: Evidence, target: float) -> _Late | None:
    queue, first = merged(evidence, "queue"), merged(evidence, "ttft")
    if queue is None or first is None or min(queue.n, first.n) < LEAST_REQUESTS or not queue.edges.size:
        return None
    late, wait = max(
        (queue.share_within(wait)[0] - first.share_within(target + wait)[1], wait) for wait in queue.edges.tolist()
    )
    story = f"{late:.1%} at least take longer than {seconds(target + wait)} without waiting longer than {seconds(wait)}"
    return _Late(max(late, 0.0), round(queue.n), story)


def _by_prompts(evidence: Evidence, work: FullStep | str, target: float, known: Mapping[str, Fact]) -> _Late | None:
    prompts = Buckets.merge(part for e in evidence.engines if (part := _prompts_of_epoch(e)) is not None)
    if isinstance(work, str) or work.per_prompt_token <= 0 or prompts is None or prompts.n < LEAST_REQUESTS:
        return None
    computed_share = 1 - min(max(known["prefix_cache_hit_rate"].number or 0.0, 0.0), 1.0)
    longest = target / (work.per_prompt_token * SURELY * max(computed_share, 1e-9))
    late = 1 - prompts.share_within(longest)[1]
    story = f"{late:.1%} at least have prompts of over {longest:,.0f} tokens, which alone take {seconds(target)}"
    return _Late(late, round(prompts.n), story)


def _prompts_of_epoch(engine: EngineSeries) -> Buckets | None:
    """Prompt lengths of the present epoch, whose latencies are looked at; where hours are not told, of all time."""
    hours = engine.length_hours.get("prompt_tokens")
    if hours is None:
        return engine.lengths.get("prompt_tokens")
    return Buckets(hours.edges, hours.counts[hours.start >= engine.epoch_start - HOUR_SECONDS / 2].sum(axis=0))
