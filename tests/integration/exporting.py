"""A process that starts host agents over a log as fast as a fork, as follower.py starts followers.

python exporting.py STORE LOG
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import NoReturn

from advisor.exporter.follower import Follower
from advisor.sources.request_log import LogOptions
from advisor.store import Store
from tests.integration.follower import NOW, main


def export_for_ever(path: Path, log: Path) -> NoReturn:
    """Count and commit without end."""
    agent = Follower(LogOptions(paths=(str(log),)), Store.open(path), 20, NOW)
    while True:
        agent.step(NOW)
        time.sleep(random.uniform(0, 0.002))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), export_for_ever)
