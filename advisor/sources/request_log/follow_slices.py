"""What new lines add to each hour of each deployment."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from advisor.domain.evidence import LatencySample, RequestLog, Window
from advisor.domain.histogram import JointCounts, TokenCounts

from .batch import FAILED, Batch
from .clients import Clients
from .origins import Origins
from .tally import MAX_DURATION_SECONDS, Tally

HOUR_SECONDS = 3600
MAX_SLICES = 20_000

Slice = tuple[str, int]
"""A deployment, and the UNIX seconds at which an hour began."""


class HourSlices:
    """Adds up batches by deployment and by the hour in which requests completed."""

    def __init__(self, origins: Origins, clients: Clients) -> None:
        self._origins, self._clients = origins, clients
        self._tallies: dict[tuple[int, int], Tally] = {}
        self._failures: Counter[tuple[int, int]] = Counter()

    def __len__(self) -> int:
        return len(self._tallies)

    def add(self, batch: Batch) -> None:
        """Add requests; those of nobody are left out."""
        deployment = self._origins.deployment_of(batch.origin)
        hour = (batch.completed // HOUR_SECONDS).astype(np.int64)
        key = np.where(deployment < 0, -1, deployment << 32 | hour)
        for code, part in batch.groups(key):
            if code >= 0:
                number, start = code >> 32, (code & 0xFFFFFFFF) * HOUR_SECONDS
                # Other hours' slices have the arrivals that a slice lacks; their sum is what counts.
                window = Window(start - MAX_DURATION_SECONDS, start + HOUR_SECONDS)
                self._tallies.setdefault((number, start), Tally(self._clients)).add(part, window)
                self._failures[number, start] += int((part.outcome == FAILED).sum())

    def logs(
        self, replaced: Counter[int], latencies: Mapping[Slice, LatencySample], source: str
    ) -> dict[Slice, RequestLog]:
        """The sums. `replaced`: failed attempts by deployment number that a later line made good."""
        names, left = self._origins.deployments, Counter(replaced)
        out: dict[Slice, RequestLog] = {}
        for (number, start), tally in self._tallies.items():
            made_good = min(left[number], self._failures[number, start])
            left[number] -= made_good
            key = names[number], start
            out[key] = tally.log(replaced_failures=made_good, latency=latencies.get(key), source=source)
        return out | {key: _only_latency(sample, source) for key, sample in latencies.items() if key not in out}


def _only_latency(sample: LatencySample, source: str) -> RequestLog:
    """Latencies of requests that were counted in an earlier reading, and so add nothing else."""
    none = TokenCounts.of([])
    return RequestLog(
        served=JointCounts.of([], []),
        declared=none,
        refused_needs=none,
        cut=none,
        refused=0,
        failed=0,
        without_usage=0,
        first_seconds=math.inf,
        last_seconds=-math.inf,
        arrivals={},
        latency=sample,
        source=source,
    )
