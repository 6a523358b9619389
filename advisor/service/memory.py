"""What the daemon knows at any moment: the store's latest, kept at hand for page, metrics and status line."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace

import structlog

from advisor.domain.errors import SourceError, StoreError
from advisor.domain.life import AdviceRecord, TrackRecord
from advisor.domain.report import DeploymentReport, Report
from advisor.outcomes import track_records, with_states
from advisor.outlets.slack.options import COLLECTING_DAYS
from advisor.outlets.slack.standing import collecting_until, is_watched
from advisor.owners import Owners
from advisor.reporting import watched_since
from advisor.service.schedule import EVALUATE, KINDS
from advisor.service.shown import Shown
from advisor.service.telemetry import Metrics, View
from advisor.settings import Settings
from advisor.store import Store
from advisor.web import trends
from advisor.web.state import Health, Past

DAY = 86_400.0

log = structlog.get_logger()


class Memory:
    """The state that the web server shows (`web.state.WebState`); threads may share it.

    Of the store only what changes rarely is kept: the latest report, packed, and its outline with the states of its
    advice, until the store changes. So decisions taken on the command line count at once.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.started_at = time.time()
        self.config_problem = ""
        self.owners: Owners | None = None
        self._lock = threading.Lock()
        self._shown: Shown | None = None
        self._told: tuple[object, tuple[float, Report]] | None = None
        self._watched: tuple[Shown, Mapping[str, float]] | None = None
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
        if kept is not None and (self._shown is None or self._shown.at != kept[0]):
            self.show(*kept)

    def show(self, at: float, document_json: str) -> None:
        """Show a report from now on."""
        try:
            self._shown = Shown(at, document_json)
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
        """The latest evaluation in outline and its time, with what was decided about its advice since."""
        shown, told = self._shown, self._told
        if shown is None:
            return None
        version = (shown, *self._store_version())
        if told is None or told[0] != version:
            told = (version, (shown.at, with_states(shown.outline, self.records())))
            self._told = told
        return told[1]

    def deployments(self) -> Iterator[DeploymentReport]:
        """Everything about each deployment, one after the other, with what was decided since."""
        shown = self._shown
        if shown is not None:
            records = self.records()
            yield from (_with_states(shown.outline, whole, records) for whole in shown.deployments())

    def deployment(self, name: str) -> DeploymentReport | None:
        """Everything about one deployment; None when there is no such name."""
        shown = self._shown
        whole = shown.deployment(name) if shown else None
        return None if shown is None or whole is None else _with_states(shown.outline, whole, self.records())

    def past(self, name: str) -> Past:
        """What is remembered of one deployment; nothing while the store cannot be read."""
        try:
            with closing(Store.open(self.settings.store.path, readonly=True)) as store:
                history = store.fact_history(name, trends.FACTS, time.time() - trends.DAYS * DAY)
                own = tuple(record for record in store.records() if record.deployment == name)
        except StoreError:
            return Past()
        return Past(own, history, self.collecting().get(name))

    def collecting(self) -> Mapping[str, float]:
        """Until when each deployment that was not watched for long enough is only collecting."""
        shown = self._shown
        if shown is None:
            return {}
        slack, now = self.settings.slack, time.time()
        asked = min(slack.collecting_days if slack else COLLECTING_DAYS, shown.outline.window.seconds / DAY)
        first, days = self._watched_since(shown, asked), shown.observed_days
        watched = (d for d in shown.outline.deployments if d.judgement.status != "no_data" and is_watched(d))
        names = [d.evidence.name for d in watched]
        ends = ((name, collecting_until(asked, days.get(name), first.get(name), now)) for name in names)
        return {name: end for name, end in ends if end is not None}

    def _watched_since(self, shown: Shown, asked_days: float) -> Mapping[str, float]:
        """Asked once an evaluation: it looks through the facts of days."""
        if self._watched is None or self._watched[0] is not shown:
            try:
                with closing(Store.open(self.settings.store.path, readonly=True)) as store:
                    self._watched = (shown, watched_since(store, asked_days, time.time()))
            except StoreError:
                return {}
        return self._watched[1]

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
        shown = self._shown
        if shown is None:
            return "nothing evaluated yet"
        acting = sum(d.judgement.status == "advice" for d in shown.outline.deployments)
        moment = time.strftime("%a %d %b %H:%M UTC", time.gmtime(shown.at))
        fleet = len(shown.outline.deployments)
        return f"{fleet} deployment{'' if fleet == 1 else 's'}, {acting} with advice; evaluated {moment}"

    def _store_version(self) -> tuple[tuple[int, int] | None, ...]:
        """Something that is another one whenever anybody wrote to the store."""
        path = self.settings.store.path
        versions: list[tuple[int, int] | None] = []
        for file in (path, path.with_name(f"{path.name}-wal")):
            versions.append(None)
            with suppress(OSError):
                found = file.stat()
                versions[-1] = (found.st_mtime_ns, found.st_size)
        return tuple(versions)

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


def _with_states(outline: Report, whole: DeploymentReport, records: Sequence[AdviceRecord]) -> DeploymentReport:
    own = [record for record in records if record.deployment == whole.evidence.name]
    return with_states(replace(outline, deployments=(whole,)), own).deployments[0]
