"""One object for everything that is remembered; each group of tables has a file of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.domain.errors import StoreError
from advisor.domain.life import AdviceRecord
from advisor.domain.ports import Delivery

from . import advice, hours, reports, runs
from .database import Database
from .deliveries import Deliveries
from .migration import checked_version, migrate, shipped

if TYPE_CHECKING:
    from advisor.domain.cursor import Cursors
    from advisor.domain.evidence import RequestLog, Window
    from advisor.domain.exported import LengthCounts
    from advisor.domain.hours import HourFacts

HOURS_KEPT_SECONDS = 14 * 86_400.0


class Store:
    """The memory of a daemon. Threads may share it; other processes may open the same file.

    Every call raises StoreError where the file cannot be read or written; what was there before stays.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.delivery_log = Deliveries(database)

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False) -> Store:
        """The store at `path`, created or migrated when need be; before a migration a copy is made beside it.

        readonly: neither creates nor migrates. Raises StoreError for one that is missing, damaged, newer, or not one.
        """
        database = Database(path, readonly=readonly)
        try:
            if readonly:
                _check_readable(database)
            else:
                migrate(database, shipped())
        except StoreError:
            database.close()
            raise
        return cls(database)

    def close(self) -> None:
        """Give the file back."""
        self._database.close()

    def begin_run(self, kind: str, at: float) -> int:
        """Note that a run began; its number."""
        return runs.begin_run(self._database, kind, at)

    def end_run(self, run: int, at: float, outcome: str, steps: Sequence[runs.Step]) -> None:
        """Note how it ended (`ok` is success), with its steps: name, seconds, detail."""
        runs.end_run(self._database, run, at, outcome, steps)

    def last_success(self, kind: str) -> float | None:
        """When a run of this kind last ended with `ok`."""
        return runs.last_success(self._database, kind)

    def last_runs(self, limit: int = 20) -> tuple[runs.RunRow, ...]:
        """The latest runs, latest first."""
        return runs.last_runs(self._database, limit)

    def save_report(self, at: float, document_json: str, facts: Mapping[str, Mapping[str, float]]) -> None:
        """Keep the latest report of the fleet, and its numeric facts by deployment."""
        reports.save_report(self._database, at, document_json, facts)

    def latest_report(self) -> tuple[float, str] | None:
        """When the latest report was made, and its document."""
        return reports.latest_report(self._database)

    def first_seen(self, since: float) -> Mapping[str, float]:
        """When each deployment was first evaluated, of the evaluations since a moment."""
        return reports.first_seen(self._database, since)

    def fact_history(self, deployment: str, names: Sequence[str], since: float) -> Mapping[str, reports.Series]:
        """(time, value) of facts since a moment, hourly for two weeks and daily before."""
        return reports.fact_history(self._database, deployment, names, since)

    def save_hours(self, by_deployment: Mapping[str, Iterable[HourFacts]]) -> None:
        """Keep what was measured hour by hour; an hour that is known stays as it is."""
        hours.save_hours(self._database, by_deployment)

    def hours(self, deployment: str, since: float) -> tuple[HourFacts, ...]:
        """What was measured of a deployment in each whole hour since a moment, oldest first."""
        return hours.hours(self._database, deployment, since)

    def last_hour(self, deployment: str) -> float | None:
        """When the newest hour that is known of a deployment began."""
        return hours.last_hour(self._database, deployment)

    def records(self) -> tuple[AdviceRecord, ...]:
        """All pieces of advice, oldest first."""
        return advice.records(self._database)

    def save_records(self, records: Iterable[AdviceRecord]) -> None:
        """Keep these as they are now; others stay."""
        advice.save_records(self._database, records)

    def change_records(self, change: advice.Change) -> tuple[AdviceRecord, ...]:
        """Read all records, let `change` say what becomes of them, keep that: in one go, so that nobody's is lost."""
        return advice.change_records(self._database, change)

    def cursors(self) -> Cursors:
        """How far request logs are read."""
        from . import request_logs  # noqa: PLC0415 - `advisor status` starts faster without numpy

        return request_logs.cursors(self._database)

    def commit_logs(self, slices: Mapping[tuple[str, int], RequestLog], cursors: Cursors) -> None:
        """Add hours of request logs and keep the cursors that go with them: both or neither."""
        from . import request_logs  # noqa: PLC0415

        request_logs.commit_logs(self._database, slices, cursors)

    def logged_deployments(self) -> tuple[str, ...]:
        """The deployments of which there is any log, by name."""
        from . import request_logs  # noqa: PLC0415

        return request_logs.logged_deployments(self._database)

    def request_log(self, deployment: str, window: Window, latency_since: float) -> RequestLog | None:
        """What the request log of a deployment said over a window; latencies since `latency_since` only."""
        from . import request_logs  # noqa: PLC0415

        return request_logs.request_log(self._database, deployment, window, latency_since)

    def counting_since(self, now: float) -> float:
        """When the host agent began to count; now, unless it did before."""
        from . import exported  # noqa: PLC0415

        return exported.counting_since(self._database, now)

    def exported(self) -> Mapping[str, LengthCounts]:
        """What the host agent counted, by model."""
        from . import exported  # noqa: PLC0415

        return exported.exported(self._database)

    def commit_exported(self, counts: Mapping[str, LengthCounts], cursors: Cursors) -> None:
        """Keep what is counted of these models now, with the cursors that go with it: both or neither."""
        from . import exported  # noqa: PLC0415

        exported.commit_exported(self._database, counts, cursors)

    def deliveries(self, limit: int = 100) -> tuple[Delivery, ...]:
        """Messages that were sent or tried, latest first."""
        return self.delivery_log.latest(limit)

    def prune(self, now: float, retention_days: int) -> None:
        """Roll what is older than two weeks up to days, and delete what is older than the retention."""
        from . import request_logs  # noqa: PLC0415

        request_logs.roll_up(self._database, now - HOURS_KEPT_SECONDS)
        reports.thin_facts(self._database, now - HOURS_KEPT_SECONDS)
        oldest = now - retention_days * 86_400.0
        for table, column in (("slice", "start"), ("fact", "at"), ("run", "began_at"), ("delivery", "changed_at")):
            self._database.change(f"DELETE FROM {table} WHERE {column} < ?", oldest)  # noqa: S608
        self._database.change("DELETE FROM hour WHERE start < ?", max(now - hours.KEPT_SECONDS, oldest))
        advice.forget_records(self._database, oldest)


def _check_readable(database: Database) -> None:
    newest = max(shipped())
    if checked_version(database, newest=newest) < newest:
        raise StoreError(f"{database.path}: is of an older version: restart the daemon, which brings it up to date")
