"""Latencies of a log that is read in pieces: told once the requests that ran beside them are logged too.

A request is logged when it ends. At the end of a reading many are running that no line shows yet, and the load on the
requests beside them would be understated; so the last ten minutes wait for the next reading. What stays is a bias for
requests that ran longer than that: of their company, what ended much later or earlier is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from advisor.domain.cursor import AnsweredSpans, Unsettled
from advisor.domain.evidence import LatencySample, Window
from advisor.domain.histogram import Ints

from .batch import Batch, Mask
from .concurrency import SpanGrid
from .follow_slices import HOUR_SECONDS, Slice
from .latency import answered_spans, keys_under_load, sample_of
from .origins import Origins

HOLD_SECONDS = 600.0
MAX_LEFT = 1 << 19


class FollowedLatencies:
    """Answered requests of this reading and those that an earlier one left."""

    def __init__(self, left: Unsettled | None, origins: Origins) -> None:
        self._origins = origins
        self._parts: list[AnsweredSpans] = []
        self._untold: list[Mask] = []
        self._settled_until = left.settled_until if left else -np.inf
        if left:
            deployments, replicas = origins.remember(left.deployments, left.replicas)
            spans = left.spans
            self._untold.append(spans.completed >= left.settled_until)
            self._parts.append(
                replace(spans, deployment=deployments[spans.deployment], replica=replicas[spans.replica])
            )

    def add(self, batch: Batch) -> None:
        """Add requests. One that comes late is told late, though some of its company may be gone."""
        self._parts.append(answered_spans(batch, self._origins))
        self._untold.append(np.ones(self._parts[-1].size, np.bool_))

    def settle(self, until: float) -> tuple[dict[Slice, LatencySample], Unsettled | None]:
        """Latencies of what completed before `until` and was not told before, by hour; and what is left.

        Of more than 524,288 requests that would be left, the older ones are told at once.
        """
        if not self._parts:
            return {}, None
        spans, untold = AnsweredSpans.joined(self._parts), np.concatenate(self._untold)
        until = max(until, self._settled_until, _newest(spans, MAX_LEFT // 2))
        told = spans.where(untold & spans.told & (spans.completed < until))
        kept = spans.where(spans.completed >= max(until - HOLD_SECONDS, _newest(spans, MAX_LEFT)))
        return self._by_hour(spans, told), self._left(kept, until)

    def _by_hour(self, spans: AnsweredSpans, told: AnsweredSpans) -> dict[Slice, LatencySample]:
        if not told.size:
            return {}
        window = Window(float(spans.arrival.min()), float(spans.completed.max()))
        decoding, in_flight = SpanGrid(window), SpanGrid(window)
        decoding.add(spans.replica, spans.first_token, spans.completed)
        in_flight.add(spans.replica, spans.arrival, spans.completed)
        keys = keys_under_load(told, decoding, in_flight)
        hour = told.deployment << 32 | (told.completed // HOUR_SECONDS).astype(np.int64)
        order = np.argsort(hour, kind="stable")
        hours, starts = np.unique(hour[order], return_index=True)
        return {
            (self._origins.deployments[code >> 32], (code & 0xFFFFFFFF) * HOUR_SECONDS): sample_of(keys[place])
            for code, place in zip(hours.tolist(), np.split(order, starts[1:]), strict=True)
        }

    def _left(self, kept: AnsweredSpans, until: float) -> Unsettled | None:
        if not kept.size:
            return None
        deployments, deployment = _named(self._origins.deployments, kept.deployment)
        replicas, replica = _named(self._origins.upstreams, kept.replica)
        return Unsettled(deployments, replicas, replace(kept, deployment=deployment, replica=replica), until)


def _newest(spans: AnsweredSpans, most: int) -> float:
    """When the oldest of the `most` newest requests completed; -inf where there are not more."""
    if spans.size <= most:
        return -np.inf
    return float(np.partition(spans.completed, spans.size - most)[spans.size - most])


def _named(names: Sequence[str], numbers: Ints) -> tuple[tuple[str, ...], Ints]:
    used, place = np.unique(numbers, return_inverse=True)
    return tuple(names[number] for number in used.tolist()), place.astype(np.int64)
