"""Latencies of the present epoch with the load they were measured under: a bounded, repeatable sample."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

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
        duration = known_durations(batch)
        arrival = batch.completed - duration
        answered = (batch.outcome == SERVED) | (batch.outcome == WITHOUT_USAGE)
        use = answered & (duration > 0) & (arrival >= origins.latency_since(batch.origin))
        batch, arrival, duration = batch.where(use), arrival[use], duration[use]
        replica = origins.upstream_of(batch.origin)
        timed = (batch.ttft >= 0) & (batch.ttft <= duration)
        # An answer in one piece was decoding for most of its stay; to leave it out would understate the load.
        first_token = arrival + np.where(timed, batch.ttft, 0.0)
        self._in_flight.add(replica, arrival, batch.completed)
        self._decoding.add(replica, first_token, batch.completed)
        told = timed & (batch.outcome == SERVED)
        rows = np.empty(int(told.sum()), _SAMPLED)
        rows["start"], rows["end"] = first_token[told], batch.completed[told]
        rows["replica"], rows["ttft"], rows["output"] = replica[told], batch.ttft[told], batch.output[told]
        self._keep(rows, origins.deployment_of(batch.origin[told]))

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
        rows = known.rows()
        rows = rows[np.argsort(rows["replica"], kind="stable")]
        concurrency, in_flight = np.empty(rows.size), np.empty(rows.size)
        replicas, starts = np.unique(rows["replica"], return_index=True)
        for replica, place in zip(replicas.tolist(), np.split(np.arange(rows.size), starts[1:]), strict=True):
            span = rows["start"][place], rows["end"][place]
            concurrency[place] = self._decoding.mean(replica, *span)
            in_flight[place] = self._in_flight.mean(replica, *span)
        gaps = rows["output"] - 1
        tpot = np.where(gaps > 0, _bins_above((rows["end"] - rows["start"]) / np.maximum(gaps, 1)), _NO_BIN)
        return _distinct(_bins_above(rows["ttft"]), tpot, _at_least_itself(concurrency), _at_least_itself(in_flight))


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


def _distinct(ttft: Ints, tpot: Ints, concurrency: Ints, in_flight: Ints) -> LatencySample:
    key = (ttft - _NO_BIN) << 50 | (tpot - _NO_BIN) << 38 | concurrency << 19 | in_flight
    distinct, counts = np.unique(key, return_counts=True)
    return LatencySample(
        ttft_seconds=_bin_ends((distinct >> 50) + _NO_BIN),
        tpot_seconds=_bin_ends((distinct >> 38 & 0xFFF) + _NO_BIN),
        concurrency=distinct >> 19 & 0x7FFFF,
        in_flight=distinct & 0x7FFFF,
        counts=counts.astype(np.int64),
    )
