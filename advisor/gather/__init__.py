"""The world -> evidence: reads every source that the settings name, joins them by deployment, and says how each went.

A source that fails becomes a line in `sources`; the others are read all the same.
"""

from __future__ import annotations

from advisor.domain.evidence import Window
from advisor.owners import RequestLogs, read_from_files
from advisor.settings import Settings
from advisor.sources.processes import read_processes

from .engine_logs import read_engine_logs
from .exported import join_exporters
from .files import read_evidence, read_files, with_settings
from .fleet import names_of, read_fleet
from .gathered import Gathered
from .requests import read_requests
from .starts import join_processes, read_manifests

__all__ = ["Gathered", "gather", "names_of"]


def gather(settings: Settings, window: Window, request_logs: RequestLogs = read_from_files) -> Gathered:
    """Evidence of every deployment that any source knows. Raises UsageError for what cannot be joined."""
    out = Gathered()
    read_evidence(settings, window, out)
    running = out.attempt("processes", read_processes) if settings.processes else None
    metrics = read_fleet(settings, window, out, running)
    join_exporters(settings, window, metrics, out)
    read_requests(settings, window, metrics, out, request_logs)
    read_engine_logs(settings, window, out)
    if running is not None:
        join_processes(running, metrics.values(), window, out)
    read_manifests(settings, window, out)
    read_files(settings, out)
    for name, evidence in list(out.deployments.items()):
        out.deployments[name] = with_settings(settings, evidence)
    return out
