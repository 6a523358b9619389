"""Hourly: judge the fleet, carry the life of advice on, remember both, and say at once what is critical."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from zoneinfo import ZoneInfo

from advisor import reporting
from advisor.cycle import PastDemand, run_once
from advisor.domain.errors import SourceError, StoreError
from advisor.domain.evidence import Evidence, Window
from advisor.domain.hours import DEMAND, HOUR_SECONDS, HourFacts
from advisor.domain.report import DeploymentReport, Report, SourceState
from advisor.estimates.hourly import hourly_facts
from advisor.kept_sweeps import with_kept
from advisor.outcomes import advance, with_states
from advisor.outlets.document import document
from advisor.outlets.restore import restore
from advisor.owners import Owners, RequestLogs, read_from_files
from advisor.service.account import Account
from advisor.service.remembered_logs import RememberedLogs
from advisor.settings import Settings
from advisor.store import Store

from .report import send

GROWTH_SECONDS = 15 * 86_400.0
_OUT_OF_SIGHT = "deployments out of sight"


def run(settings: Settings, now: float, owners: Owners | None) -> Account:
    """A fleet of which nothing can be seen is a problem. Where the store takes nothing, the report is handed on.

    Raises ConfigError for rules that cannot be read.
    """
    account, report = Account(owners=owners), None
    try:
        with closing(Store.open(settings.store.path)) as store:
            logs = RememberedLogs(store, owners)
            report = _judged(settings, now, logs, account, _past_demand(store, now))
            account.owners = logs.owners
            with account.part("record"):
                _record(store, report)
            if settings.slack is not None:
                zone = ZoneInfo(settings.schedule.timezone)
                send(account, store, settings.slack, now, reporting.critical_posts(store, settings.slack, now, zone))
    except StoreError as error:
        account.problems.append(str(error))
        account.unsaved = (now, _document(report or _judged(settings, now, read_from_files, account)))
    return account


def _past_demand(store: Store, now: float) -> PastDemand:
    def told(deployment: str) -> tuple[tuple[float, float], ...]:
        hours = store.hours(deployment, now - GROWTH_SECONDS)
        return tuple((hour.start, hour.figures[DEMAND]) for hour in hours if DEMAND in hour.figures)

    return told


def _judged(
    settings: Settings, now: float, logs: RequestLogs, account: Account, past: PastDemand = lambda _: ()
) -> Report:
    window = Window(now - settings.since, now)
    with account.part("judge") as told:
        report = run_once(with_kept(settings), window, request_logs=logs, past_demand=past, tell=told.append)
        told.insert(0, f"{len(report.deployments)} deployments")
    if not report.deployments:
        account.problems += [f"{s.name}: {s.detail}" for s in report.sources if s.status == "failed"]
    return replace(report, generated_at=now)


def _record(store: Store, report: Report) -> None:
    at = report.generated_at
    store.save_hours({d.evidence.name: _new_hours(d.evidence, store) for d in report.deployments})
    records = store.change_records(lambda before: advance(before, report.deployments, at, hours=store.hours))
    shown = _document(with_states(_with_last_known(report, store), records))
    store.save_report(at, shown, {d.evidence.name: _numbers(d) for d in report.deployments})


def _new_hours(evidence: Evidence, store: Store) -> tuple[HourFacts, ...]:
    last = store.last_hour(evidence.name)
    return hourly_facts(evidence) if last is None else hourly_facts(evidence, last + HOUR_SECONDS)


def _document(report: Report) -> str:
    return json.dumps(document(report).model_dump(), allow_nan=False)


def _numbers(deployment: DeploymentReport) -> dict[str, float]:
    return {name: number for name, fact in deployment.facts.items() if (number := fact.number) is not None}


def _with_last_known(report: Report, store: Store) -> Report:
    """While a source fails, what it told last stays, and says so: nobody is helped by a fleet that has vanished."""
    if not any(source.status == "failed" for source in report.sources):
        return report
    present = {deployment.evidence.name for deployment in report.deployments}
    missing = [d for d in _before(store) if d.evidence.name not in present and _is_recent(d, report, store)]
    if not missing:
        return report
    named = ", ".join(d.evidence.name for d in missing[:5]) + (", ..." if len(missing) > 5 else "")
    told = SourceState(_OUT_OF_SIGHT, "partial", f"not seen now, shown as last evaluated: {named}")
    return replace(report, sources=(*report.sources, told), deployments=(*report.deployments, *missing))


def _before(store: Store) -> tuple[DeploymentReport, ...]:
    kept = store.latest_report()
    try:
        return restore(kept[1]).deployments if kept else ()
    except SourceError:  # of another version
        return ()


def _is_recent(deployment: DeploymentReport, report: Report, store: Store) -> bool:
    """Whether it was judged within the window: what was taken out of service must not stay for ever."""
    name = deployment.evidence.name
    return any(store.fact_history(name, tuple(_numbers(deployment)), report.window.start).values())
