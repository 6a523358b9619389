"""A piece of work in a process of its own: it can be cut off when it hangs, and its memory goes with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import parent_process
from typing import Literal

import structlog

from advisor.domain.errors import AdvisorError

Ending = Literal["done", "failed", "cut_off", "abandoned"]
GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Ended:
    """How work ended. `result` is what it returned; `why` is one line for people where it returned nothing."""

    ending: Ending
    result: object = None
    why: str = ""


def run_apart(
    work: Callable[[], object], *, deadline_seconds: float, stop: threading.Event, log: Callable[[], None]
) -> Ended:
    """Run `work` in a fresh process and wait for its end. Work, its result and `log` must be picklable.

    After `deadline_seconds` the process is cut off. Once `stop` is set the work has GRACE_SECONDS to end by itself;
    what it wrote in finished transactions stays. `log` sets up logging in the process.
    """
    # A fork would copy the locks that other threads of the daemon hold at that moment.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, sender, log), name="advisor-step")
    process.start()
    sender.close()
    try:
        return _await(process.sentinel, receiver, time.monotonic() + deadline_seconds, stop)
    finally:
        _end(process)
        receiver.close()


def _await(sentinel: int, receiver: Connection, deadline: float, stop: threading.Event) -> Ended:
    patience = None
    while time.monotonic() < deadline:
        ready = wait([receiver, sentinel], timeout=_POLL_SECONDS)
        if receiver in ready:
            return _received(receiver)
        if sentinel in ready:
            return Ended("failed", why="its process ended without a word: killed, or out of memory?")
        if stop.is_set():
            patience = patience or time.monotonic() + GRACE_SECONDS
            if time.monotonic() > patience:
                return Ended("abandoned", why="the daemon stops")
    return Ended("cut_off", why="it took longer than schedule.step_deadline")


def _received(receiver: Connection) -> Ended:
    try:
        answer = receiver.recv()
    except (EOFError, OSError):
        return Ended("failed", why="its process ended without a word: killed, or out of memory?")
    return answer if isinstance(answer, Ended) else Ended("failed", why="its process answered nonsense")


def _end(process: multiprocessing.process.BaseProcess) -> None:
    process.join(0.5)
    if process.is_alive():
        process.terminate()
        process.join(1.0)
    if process.is_alive():
        process.kill()
        process.join()
    process.close()


def _child(work: Callable[[], object], sender: Connection, log: Callable[[], None]) -> None:
    # Control-C in a terminal reaches the whole group; what becomes of this process is the daemon's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_die_with_the_daemon, daemon=True).start()
    log()
    sender.send(_outcome(work))


def _outcome(work: Callable[[], object]) -> Ended:
    try:
        return Ended("done", work())
    except AdvisorError as error:
        return Ended("failed", why=str(error))
    except Exception as error:  # noqa: BLE001 - the job boundary: one step that fails must not end the service
        # Its text may hold what was read, so it goes to the log alone and not to people.
        structlog.get_logger().error("step crashed", exc_info=error)
        return Ended("failed", why=f"an error of the advisor itself ({type(error).__name__}): see its log")


def _die_with_the_daemon() -> None:
    """Two processes with one store, of which the older nobody knows, would be one too many."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
