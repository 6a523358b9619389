"""What host agents counted, joined to deployments by the model's name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from advisor.domain.evidence import Window
from advisor.domain.exported import OTHER_MODELS
from advisor.domain.report import SourceState
from advisor.owners import Owners
from advisor.settings import Settings
from advisor.sources.exporter_histograms import NAME, read_exporters
from advisor.sources.metrics_reading import DeploymentMetrics

from .gathered import Gathered

_SHOWN = 5


def join_exporters(settings: Settings, window: Window, metrics: Mapping[str, DeploymentMetrics], out: Gathered) -> None:
    """Add the lengths that Prometheus has from host agents, if it has any; those of nobody become a line.

    One that has just failed is not asked again.
    """
    if settings.prometheus is None or any(s.name == "prometheus" and s.status == "failed" for s in out.sources):
        return
    owners = Owners.of(metrics, out.deployments, sure=True, since=window.start)
    served = Counter(m.labels.get("model_name", "") for m in metrics.values())
    aliases = settings.logs.aliases if settings.logs else {}

    def resolve(model: str) -> str | None:
        """Agents do not tell deployments of one model apart."""
        name = aliases.get(model, model)
        return None if served[name] > 1 else owners.resolve(name, "")

    reading = out.attempt(NAME, partial(read_exporters, settings.prometheus, window, resolve))
    if reading is None or reading.state is None:
        return
    out.sources.append(reading.state)
    out.queries += reading.queries
    out.samples += reading.samples
    for name, lengths in reading.lengths.items():
        out.deployments[name] = replace(out.known(name, window), exported=lengths)
    if reading.strangers:
        out.sources.append(SourceState(f"{NAME} models", "partial", _unclaimed(reading.strangers)))


def _unclaimed(strangers: Mapping[str, float]) -> str:
    told = ", ".join(f"{model or 'no name'} ({n:,.0f})" for model, n in list(strangers.items())[:_SHOWN])
    others = f"; {OTHER_MODELS} are beyond exporter.most_models, or nobody serves them"
    return f"no single deployment claims {told}: map them in logs.aliases{others if OTHER_MODELS in strangers else ''}"
