"""Work in real processes: it answers, fails, crashes, hangs, is killed and outlives nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from advisor.domain.errors import ConfigError
from advisor.service.worker import Ended, run_apart

pytestmark = pytest.mark.slow


def refuse() -> None:
    raise ConfigError("rules/mine.yaml:7:5: unknown fact")


def crash() -> None:
    raise ZeroDivisionError("secret")


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def quiet() -> None:
    """No logging."""


def run(work: Callable[[], object], deadline_seconds: float = 30.0, *, stopped: bool = False) -> Ended:
    stop = threading.Event()
    if stopped:
        stop.set()
    return run_apart(work, deadline_seconds=deadline_seconds, stop=stop, log=quiet)


def test_the_result_comes_back_from_another_process() -> None:
    done = run(os.getpid)
    assert done.ending == "done"
    assert done.result != os.getpid()


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (refuse, "rules/mine.yaml:7:5: unknown fact"),
        (crash, "an error of the advisor itself (ZeroDivisionError): see its log"),
        (kill_itself, "its process ended without a word: killed, or out of memory?"),
    ],
)
def test_a_failure_is_one_line(work: Callable[[], object], told: str) -> None:
    assert run(work) == Ended("failed", why=told)


def test_what_hangs_is_cut_off() -> None:
    began = time.monotonic()
    assert run(partial(time.sleep, 60), 0.5).ending == "cut_off"
    assert time.monotonic() - began < 20


def test_work_that_is_nearly_done_may_end_when_the_daemon_stops() -> None:
    assert run(os.getpid, stopped=True).ending == "done"


def test_work_that_is_not_is_abandoned_within_seconds() -> None:
    began = time.monotonic()
    assert run(partial(time.sleep, 60), stopped=True).ending == "abandoned"
    assert time.monotonic() - began < 20


def test_a_large_result_is_no_trouble() -> None:
    assert run(partial(bytes, 20_000_000)).result == bytes(20_000_000)


PARENT = """
import sys, threading, time
from functools import partial
from pathlib import Path
from advisor.service.worker import run_apart
from tests.unit.service.test_worker import note_and_sleep, quiet

if __name__ == "__main__":
    work = partial(note_and_sleep, Path(sys.argv[1]))
    run_apart(work, deadline_seconds=60, stop=threading.Event(), log=quiet)
"""


def note_and_sleep(note: Path) -> None:
    note.write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(60)


def test_work_dies_with_a_daemon_that_is_killed(tmp_path: Path) -> None:
    script, note = tmp_path / "parent.py", tmp_path / "pid"
    script.write_text(PARENT, encoding="utf-8")
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen([sys.executable, str(script), str(note)], env=environment) as parent:
        eventually(lambda: note.exists() and bool(note.read_text(encoding="utf-8")))
        child = Path("/proc", note.read_text(encoding="utf-8"))
        parent.kill()
        eventually(lambda: not child.exists() or "\nState:\tZ" in (child / "status").read_text(encoding="utf-8"))


def eventually(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
