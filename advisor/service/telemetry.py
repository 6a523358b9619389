"""What the daemon says of itself: its metrics, computed from one view of its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from advisor import __version__
from advisor.domain.advice import Advice
from advisor.domain.evidence import Evidence
from advisor.domain.report import DeploymentReport, Report
from advisor.outlets.plain import plain

CURRENT_FLAGS = ("max_model_len", "max_num_seqs", "max_num_batched_tokens")
_LONGEST_LABEL = 200
OPEN = frozenset({"open", "queued"})


@dataclass(frozen=True, slots=True)
class View:
    """What the metrics are computed from.

    last_success: UNIX seconds by stage. runs: by (stage, outcome) since the start. seconds: of the last run by stage.
    delivery_failed: by (outlet, permanent), messages that could not be delivered.
    """

    report: Report | None = None
    last_success: Mapping[str, float] = field(default_factory=dict)
    runs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    delivery_failed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    config_good: bool = True


class Metrics:
    """The text of /metrics. `view` is asked at every scrape, so that a series of what is gone is gone as well."""

    def __init__(self, view: Callable[[], View]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Advisor(view))
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """Prometheus' text format 0.0.4."""
        return generate_latest(self._registry)


class _Advisor(Collector):
    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view

    def collect(self) -> Iterator[Metric]:
        view = self._view()
        yield _gauge("advisor_build_info", "Version of the advisor.", ["version"], [([__version__], 1)])
        yield _gauge(
            "advisor_config_good", "0 while the file is wrong and the old one in force.", [], [([], view.config_good)]
        )
        yield _by_stage("advisor_last_success_timestamp_seconds", "When a stage last succeeded.", view.last_success)
        yield _by_stage("advisor_run_seconds", "How long the last run of a stage took.", view.seconds)
        yield _runs(view.runs)
        failed = [(list(key), count) for key, count in view.delivery_failed.items()]
        yield _gauge("advisor_delivery_failed", "Messages that are not delivered.", ["outlet", "permanent"], failed)
        if view.report is not None:
            yield from _of_report(view.report)


def _by_stage(name: str, meaning: str, seconds: Mapping[str, float]) -> Metric:
    return _gauge(name, meaning, ["stage"], [([stage], value) for stage, value in seconds.items()])


def _runs(runs: Mapping[tuple[str, str], int]) -> Metric:
    family = CounterMetricFamily("advisor_runs", "Runs of a stage by outcome.", labels=["stage", "outcome"])
    for labels, count in runs.items():
        family.add_metric(labels, count)
    return family


def _of_report(report: Report) -> Iterator[Metric]:
    up = [([source.name], source.status != "failed") for source in report.sources]
    yield _gauge("advisor_source_up", "Whether a source could be read.", ["source"], up)
    fleet = [(deployment.evidence.name, deployment) for deployment in report.deployments]
    status = [([name, one.judgement.status], 1) for name, one in fleet]
    yield _gauge("advisor_deployment_status", "1 for the status of a deployment.", ["deployment", "status"], status)
    current = [([name, knob], value) for name, one in fleet for knob, value in _current(one.evidence)]
    yield _gauge("advisor_current_value", "The running value.", ["deployment", "knob"], current)
    advised = [([name, knob], value) for name, one in fleet for knob, value in _advised(one).items()]
    meaning = "The value that is advised; absent without advice."
    yield _gauge("advisor_recommended_value", meaning, ["deployment", "knob"], advised)
    pieces = Counter((name, a.rule, a.severity) for name, one in fleet for a in _open(one))
    counted = [(list(key), count) for key, count in pieces.items()]
    labels = ["deployment", "rule", "severity"]
    yield _gauge("advisor_advice_open", "Pieces of advice, queued ones included.", labels, counted)


def _open(deployment: DeploymentReport) -> list[Advice]:
    return [advice for advice in deployment.judgement.advice if advice.state in OPEN]


def _current(evidence: Evidence) -> Iterator[tuple[str, float]]:
    for knob in CURRENT_FLAGS:
        value = evidence.count_flag(knob)
        if value is not None:
            yield knob, value
    if evidence.replicas is not None:
        yield "replicas", evidence.replicas


def _advised(deployment: DeploymentReport) -> dict[str, float]:
    """By knob; the piece to act on comes first and wins."""
    values: dict[str, float] = {}
    for advice in _open(deployment):
        if advice.knob is not None and advice.recommended is not None:
            values.setdefault(advice.knob, advice.recommended)
    return values


def _gauge(name: str, meaning: str, labels: list[str], values: Iterable[tuple[list[str], float]]) -> Metric:
    """A family. Names of models and files are hostile: bounded, printable, and each series once."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    series = {tuple(plain(label)[:_LONGEST_LABEL] for label in labelled): float(v) for labelled, v in values}
    for labelled, value in series.items():
        family.add_metric(labelled, value)
    return family
