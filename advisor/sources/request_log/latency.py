"""Latencies of the present epoch with the load they were measured under: a bounded, repeatable sample."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from advisor.domain.cursor import AnsweredSpans
from advisor.domain.evidence import LatencySample, Window
from advisor.domain.histogram import Floats, Ints

from .batch import SERVED, WITHOUT_USAGE, Batch
from .concurrency import SpanGrid
from .origins import Origins
from .tally import known_durations

MAX_SAMPLED = 1 << 17
_BIN = math.log(1.01)
_LEAST_SECONDS = 1e-6
_NO_BIN = -2048

_SAMPLED = np.dtype(
    [("start", "f8"), ("end", "f8"), ("ttft", "f4"), ("output", "i4"), ("replica", "i4"), ("priority", "u4")]
)
Sampled = npt.NDArray[np.void]


class Latencies:
    """Collects latencies of all deployments, at most 131,072 requests; the load on each replica counts all of them."""

    def __init__(self, window: Window, max_sampled: int = MAX_SAMPLED) -> None:
        self._decoding, self._in_flight = SpanGrid(window), SpanGrid(window)
        self._max_sampled = max_sampled
        self._samples: dict[int, _Sample] = {}

    def add(self, batch: Batch, origins: Origins) -> None:
        """Add answered requests that arrived in the present epoch of a replica that the log names."""
        spans = answered_spans(batch, origins)
        self._in_flight.add(spans.replica, spans.arrival, spans.completed)
        self._decoding.add(spans.replica, spans.first_token, spans.completed)
        told = spans.where(spans.told)
        self._keep(_sampled(told), told.deployment)

    def _keep(self, rows: Sampled, deployment: Ints) -> None:
        for number in np.flatnonzero(np.bincount(deployment)).tolist():
            self._samples.setdefault(number, _Sample()).add(rows[deployment == number])
        while sum(sample.size for sample in self._samples.values()) > self._max_sampled:
            max(self._samples.values(), key=lambda sample: sample.size).halve()

    def sample(self, deployment: int) -> LatencySample | None:
        """The latencies of one deployment, or None where there are none."""
        known = self._samples.get(deployment)
        if known is None or not known.size:
            return None
        return sample_of(_keys(known.rows(), self._decoding, self._in_flight))


def answered_spans(batch: Batch, origins: Origins) -> AnsweredSpans:
    """When the answered requests of present epochs arrived, began to decode and ended, on which replica."""
    duration = known_durations(batch)
    arrival = batch.completed - duration
    answered = (batch.outcome == SERVED) | (batch.outcome == WITHOUT_USAGE)
    use = answered & (duration > 0) & (arrival >= origins.latency_since(batch.origin))
    batch, arrival, duration = batch.where(use), arrival[use], duration[use]
    timed = (batch.ttft >= 0) & (batch.ttft <= duration)
    return AnsweredSpans(
        deployment=origins.deployment_of(batch.origin),
        replica=origins.upstream_of(batch.origin),
        arrival=arrival,
        # An answer in one piece was decoding for most of its stay; to leave it out would understate the load.
        first_token=arrival + np.where(timed, batch.ttft, 0.0),
        completed=batch.completed,
        ttft_seconds=batch.ttft,
        output_tokens=batch.output,
        told=timed & (batch.outcome == SERVED),
    )


def keys_under_load(told: AnsweredSpans, decoding: SpanGrid, in_flight: SpanGrid) -> Ints:
    """For each request whose times are told, its latencies and the load that the grids hold, as one number."""
    return _keys(_sampled(told), decoding, in_flight)


def _sampled(told: AnsweredSpans) -> Sampled:
    rows = np.empty(told.size, _SAMPLED)
    rows["start"], rows["end"], rows["ttft"] = told.first_token, told.completed, told.ttft_seconds
    rows["output"], rows["replica"] = told.output_tokens, told.replica
    return rows


def _keys(rows: Sampled, decoding: SpanGrid, in_flight: SpanGrid) -> Ints:
    order = np.argsort(rows["replica"], kind="stable")
    decoded_beside, present = np.empty(rows.size), np.empty(rows.size)
    replicas, starts = np.unique(rows["replica"][order], return_index=True)
    for replica, place in zip(replicas.tolist(), np.split(order, starts[1:]), strict=True):
        span = rows["start"][place], rows["end"][place]
        decoded_beside[place] = decoding.mean(replica, *span)
        present[place] = in_flight.mean(replica, *span)
    gaps = rows["output"] - 1
    tpot = np.where(gaps > 0, _bins_above((rows["end"] - rows["start"]) / np.maximum(gaps, 1)), _NO_BIN)
    ttft = _bins_above(rows["ttft"])
    load = _at_least_itself(decoded_beside) << 19 | _at_least_itself(present)
    return (ttft - _NO_BIN) << 50 | (tpot - _NO_BIN) << 38 | load


class _Sample:
    """Rows of one deployment, thinned by halves: which rows stay depends on their order in the log alone.

    Multiples of the golden ratio decide, not every second row: a balancer that takes replicas in turn has a period, and
    a stride would keep one replica's rows only.
    """

    def __init__(self) -> None:
        self._parts: list[Sampled] = []
        self._seen, self._halvings = 0, 0
        self.size = 0

    def add(self, rows: Sampled) -> None:
        place = np.arange(self._seen, self._seen + rows.size, dtype=np.uint64)
        rows["priority"] = (place * np.uint64(2_654_435_769)) & np.uint64(0xFFFFFFFF)
        self._seen += rows.size
        self._replace([*self._parts, self._kept(rows)])

    def halve(self) -> None:
        self._halvings += 1
        self._replace([self._kept(self.rows())])

    def rows(self) -> Sampled:
        return np.concatenate(self._parts)

    def _kept(self, rows: Sampled) -> Sampled:
        return rows[rows["priority"] < (1 << 32 >> self._halvings)]

    def _replace(self, parts: list[Sampled]) -> None:
        self._parts = parts
        self.size = sum(part.size for part in parts)


def _bins_above(seconds: Floats) -> Ints:
    """Numbers of 1 % bins, rounded up so that a share within a target is never overstated; bin k ends at 1.01**k s."""
    return np.ceil(np.log(np.maximum(seconds, _LEAST_SECONDS)) / _BIN - 1e-9).astype(np.int64)


def _bin_ends(bins: Ints) -> Floats:
    return np.where(bins == _NO_BIN, np.nan, np.exp(bins * _BIN))


def _at_least_itself(load: Floats) -> Ints:
    return np.clip(np.rint(load), 1, (1 << 19) - 1).astype(np.int64)


def sample_of(keys: Ints) -> LatencySample:
    """The distinct ones among the keys of requests."""
    distinct, counts = np.unique(keys, return_counts=True)
    return LatencySample(
        ttft_seconds=_bin_ends((distinct >> 50) + _NO_BIN),
        tpot_seconds=_bin_ends((distinct >> 38 & 0xFFF) + _NO_BIN),
        concurrency=distinct >> 19 & 0x7FFFF,
        in_flight=distinct & 0x7FFFF,
        counts=counts.astype(np.int64),
    )
