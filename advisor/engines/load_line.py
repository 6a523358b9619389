"""What an engine prints of its load while it serves, in terms that hold for every engine."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadLine:
    """One line: sequences that run, requests that wait, and the share of the cache in use, 0..1; `rank` prints it."""

    rank: str
    running: int
    waiting: int
    kv_usage: float


@dataclass(frozen=True, slots=True)
class LoadLines:
    """How one engine prints its load.

    telling: finds the few lines worth reading. starts: of these the ones that a start prints, and nothing else.
    read: a line's load, None for one that tells none. slot_seconds: how often there is one at least, under load.
    """

    telling: re.Pattern[bytes]
    starts: re.Pattern[bytes]
    read: Callable[[bytes], LoadLine | None]
    slot_seconds: float
