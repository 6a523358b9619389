"""Whose a logged request is: which deployment and epoch a model's name and a replica's address belong to."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from advisor.domain.evidence import Window
from advisor.sources.metrics_reading import DeploymentMetrics
from advisor.sources.request_log import LogOptions, LogReading, read_request_logs

UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class Owners:
    """`instances`: replica to (deployment, start of its epoch, UNIX seconds); `models`: model to deployment.

    The epoch of a replica that runs apart from its deployment never starts: its latencies are of other settings.

    only_known: metrics tell which deployments there are, so that other models are somebody else's. sure: what tells the
    deployments could be read; else lines that are read only once must wait, lest they go to the wrong deployment.
    """

    instances: Mapping[str, tuple[str, float]]
    models: Mapping[str, str]
    only_known: bool
    sure: bool
    since: float

    @classmethod
    def of(
        cls,
        metrics: Mapping[str, DeploymentMetrics],
        others: Mapping[str, object],
        *,
        sure: bool,
        since: float,
        apart: Collection[str] = (),
    ) -> Owners:
        """From the deployments that metrics show, by name, the names of others, and the replicas that run apart."""
        return cls(
            instances={
                e.instance: (name, math.inf if e.instance in apart else e.epoch_start)
                for name, m in metrics.items()
                for e in m.engines
            },
            models={m.labels.get("model_name", name): name for name, m in metrics.items()} | {n: n for n in others},
            only_known=bool(metrics),
            sure=sure,
            since=since,
        )

    def resolve(self, model: str, upstream: str) -> str | None:
        """The deployment, or None for somebody else's. Lines without a model's name are of the only deployment."""
        if upstream in self.instances:
            return self.instances[upstream][0]
        if not model and len(set(self.models.values())) == 1:
            return next(iter(self.models.values()))
        return self.models.get(model, None if self.only_known else model or UNNAMED)

    def latency_since(self, upstream: str) -> float:
        """UNIX seconds since which the latencies of a replica are of its present epoch."""
        if upstream in self.instances:
            return self.instances[upstream][1]
        return max((start for _, start in self.instances.values() if start < math.inf), default=self.since)

    def epoch_of(self, deployment: str) -> float:
        """UNIX seconds since which no replica that is sized has changed; `since` where metrics do not tell."""
        starts = [start for name, start in self.instances.values() if name == deployment and start < math.inf]
        return max(starts, default=self.since)


RequestLogs = Callable[[LogOptions, Window, Owners], LogReading]


def read_from_files(options: LogOptions, window: Window, owners: Owners) -> LogReading:
    """Request logs read anew from their files; the daemon has another way, which remembers."""
    return read_request_logs(options, window, owners.resolve, owners.latency_since)
