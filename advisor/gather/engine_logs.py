"""Engines' own logs: how they started, and the load they print where no metrics show it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from advisor import merge
from advisor.domain.evidence import EngineSeries, Window
from advisor.domain.report import SourceState
from advisor.engines.startup import StartupFacts
from advisor.owners import UNNAMED
from advisor.settings import Settings
from advisor.sources.load_log import read_load
from advisor.sources.startup_log import read_startup_log

from .gathered import Gathered

EARLIER_SECONDS = 30 * 86400.0
"""How long before the window a start is looked for in the journal."""


def read_engine_logs(settings: Settings, window: Window, out: Gathered) -> None:
    """Engines' logs, joined by the served name unless the configuration says whose they are."""
    journal = settings.logs.journal if settings.logs else None
    logs = _EngineLogs(window, out, journal.directory if journal else None)
    for path in settings.startup_logs:
        logs.add(path, None)
    for name, options in settings.deployments.items():
        for path in options.startup_logs if name in out.deployments else ():
            logs.add(path, name)
    for name, engines in logs.loads.items():
        out.deployments[name] = merge.with_load(out.deployments[name], engines)


@dataclass(slots=True)
class _EngineLogs:
    window: Window
    out: Gathered
    journals: Path | None
    loads: dict[str, list[EngineSeries]] = field(default_factory=dict)

    def add(self, path: Path, deployment: str | None) -> None:
        """Join one log to a deployment: the one that is named, else by what the engine serves."""
        title, since = f"start-up log {path.name}", self.window.start - EARLIER_SECONDS
        facts = self.out.attempt(title, lambda: read_startup_log(path, since, self.journals))
        if facts is None:
            return
        name = deployment or self._served(facts)
        self.out.deployments[name] = merge.with_startup(self.out.deployments[name], facts)
        found = self.out.attempt(title, lambda: read_load(path, facts.engine, self.window, self.journals)) or ()
        told = f", load of {len(found)} engine{'' if len(found) == 1 else 's'}" if found else ""
        summary = merge.startup_summary(facts) + told
        if deployment is None and facts.served_names and name not in facts.served_names:
            served = f"{summary}; it serves {facts.served_names[0]} and is taken for {name}, the only deployment"
            advice = "if it is, say so in deployments.NAME.startup_logs; if not, map the log's models (aliases)"
            self.out.sources.append(SourceState(title, "partial", f"{served}: {advice}"))
        else:
            self.out.sources.append(SourceState(title, "ok", summary))
        self.loads.setdefault(name, []).extend(found)

    def _served(self, facts: StartupFacts) -> str:
        """The deployment that serves such a model: by its served names, else the only one there is."""
        known, told = self.out.deployments, next(iter(facts.served_names), UNNAMED)
        for served in facts.served_names:
            if served in known:
                return served
        if not known:
            known[told] = self.out.known(told, self.window)
        elif known.keys() == {UNNAMED}:
            known[told] = replace(known.pop(UNNAMED), name=told)
        else:
            what = "a start-up log whose model is not among the deployments"
            return self.out.only(what, "deployments.NAME.startup_logs")
        return told
