"""What the daemon knows at any moment: the store's latest, kept at hand for page, metrics and status line."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import closing

import structlog

from advisor.domain.errors import SourceError, StoreError
from advisor.domain.life import AdviceRecord, TrackRecord
from advisor.domain.report import Report
from advisor.outcomes import track_records, with_states
from advisor.outlets.restore import restore
from advisor.owners import Owners
from advisor.service.schedule import EVALUATE, KINDS
from advisor.service.telemetry import Metrics, View
from advisor.settings import Settings
from advisor.store import Store
from advisor.web.state import Health

log = structlog.get_logger()


class Memory:
    """The state that the web server shows (`web.state.WebState`); threads may share it.

    Of the store only what changes rarely is kept: the latest report. Decisions taken on the command line count at once.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.started_at = time.time()
        self.config_problem = ""
        self.owners: Owners | None = None
        self._lock = threading.Lock()
        self._report: tuple[float, Report] | None = None
        self._last_success: dict[str, float] = {}
        self._runs: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, float] = {}
        self._metrics = Metrics(self._view)

    def load(self) -> None:
        """Read the store, creating it when it is not there. Raises StoreError."""
        with closing(Store.open(self.settings.store.path)) as store:
            self._last_success = {k: at for k in KINDS if (at := store.last_success(k)) is not None}
        self.refresh()

    def refresh(self) -> None:
        """Take the latest report from the store. Raises StoreError."""
        with closing(Store.open(self.settings.store.path, readonly=True)) as store:
            kept = store.latest_report()
        if kept is not None and (self._report is None or self._report[0] != kept[0]):
            self.show(*kept)

    def show(self, at: float, document_json: str) -> None:
        """Show a report from now on."""
        try:
            self._report = (at, restore(document_json))
        except SourceError as error:
            # Written by another version; the next evaluation replaces it.
            log.warning("the last report cannot be shown", why=str(error))

    def ran(self, kind: str, outcome: str, seconds: float, at: float) -> None:
        """Count a step that ended."""
        with self._lock:
            self._runs[(kind, outcome)] += 1
            self._seconds[kind] = seconds
            if outcome == "ok":
                self._last_success[kind] = at

    def last_success(self, kind: str) -> float | None:
        """When a kind of work last succeeded, in UNIX seconds."""
        return self._last_success.get(kind)

    def report(self) -> tuple[float, Report] | None:
        """The latest evaluation and its time, with what was decided about its advice since."""
        held = self._report
        return None if held is None else (held[0], with_states(held[1], self.records()))

    def records(self) -> tuple[AdviceRecord, ...]:
        """Every piece of advice that is remembered; none while the store cannot be read."""
        try:
            with closing(Store.open(self.settings.store.path, readonly=True)) as store:
                return store.records()
        except StoreError:
            return ()

    def track_records(self) -> tuple[TrackRecord, ...]:
        """How the advice of each rule did once it was followed."""
        return tuple(track_records(self.records()))

    def health(self) -> Health:
        """Ready while the last successful evaluation is younger than three periods."""
        last = self.last_success(EVALUATE)
        if last is None:
            return Health(ready=False, reason="nothing was evaluated yet")
        age = time.time() - last
        if age > 3 * self.settings.schedule.evaluate:
            return Health(ready=False, reason=f"the last good evaluation was {age / 3600:.1f} h ago")
        return Health(ready=True)

    def metrics(self) -> bytes:
        """Prometheus' text format 0.0.4."""
        return self._metrics.text()

    def summary(self) -> str:
        """`14 deployments, 3 to act on; evaluated 12:00 UTC`."""
        held = self._report
        if held is None:
            return "nothing evaluated yet"
        at, report = held
        acting = sum(d.judgement.status == "advice" for d in report.deployments)
        moment = time.strftime("%a %d %b %H:%M UTC", time.gmtime(at))
        fleet = len(report.deployments)
        return f"{fleet} deployment{'' if fleet == 1 else 's'}, {acting} with advice; evaluated {moment}"

    def _view(self) -> View:
        held = self.report()
        with self._lock:
            return View(
                report=held[1] if held else None,
                last_success=dict(self._last_success),
                runs=dict(self._runs),
                seconds=dict(self._seconds),
                delivery_failed=self._undelivered(),
                config_good=not self.config_problem,
            )

    def _undelivered(self) -> dict[tuple[str, str], int]:
        try:
            with closing(Store.open(self.settings.store.path, readonly=True)) as store:
                failed = [d for d in store.deliveries() if d.state == "failed"]
        except StoreError:
            return {}
        return dict(Counter(("slack", str(d.permanent).lower()) for d in failed))
