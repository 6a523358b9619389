"""What requests needed, from the sources that know single requests, each deployment from the best one alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from advisor.domain.evidence import Window
from advisor.domain.report import SourceState
from advisor.owners import Owners, RequestLogs
from advisor.settings import Settings
from advisor.sources.metrics_reading import DeploymentMetrics

from .gathered import Gathered


def read_requests(
    settings: Settings,
    window: Window,
    metrics: Mapping[str, DeploymentMetrics],
    out: Gathered,
    request_logs: RequestLogs,
) -> None:
    """Request logs, joined by the model's name and the replica; models that no deployment claims become a line."""
    if settings.logs is None:
        return
    # Without a source of metrics the log itself says which deployments there are.
    sure = bool(metrics) or (settings.prometheus is None and not settings.engines)
    apart = {engine.instance for evidence in out.deployments.values() for engine in evidence.apart}
    owners = Owners.of(metrics, out.deployments, sure=sure, since=window.start, apart=apart)
    reading = request_logs(settings.logs, window, owners)
    out.sources.append(reading.state)
    for name, log in reading.logs.items():
        out.deployments[name] = replace(out.known(name, window), log=log)
    if reading.strangers:
        told = ", ".join(f"{model} ({count:,})" for model, count in list(reading.strangers.items())[:5])
        out.sources.append(
            SourceState("request log models", "partial", f"no deployment claims {told}: map them in logs.aliases")
        )
