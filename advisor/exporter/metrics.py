"""The text of /metrics: the counts of each model, and what the host agent says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from advisor import __version__
from advisor.domain.exported import EDGES, FAMILIES, REQUESTS, LengthCounts, Quantity
from advisor.domain.histogram import Buckets

from .follower import Shown

MEANINGS: Mapping[Quantity, str] = {
    "prompt": "Prompt tokens of served requests.",
    "output": "Output tokens of served requests.",
    "total": "Prompt and output tokens of served requests, together.",
    "declared": "Prompt tokens and max_tokens of served requests that declared it, together.",
    "refused": "Tokens that requests refused for their length would have needed, as far as the refusal says.",
}
_EDGES = [*map(repr, EDGES.tolist()), "+Inf"]


class Metrics:
    """The text of /metrics. `shown` is asked at every scrape."""

    def __init__(self, shown: Callable[[], Shown]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Exported(shown))
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """Prometheus' text format 0.0.4."""
        return generate_latest(self._registry)


class _Exported(Collector):
    def __init__(self, shown: Callable[[], Shown]) -> None:
        self._shown = shown

    def collect(self) -> Iterator[Metric]:
        shown = self._shown()
        for quantity, name in FAMILIES.items():
            family = HistogramMetricFamily(name, MEANINGS[quantity], labels=["model"])
            for model, counts in shown.counts.items():
                histogram = counts.histograms[quantity]
                family.add_metric([model], _cumulative(histogram), histogram.total)
            yield family
        yield _requests(shown.counts)
        yield _gauge("advisor_build_info", "Version of the advisor.", "version", {__version__: 1})
        yield _gauge("advisor_last_success_timestamp_seconds", "When logs were read.", "stage", {"read": shown.read_at})
        if shown.state is not None:
            up = {shown.state.name: float(shown.state.status != "failed")}
            yield _gauge("advisor_source_up", "Whether a source could be read.", "source", up)


def _cumulative(histogram: Buckets) -> list[tuple[str, float]]:
    """Every bucket, used or not: one that appeared later would look as if it had been counted all at once."""
    return list(zip(_EDGES, np.cumsum(histogram.counts).tolist(), strict=True))


def _requests(counts: Mapping[str, LengthCounts]) -> Metric:
    family = CounterMetricFamily(REQUESTS, "Requests by how they ended.", labels=["model", "outcome"])
    for model, counted in counts.items():
        for outcome, number in counted.outcomes.items():
            family.add_metric([model, outcome], number)
    return family


def _gauge(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for value_of_label, value in values.items():
        family.add_metric([value_of_label], value)
    return family
