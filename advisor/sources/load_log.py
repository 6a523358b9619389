"""An engine's own log as a source of its load: what it prints while it serves, as gauges on a regular grid.

Engines print such lines only while they are busy, so a slot without one was idle.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from advisor.domain.evidence import EngineSeries, EpochCause, Samples, Window
from advisor.engines.load_line import LoadLine, LoadLines
from advisor.engines.sglang.load_line import LOAD_LINES as SGLANG
from advisor.engines.vllm.load_line import LOAD_LINES as VLLM

from .engine_log import engine_lines
from .log_formats import moment
from .metrics_engine import NO_WINDOWS

LOAD_LINES: Mapping[str, LoadLines] = {"vllm": VLLM, "sglang": SGLANG}
MOST_SLOTS = 250_000
_DAY_SECONDS = 86_400.0
_YEARLESS = re.compile(rb"\b(?:DEBUG|INFO|WARNING|ERROR) (\d\d-\d\d \d\d:\d\d:\d\d)\b")

Seen = dict[int, LoadLine]
"""The last line of each slot of a rank."""


def read_load(place: Path, kind: str, window: Window, journals: Path | None = None) -> tuple[EngineSeries, ...]:
    """Running, waiting and cache usage of each rank since the last start within the window; empty where none is told.

    place: a file, or `journal:UNIT` in this machine's journal or in `journals`. kind: of engine. Raises SourceError
    when it cannot be read.
    """
    told = LOAD_LINES.get(kind)
    if told is None:
        return ()
    ranks: dict[str, Seen] = {}
    cause: EpochCause = "first_seen"
    for at, line in _lines(engine_lines(place, told.telling, window.start, journals), told, window.end):
        if line is None:
            ranks, cause = {}, "restarted"
        elif window.start <= at <= window.end:
            ranks.setdefault(line.rank, {})[int(at // told.slot_seconds)] = line
    return tuple(_engine(place.name, rank, seen, cause, told.slot_seconds) for rank, seen in sorted(ranks.items()))


def _lines(lines: Iterable[bytes], told: LoadLines, newest: float) -> Iterator[tuple[float, LoadLine | None]]:
    """When each line was printed, with its load; None for a start, of which what came before tells nothing."""
    for line in lines:
        load, at = told.read(line), _time(line, newest)
        if load is not None and math.isfinite(at):
            yield at, load
        elif told.starts.search(line):
            yield at, None


def _time(line: bytes, newest: float) -> float:
    """UNIX seconds; where the engine leaves out the year it is the last in which the day is not to come yet.

    >>> _time(b"INFO 12-31 23:59:50 [loggers.py:257] Engine 000", newest=1767225600.0)  # 2026-01-01
    1767225590.0
    """
    at = moment(line)
    yearless = _YEARLESS.search(line, 0, 200)
    if math.isfinite(at) or not yearless:
        return at
    year = datetime.fromtimestamp(newest + _DAY_SECONDS, UTC).year
    for candidate in (year, year - 1):
        try:
            told = datetime.fromisoformat(f"{candidate}-{yearless[1].decode()}").replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
        if told <= newest + _DAY_SECONDS:
            return told
    return math.nan


def _engine(instance: str, rank: str, seen: Seen, cause: EpochCause, width: float) -> EngineSeries:
    slots = range(max(min(seen), max(seen) - MOST_SLOTS), max(seen) + 1)
    idle = LoadLine(rank, 0, 0, 0.0)
    lines = [seen.get(slot, idle) for slot in slots]
    return EngineSeries(
        instance=instance,
        engine=rank,
        epoch_start=slots[0] * width,
        samples=Samples(
            np.array([(slot + 1) * width for slot in slots]),
            np.array([line.running for line in lines], float),
            np.array([line.waiting for line in lines], float),
            np.array([line.kv_usage for line in lines], float),
        ),
        windows=NO_WINDOWS,
        lengths={},
        latencies={},
        epoch_cause=cause,
    )
