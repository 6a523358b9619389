"""What requests needed, from the sources that know single requests, each deployment from the best one alone.

A request log is believed before a database: it tells more of each request. The two are never added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from advisor.domain.evidence import Window
from advisor.domain.report import SourceState
from advisor.owners import Owners, RequestLogs
from advisor.settings import Settings
from advisor.sources.metrics_reading import DeploymentMetrics
from advisor.sources.request_log import LogReading
from advisor.sources.sql import SqlOptions, read_sql

from .gathered import Gathered

_SHOWN = 5


def read_requests(
    settings: Settings,
    window: Window,
    metrics: Mapping[str, DeploymentMetrics],
    out: Gathered,
    request_logs: RequestLogs,
) -> None:
    """Requests, joined by the model's name and the replica; models that no deployment claims become a line."""
    # Without a source of metrics the requests themselves say which deployments there are.
    sure = bool(metrics) or (settings.prometheus is None and not settings.engines)
    apart = {engine.instance for evidence in out.deployments.values() for engine in evidence.apart}
    owners = Owners.of(metrics, out.deployments, sure=sure, since=window.start, apart=apart)
    if settings.logs is not None:
        _take("request log", "logs.aliases", request_logs(settings.logs, window, owners), window, out)
    if settings.sql is not None:
        _take("sql", "sql.aliases", _from_database(settings.sql, window, owners), window, out)


def _from_database(options: SqlOptions, window: Window, owners: Owners) -> LogReading:
    if not owners.sure:
        why = "not read: no source of metrics answers, so nobody knows which deployment a request is of"
        return LogReading({}, SourceState("sql", "failed", why), {})
    return read_sql(options, window, owners.resolve, owners.latency_since)


def _take(name: str, aliases: str, reading: LogReading, window: Window, out: Gathered) -> None:
    out.sources.append(reading.state)
    passed_over = []
    for deployment, log in reading.logs.items():
        known = out.known(deployment, window)
        if known.log is not None and known.log.requests:
            passed_over.append(
                f"{deployment} ({log.requests:,} requests; the {known.log.source} has {known.log.requests:,})"
            )
        else:
            out.deployments[deployment] = replace(known, log=log)
    if passed_over:
        out.sources.append(SourceState(f"{name} passed over", "ok", f"not used for {_first(passed_over)}"))
    if reading.strangers:
        told = _first([f"{model} ({count:,})" for model, count in reading.strangers.items()])
        out.sources.append(
            SourceState(f"{name} models", "partial", f"no deployment claims {told}: map them in {aliases}")
        )


def _first(texts: list[str]) -> str:
    more = len(texts) - _SHOWN
    return ", ".join([*texts[:_SHOWN], *([f"and {more:,} more"] if more > 0 else [])])
