"""One evaluation: gather, estimate, judge. The only place where the stages meet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from advisor import rule_pack
from advisor.domain.errors import UsageError
from advisor.domain.evidence import Evidence, FlagValue, Window
from advisor.domain.report import DeploymentReport, Report, SourceState
from advisor.estimates import estimate, scaling
from advisor.estimates.pictures import pictures
from advisor.estimates.sweep_ceiling import other_epoch
from advisor.gather import gather
from advisor.merge import with_flags
from advisor.outcomes.canary import compare
from advisor.owners import RequestLogs, read_from_files
from advisor.rulebook.arbiter import advise
from advisor.rulebook.schema import Rule
from advisor.rulebook.trial import with_trials
from advisor.settings import Settings

Told = Callable[[str], None]
PastDemand = Callable[[str], tuple[tuple[float, float], ...]]
"""What earlier evaluations saw arrive at a deployment: (UNIX seconds of a whole hour, requests per second)."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SetFlag:
    """A flag given on the command line; `deployment` is None when it was not scoped."""

    deployment: str | None
    name: str
    value: FlagValue


def run_once(
    settings: Settings,
    window: Window,
    *,
    set_flags: Iterable[SetFlag] = (),
    deployment: str | None = None,
    request_logs: RequestLogs = read_from_files,
    past_demand: PastDemand = lambda _: (),
    tell: Told = lambda _: None,
) -> Report:
    """Evaluate the fleet over a window. `tell` hears each step's time and what engine metrics cost.

    request_logs reads the logs; past_demand tells what is remembered from before the window.

    Raises UsageError for an unscoped flag among several deployments, and ConfigError for rules that cannot be read.
    """
    steps = _Steps(tell)
    rules = steps.time("rules", lambda: rule_pack.load(settings.rules))
    gathered = steps.time("gather", lambda: gather(settings, window, request_logs))
    tell(f"engine metrics: {gathered.queries} queries, {gathered.samples:,} samples")
    for note in gathered.notes:
        tell(note)
    evidence, foreign = _own_sweeps(
        _scoped(_with_set_flags(gathered.deployments, tuple(set_flags), deployment), deployment)
    )
    remembered = [replace(e, demand_hours=past_demand(e.name)) for e in evidence]
    reports = steps.time("judge", lambda: tuple(_evaluate(e, settings, rules) for e in remembered))
    return Report(time.time(), window, (*gathered.sources, *foreign, *_disputes(evidence)), reports)


@dataclass(frozen=True, slots=True)
class _Steps:
    tell: Told

    def time(self, name: str, step: Callable[[], Result]) -> Result:
        """Run one step and tell how long it took."""
        started = time.monotonic()
        result = step()
        self.tell(f"{name}: {time.monotonic() - started:.2f} s")
        return result


def _evaluate(evidence: Evidence, settings: Settings, rules: tuple[Rule, ...]) -> DeploymentReport:
    facts = estimate(evidence, settings.policy.policy())
    canaries = compare(evidence)
    judgement = advise(rules, evidence, facts, scaling.options(evidence, facts))
    judgement = with_trials(judgement, evidence, facts, canaries)
    return DeploymentReport(evidence, facts, judgement, pictures(evidence, facts), canaries)


def _with_set_flags(
    deployments: Mapping[str, Evidence], set_flags: tuple[SetFlag, ...], only: str | None
) -> dict[str, Evidence]:
    out = dict(deployments)
    for flag in set_flags:
        name = flag.deployment or only or (next(iter(out)) if len(out) == 1 else None)
        if name is None and out:
            raise UsageError(f"--set {flag.name}: {len(out)} deployments, write --set DEPLOYMENT:{flag.name}=VALUE")
        if flag.deployment is not None and out and flag.deployment not in out:
            raise UsageError(f"--set {flag.deployment}:{flag.name}: no such deployment; there are {', '.join(out)}")
        if name is not None and name in out:
            out[name] = with_flags(out[name], {flag.name: flag.value}, "command_line")
    return out


def _scoped(deployments: Mapping[str, Evidence], only: str | None) -> tuple[Evidence, ...]:
    return tuple(e for name, e in sorted(deployments.items()) if only is None or name == only)


def _own_sweeps(deployments: tuple[Evidence, ...]) -> tuple[tuple[Evidence, ...], list[SourceState]]:
    """Without the sweeps of another epoch, and the word on each that was taken away."""
    kept, foreign = [], []
    for evidence in deployments:
        why = None if evidence.sweep is None else other_epoch(evidence.sweep, evidence)
        if why is not None:
            told = f"not used, it is of another epoch: {why}; run it again (advisor sweep plan)"
            foreign.append(SourceState(f"sweep of {evidence.name}", "partial", told))
        kept.append(evidence if why is None else replace(evidence, sweep=None))
    return tuple(kept), foreign


def _disputes(deployments: Iterable[Evidence]) -> tuple[SourceState, ...]:
    lines = []
    for evidence in deployments:
        for dispute in evidence.disagreements:
            one, other = dispute.believed, dispute.other
            told = (
                f"{one.source.replace('_', ' ')} says {one.value}, {other.source.replace('_', ' ')} says {other.value}"
            )
            lines.append(
                SourceState(f"flag {dispute.flag} of {evidence.name}", "partial", f"{told}: the first is believed")
            )
    return tuple(lines)
