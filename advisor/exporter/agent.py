"""`advisor exporter`: follows the logs, answers scrapes, and tells systemd that it lives. All that lasts is on disk."""

from __future__ import annotations

import signal
import time
from contextlib import closing
from pathlib import Path

import structlog

from advisor.domain.errors import ConfigError, StoreError
from advisor.domain.report import SourceState
from advisor.process.alone import alone
from advisor.process.logs import configure_logging
from advisor.process.notify import Notifier
from advisor.process.signals import Signals, caught
from advisor.settings import Settings
from advisor.sources.request_log import LogOptions
from advisor.store import Store
from advisor.web.server import serve

from .app import create_app
from .follower import Follower
from .metrics import Metrics

POLL_SECONDS = 5.0
STATE_FILE = "exporter.db"

log = structlog.get_logger()


def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT. Raises ConfigError or StoreError when it cannot start."""
    if settings.logs is None:
        raise ConfigError("the exporter has nothing to follow: say where request logs lie (logs.paths)")
    configure_logging(level=settings.logging.level, as_json=settings.logging.format == "json")
    path = settings.exporter.state / STATE_FILE
    with alone(path), closing(Store.open(path)) as store:
        _Agent(settings, settings.logs, store).run(path)


class _Agent:
    def __init__(self, settings: Settings, logs: LogOptions, store: Store) -> None:
        self._follower = Follower(logs, store, settings.exporter.most_models, time.time())
        self._server = serve(create_app(Metrics(lambda: self._follower.shown).text), settings.exporter.web)
        self._notifier = Notifier.from_environment()
        self._told: tuple[object, ...] = ()

    def run(self, state: Path) -> None:
        with caught(signal.SIGTERM, signal.SIGINT) as signals:
            self._server.start()
            log.info("started", state=str(state), web=self._server.url)
            self._notifier.ready("reading")
            try:
                self._attend(signals)
            finally:
                log.info("stopping")
                self._notifier.stopping()
                self._server.stop()

    def _attend(self, signals: Signals) -> None:
        behind = True
        while not signals.wait(0.0 if behind else POLL_SECONDS):
            try:
                behind = self._follower.step(time.time())
            except StoreError as error:
                behind = False
                self._tell(SourceState("state", "failed", str(error)))
            else:
                self._tell(self._follower.shown.state)
            self._notifier.alive()

    def _tell(self, state: SourceState | None) -> None:
        """How reading goes: to whoever looks at the unit's status, and to the log where that has changed."""
        if state is None:
            return
        trouble = f"; {state.name}: {state.detail}" if state.status != "ok" else ""
        self._notifier.status(f"{self._follower.shown.summary}{trouble}")
        if self._told != (state.name, state.status):
            self._told = (state.name, state.status)
            write = log.info if state.status == "ok" else log.warning
            write("reading", source=state.name, status=state.status, detail=state.detail)
