"""A follower that is killed at any moment, while its log grows and rotates, counts every line once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.domain.evidence import Window
from advisor.store import Store
from tests.integration.follower import NOW, follow_once
from tests.unit.sources.request_log.rotating_log import T0, RotatingLog

ROUNDS = int(os.environ.get("ADVISOR_KILL_ROUNDS", "30"))
FOLLOWER = Path(__file__).with_name("follower.py")
ROOT = Path(__file__).parents[2]


class Followers:
    """Starts followers, one at a time, and kills them."""

    def __init__(self, store: Path, log: Path, program: Path = FOLLOWER) -> None:
        command = [sys.executable, str(program), str(store), str(log)]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
        self._starter = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def start(self) -> int:
        assert self._starter.stdin is not None
        assert self._starter.stdout is not None
        self._starter.stdin.write("one\n")
        self._starter.stdin.flush()
        return int(self._starter.stdout.readline())

    def close(self) -> None:
        self._starter.communicate(timeout=10)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RotatingLog]:
    log = RotatingLog(tmp_path, keep=4 * ROUNDS)
    yield log
    log.close()


def live(log: RotatingLog, rng: random.Random) -> None:
    """A few moments in the life of a log."""
    for _ in range(rng.randint(1, 4)):
        log.append(rng.randint(0, 60))
        pause(rng)
        match rng.randint(0, 9):
            case 0:
                log.rename()
            case 1:
                log.rename(compress=True)
            case 2:
                log.copy_truncate()
                pause(rng)
                log.truncate(compress=rng.random() < 0.5)
            case 3:
                log.compress_all()


def pause(rng: random.Random) -> None:
    time.sleep(rng.uniform(0, 0.15))


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    while Path(f"/proc/{process}").exists():
        time.sleep(0.0005)


@pytest.mark.integration
def test_every_line_counts_once_though_the_reader_is_killed(tmp_path: Path, log: RotatingLog) -> None:
    seed = random.randrange(1 << 32)
    rng, path = random.Random(seed), tmp_path / "advisor.db"
    Store.open(path).close()
    followers = Followers(path, log.path)
    for _ in range(ROUNDS):
        process = followers.start()
        live(log, rng)
        kill(process)
    followers.close()
    store = Store.open(path)
    known = store.request_log("m", Window(T0, NOW), T0)
    while follow_once(store, log.path):
        pass
    counted = store.request_log("m", Window(T0, NOW), T0)
    store.close()
    assert counted is not None, f"seed {seed}"
    assert known is not None, f"seed {seed}: nothing was committed before a kill"
    assert counted.served.n == log.written, f"seed {seed}"
    assert counted.served.prompt.tolist() == list(range(1, log.written + 1)), f"seed {seed}"
