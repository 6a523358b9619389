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


def load_line(found: re.Match[bytes] | None) -> LoadLine | None:
    """The line that a pattern with the groups `rank`, `running`, `waiting` and `usage` (in percent) found."""
    if found is None:
        return None
    told = found.groupdict()
    rank = (told["rank"] or b"0").decode().lstrip("0") or "0"
    return LoadLine(rank, int(told["running"]), int(told["waiting"]), min(float(told["usage"]) / 100, 1.0))
