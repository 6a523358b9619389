"""A process that starts followers of a log as fast as a fork: one for each line on its input, told by its id.

    python follower.py STORE LOG

A follower reads and commits without end, until it is killed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from advisor.sources.request_log import LogOptions, follow
from advisor.store import Store
from tests.unit.sources.request_log.rotating_log import T0

NOW = T0 + 12 * 3600


def follow_once(store: Store, log: Path, *, budget_bytes: int = 1 << 20) -> bool:
    """One reading, committed; whether there is more."""
    options = LogOptions(paths=(str(log),))
    told = follow(options, store.cursors(), lambda model, _: model, lambda _: 0.0, NOW, budget_bytes=budget_bytes)
    store.commit_logs(told.slices, told.cursors)
    return told.behind


def follow_for_ever(path: Path, log: Path) -> NoReturn:
    store = Store.open(path)
    while True:
        follow_once(store, log)
        time.sleep(random.uniform(0, 0.002))


def main(path: Path, log: Path, work: Callable[[Path, Path], NoReturn] = follow_for_ever) -> None:
    """`work` is what each of them does with the store and the log."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    store = Store.open(path)
    # What is imported late is imported before the first fork.
    store.cursors()
    store.exported()
    store.close()
    for _ in sys.stdin:
        process = os.fork()
        if process == 0:
            work(path, log)
        sys.stdout.write(f"{process}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
