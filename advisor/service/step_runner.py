"""Runs one step in a process of its own, notes it in the store, and tells the log: whatever happens, others go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from importlib import import_module

import structlog

from advisor.domain.errors import StoreError
from advisor.owners import Owners
from advisor.process.logs import configure_logging
from advisor.service.account import Account
from advisor.service.memory import Memory
from advisor.service.worker import Ended, run_apart
from advisor.settings import Settings
from advisor.store import Store

STUCK_SECONDS = 60.0
"""Longer than a step may outlive its deadline: cutting it off takes seconds."""

Step = Callable[[Settings, float, Owners | None], Account]

log = structlog.get_logger()


class StepRunner:
    """One step at a time, called from the scheduler's thread."""

    def __init__(self, memory: Memory, stop: threading.Event) -> None:
        self._memory, self._stop = memory, stop
        self._free = threading.Lock()
        self._latest_end = float("inf")
        self.busy_with = ""

    @property
    def stuck(self) -> bool:
        """Whether a step has outlived its deadline, so that only a restart can help."""
        return time.monotonic() > self._latest_end

    def wait(self) -> None:
        """Until the step that runs has ended."""
        with self._free:
            pass

    def run(self, kind: str, settings: Settings, now: float) -> None:
        """Run a step to its end, good or bad. Never raises for what happens in it."""
        with self._free:
            if self._stop.is_set():
                return
            self.busy_with = kind
            self._latest_end = time.monotonic() + settings.schedule.step_deadline + STUCK_SECONDS
            try:
                self._run(kind, settings, now)
            finally:
                self._latest_end, self.busy_with = float("inf"), ""

    def _run(self, kind: str, settings: Settings, now: float) -> None:
        began = time.monotonic()
        number = self._note_beginning(kind, settings, now)
        ended = run_apart(
            partial(_step, kind, settings, now, self._memory.owners),
            deadline_seconds=settings.schedule.step_deadline,
            stop=self._stop,
            log=partial(configure_logging, level=settings.logging.level, as_json=settings.logging.format == "json"),
        )
        seconds = time.monotonic() - began
        account = _account(ended)
        outcome = ended.ending if ended.ending != "done" else "failed" if account.problems else "ok"
        self._memory.ran(kind, outcome, seconds, now)
        self._take(account)
        self._note_end(number, settings, now + seconds, outcome, account)
        tell = log.info if outcome == "ok" else log.warning
        detail = {"detail": account.detail} if account.detail else {}
        tell("step", kind=kind, outcome=outcome, seconds=round(seconds, 2), **detail)

    def _take(self, account: Account) -> None:
        """What the step found out, into the memory that is shown."""
        self._memory.owners = account.owners or self._memory.owners
        try:
            if account.unsaved is not None:
                self._memory.show(*account.unsaved)
            else:
                self._memory.refresh()
        except StoreError as error:
            log.warning("the store cannot be read", why=str(error))

    def _note_beginning(self, kind: str, settings: Settings, now: float) -> int | None:
        try:
            with closing(Store.open(settings.store.path)) as store:
                return store.begin_run(kind, now)
        except StoreError as error:
            log.warning("the run cannot be recorded", kind=kind, why=str(error))
            return None

    def _note_end(self, number: int | None, settings: Settings, at: float, outcome: str, account: Account) -> None:
        if number is None:
            return
        try:
            with closing(Store.open(settings.store.path)) as store:
                store.end_run(number, at, outcome, account.parts)
        except StoreError as error:
            log.warning("the run cannot be recorded", why=str(error))


def _step(kind: str, settings: Settings, now: float, owners: Owners | None) -> Account:
    """What the step's process runs; only there are the libraries loaded that evaluating takes."""
    step: Step = import_module(f"advisor.service.steps.{kind}").run
    return step(settings, now, owners)


def _account(ended: Ended) -> Account:
    """A step that gave no account of itself has one problem: how it ended."""
    return ended.result if isinstance(ended.result, Account) else Account(problems=[ended.why])
