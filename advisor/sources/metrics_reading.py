"""What reading engine metrics yields, whoever read them, and what it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from advisor.domain.evidence import Disagreement, EngineSeries, Flag, HttpOutcomes, ReportedPool, Window
from advisor.domain.report import SourceState

from .metrics_series import LOOKBACK_SECONDS, RawSeries

Target = tuple[str, ...]
"""What names one scraped process: job, instance and further identity labels that all its series carry."""


@dataclass(frozen=True, slots=True)
class DeploymentMetrics:
    """One deployment as its engines' metrics show it.

    labels: the identity labels. version_hint: an exact version (`0.32.0`) or the releases that expose such metrics
    (`>=0.24`). instances: those alive at the newest data. http: over everything read, all epochs. notes: for people.
    """

    labels: Mapping[str, str]
    engines: tuple[EngineSeries, ...]
    instances: tuple[str, ...]
    version_hint: str | None = None
    http: HttpOutcomes | None = None
    reported_pool: ReportedPool | None = None
    flags: Mapping[str, Flag] = field(default_factory=dict)
    disagreements: tuple[Disagreement, ...] = ()
    notes: tuple[str, ...] = ()
    engine_kind: str = "vllm"
    front_end: bool = False

    @property
    def replicas(self) -> int:
        """Instances alive at the newest data; 0 where they are front ends, which do not tell how many engines serve."""
        return 0 if self.front_end else len(self.instances)


@dataclass(frozen=True, slots=True)
class MetricsReading:
    """Everything one source of engine metrics gave, and what it cost."""

    deployments: tuple[DeploymentMetrics, ...]
    state: SourceState
    queries: int
    samples: int


@dataclass(frozen=True, slots=True)
class RawMetrics:
    """Series as read, by what they are for. `present`: which marker series each process exposes."""

    gauges: Sequence[RawSeries]
    windows: Sequence[RawSeries]
    whole: Sequence[RawSeries]
    configs: Sequence[RawSeries]
    starts: Sequence[RawSeries]
    http: Sequence[RawSeries]
    present: Mapping[Target, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Scope:
    """How series belong together, and the time read. `lifetime`: one scrape that counts from the process start."""

    identity_labels: tuple[str, ...]
    window: Window
    alive_seconds: float = LOOKBACK_SECONDS
    lifetime: bool = False

    @property
    def target_labels(self) -> tuple[str, ...]:
        """The labels that name a process; `model_name` is no target label, since config series lack it."""
        others = (label for label in self.identity_labels if label != "model_name")
        return tuple(dict.fromkeys(("job", "instance", *others)))

    def identity(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Which deployment a series belongs to."""
        return tuple(labels.get(label, "") for label in self.identity_labels)

    def target(self, labels: Mapping[str, str]) -> Target:
        """Which process a series belongs to."""
        return tuple(labels.get(label, "") for label in self.target_labels)
