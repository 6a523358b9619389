"""Batches of requests of many deployments to one log each."""

from __future__ import annotations

from collections import Counter

import numpy as np

from advisor.domain.evidence import RequestLog, Window

from .batch import Batch
from .clients import Clients
from .latency import Latencies
from .origins import Origins
from .tally import Tally


class DeploymentLogs:
    """Adds up batches by deployment. What nobody claims is left out."""

    def __init__(self, window: Window, origins: Origins) -> None:
        self._window, self._origins = window, origins
        self._latencies = Latencies(window)
        self._tallies: dict[int, Tally] = {}

    def add(self, batch: Batch, clients: Clients) -> None:
        """Add requests whose clients are numbered by `clients`, always the same."""
        deployment = self._origins.deployment_of(batch.origin)
        self._latencies.add(batch, self._origins)
        for number in np.flatnonzero(np.bincount(deployment[deployment >= 0])).tolist():
            part = batch.where(deployment == number)
            self._tallies.setdefault(number, Tally(clients)).add(part, self._window)

    def told(self, replaced_failures: Counter[int], source: str) -> dict[str, RequestLog]:
        """The sums by deployment. `replaced_failures`: failed attempts that a later line made good, by its number."""
        return {
            self._origins.deployments[number]: tally.log(
                replaced_failures=replaced_failures[number],
                latency=self._latencies.sample(number),
                source=source,
            )
            for number, tally in sorted(self._tallies.items())
        }
