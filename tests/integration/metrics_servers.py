"""Servers of metrics by the name of their program, with half an hour of a deployment whose cap is pinned."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from advisor.domain.evidence import Window
from advisor.sources.metrics_reading import DeploymentMetrics, MetricsReading
from advisor.sources.prometheus import PrometheusOptions, read_prometheus
from tests import prometheus_server, victoria_metrics_server
from tests.conftest import absent
from tests.prometheus_server import PrometheusMissingError
from tests.recording.deployment import Recording, record
from tests.recording.situations import CAP_PINNED, RECORDED_AT

PROMETHEUS = ("prometheus", "prometheus-3")
VICTORIA_METRICS = ("victoria-metrics", "victoria-metrics-new")
HALF_AN_HOUR = replace(CAP_PINNED, model="acme/half-an-hour", seconds=1800)


def half_an_hour(folder: Path) -> Recording:
    """HALF_AN_HOUR; it ends at a time that is a multiple of no step."""
    return record(HALF_AN_HOUR, RECORDED_AT + 7, folder)


@contextlib.contextmanager
def served(program: str, metrics: Path, *flags: str) -> Iterator[str]:
    """The URL of a server with these metrics; without the program the test is skipped, in CI it fails."""
    serve = victoria_metrics_server.serve if program in VICTORIA_METRICS else prometheus_server.serve
    with contextlib.ExitStack() as running:
        try:
            url = running.enter_context(serve(metrics, *flags, program=program))
        except PrometheusMissingError as error:
            absent(str(error), program)
        yield url


def reworded(metrics: Path, target: Path, reword: Callable[[str], str]) -> Path:
    """Metrics as text with every line changed."""
    target.write_text("".join(map(reword, metrics.read_text().splitlines(keepends=True))))
    return target


def reading(url: str, recording: Recording, **settings: object) -> MetricsReading:
    """What is read of the half hour, of a window that is wider at both ends."""
    window = Window(recording.start - 3600, recording.end + 1800)
    return read_prometheus(PrometheusOptions.model_validate({"url": url, **settings}), window)


def counted(deployment: DeploymentMetrics) -> list[dict[str, float | None]]:
    """Requests and tokens of each engine, to compare what should be equal to the last request."""
    return [
        {
            **{name: engine.windows.total(name) for name in ("finished", "prompt_tokens", "generation_tokens")},
            **{f"{kind} of finished": buckets.total for kind, buckets in engine.lengths.items()},
        }
        for engine in deployment.engines
    ]
