"""`advisor run`: signals, steps on a schedule, the page, and what systemd hears. All that lasts is in the store."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import structlog

from advisor.domain.errors import ConfigError
from advisor.process.alone import alone
from advisor.process.logs import configure_logging
from advisor.process.notify import Notifier
from advisor.process.signals import Signals, caught
from advisor.service.memory import Memory
from advisor.service.schedule import EVALUATE, GATHER, REPORT, Schedule, next_report
from advisor.service.step_runner import StepRunner
from advisor.settings import Settings, read_settings
from advisor.web.app import create_app
from advisor.web.server import Server, serve

TICK_SECONDS = 1.0
CLOCK_JUMP_SECONDS = 30.0
"""Wall clock and monotonic clock drift apart by less in a second, unless somebody set the clock."""
MOST_SECONDS_WITHOUT_HEARTBEAT = 30.0

log = structlog.get_logger()


class Daemon:
    """The service over one configuration file. `run` returns when it was told to stop."""

    def __init__(self, config_file: Path) -> None:
        self._config_file = config_file
        self._settings = read_settings(config_file)
        self._stop = threading.Event()
        self._notifier = Notifier.from_environment()
        self._memory = Memory(self._settings)
        self._runner = StepRunner(self._memory, self._stop)
        self._schedule = Schedule(self._work)

    def run(self) -> None:
        """Work until SIGTERM or SIGINT. Raises ConfigError or StoreError when it cannot start."""
        configure_logging(level=self._settings.logging.level, as_json=self._settings.logging.format == "json")
        with alone(self._settings.store.path):
            self._memory.load()
            server = serve(create_app(self._memory), self._settings.web)
            with caught(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
                self._start(server)
                try:
                    self._attend(signals)
                finally:
                    self._end(server)

    def _start(self, server: Server) -> None:
        server.start()
        self._schedule.start(self._settings.schedule, self._memory.last_success, time.time())
        log.info("started", config=str(self._config_file), store=str(self._settings.store.path), web=server.url)
        self._notifier.ready(self._status())

    def _attend(self, signals: Signals) -> None:
        """What the main thread does: it listens to signals and clocks, and lets systemd know that the daemon lives."""
        clock = _Clock()
        told = ""
        while not (arrived := signals.wait(TICK_SECONDS)) & {signal.SIGTERM, signal.SIGINT}:
            if signal.SIGHUP in arrived:
                self._read_again()
            if jumped := clock.jumped():
                log.warning("the clock was set", seconds=round(jumped))
                self._memory.started_at = min(self._memory.started_at, time.time())
                self._schedule.replan(self._settings.schedule, self._memory.last_success, time.time())
            if self._schedule.seconds_since_heartbeat() < MOST_SECONDS_WITHOUT_HEARTBEAT and not self._runner.stuck:
                self._notifier.alive()
            if (status := self._status()) != told:
                self._notifier.status(status)
                told = status

    def _end(self, server: Server) -> None:
        log.info("stopping")
        self._stop.set()
        self._notifier.stopping()
        self._schedule.stop()
        server.stop()
        self._runner.wait()

    def _work(self, kind: str) -> None:
        """One step, in the scheduler's thread. A report that is overdue follows the next evaluation."""
        if kind == GATHER and self._settings.logs is None:
            return
        if kind != REPORT:
            self._runner.run(kind, self._settings, time.time())
        if kind in {EVALUATE, REPORT} and self._report_is_due(time.time()):
            self._runner.run(REPORT, self._settings, time.time())

    def _report_is_due(self, now: float) -> bool:
        """Whether a regular time has passed since the last report; one from the future does not count."""
        reported = self._memory.last_success(REPORT)
        since = reported if reported is not None and reported <= now else self._memory.started_at
        return next_report(self._settings.schedule, since) <= now

    def _read_again(self) -> None:
        self._notifier.reloading()
        try:
            settings = read_settings(self._config_file)
            _refuse_what_needs_a_restart(self._settings, settings)
        except ConfigError as error:
            self._memory.config_problem = str(error)
            log.warning("configuration refused, the old one stays", why=str(error))
        else:
            self._memory.config_problem = ""
            self._settings = self._memory.settings = settings
            configure_logging(level=settings.logging.level, as_json=settings.logging.format == "json")
            self._schedule.replan(settings.schedule, self._memory.last_success, time.time())
            log.info("configuration read anew", config=str(self._config_file))
        self._notifier.ready(self._status())

    def _status(self) -> str:
        """One line for `systemctl status`."""
        doing = f"{self._runner.busy_with} now; " if self._runner.busy_with else ""
        problem = f"; configuration refused: {self._memory.config_problem}" if self._memory.config_problem else ""
        return f"{doing}{self._memory.summary()}{problem}"


class _Clock:
    """Notices when the wall clock was set."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def jumped(self) -> float:
        """By how many seconds it was set since the last call; 0 for what is only drift."""
        offset = time.time() - time.monotonic()
        by, self._offset = offset - self._offset, offset
        return by if abs(by) >= CLOCK_JUMP_SECONDS else 0.0


def _refuse_what_needs_a_restart(old: Settings, new: Settings) -> None:
    for name in ("store", "web"):
        if getattr(old, name) != getattr(new, name):
            raise ConfigError(f"{name} cannot change while the daemon runs: restart it (systemctl restart)")
