"""A database's requests to evidence: the whole window, read anew each time, so that a row that came late counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from advisor.domain.errors import SourceError
from advisor.domain.evidence import RequestLog, Window
from advisor.domain.report import SourceState
from advisor.sources.request_log import LogReading, Resolve
from advisor.sources.request_log.account import Account
from advisor.sources.request_log.deployment_logs import DeploymentLogs
from advisor.sources.request_log.origins import Origins
from advisor.sources.request_log.request_intake import RequestIntake

from .columns import Rows, places, readable, requests
from .groups import GroupIntake, groups
from .options import SqlOptions

NAME = "sql"
_EXTRA = "SQLAlchemy is not installed: pip install 'serving-advisor[sql]'"
_BAD = "with a missing or impossible value"


def read_sql(
    options: SqlOptions, window: Window, resolve: Resolve, latency_since: Callable[[str], float]
) -> LogReading:
    """Ask the database for requests that completed within `window`; a failure becomes the reading's state.

    resolve, latency_since: as in `read_request_logs`.
    """
    try:
        from .connection import answer  # noqa: PLC0415 - an extra, half a second to import, and few have a database
    except ModuleNotFoundError:
        return LogReading({}, SourceState(NAME, "failed", _EXTRA), {})
    origins = Origins(options.aliases, resolve, latency_since, window.start)
    try:
        with answer(options, window) as told:
            where = places(told.columns)
            taker = (_Groups if "count" in where else _Requests)(window, origins, where)
            for rows in told.chunks:
                taker.take(rows)
    except SourceError as error:
        return LogReading({}, SourceState(NAME, "failed", str(error)), {})
    return taker.reading()


class _Requests:
    """Takes rows of single requests."""

    def __init__(self, window: Window, origins: Origins, where: Mapping[str, int]) -> None:
        self._where = where
        self._account = Account("rows")
        self._logs = DeploymentLogs(window, origins)
        self._intake = RequestIntake(
            NAME, window, origins, lambda batch: self._logs.add(batch, self._intake.clients), self._account
        )

    def take(self, rows: Rows) -> None:
        told, bad = readable(rows, lambda some: requests(some, self._where))
        self._account.bad[_BAD] += bad
        self._intake.add(told)

    def reading(self) -> LogReading:
        self._intake.flush()
        self._account.heard(_rows(self._account))
        logs = self._logs.told(self._intake.retries.replaced_failures, NAME)
        state, strangers = self._intake.state(sum(log.requests for log in logs.values()))
        return LogReading({name: self._with_gaps(log) for name, log in logs.items()}, state, strangers)

    def _with_gaps(self, log: RequestLog) -> RequestLog:
        refusals, cuts = {"status", "error_message"} <= self._where.keys(), "finish_reason" in self._where
        return replace(log, tells_refusals=refusals, tells_cuts=cuts)


class _Groups:
    """Takes rows of counted requests."""

    def __init__(self, window: Window, origins: Origins, where: Mapping[str, int]) -> None:
        self._where, self._origins = where, origins
        self._account = Account("rows")
        self._intake = GroupIntake(window, origins, self._account)

    def take(self, rows: Rows) -> None:
        told, bad = readable(rows, lambda some: groups(some, self._where, self._origins))
        self._account.bad[_BAD] += bad
        self._intake.add(told)

    def reading(self) -> LogReading:
        hours = "" if "hour" in self._where else ", over an unknown time: group by hour too"
        self._account.heard(_rows(self._account) + hours)
        logs = self._intake.logs(NAME)
        strangers = self._intake.strangers()
        state = self._account.state(NAME, requests=sum(log.requests for log in logs.values()))
        return LogReading(logs, state, strangers)


def _rows(account: Account) -> str:
    rows = account.rows + account.bad.total()
    return f"{rows:,} row{'s' if rows != 1 else ''}"
