"""What request logs said, by deployment and hour, and how far they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.domain.cursor import Cursors
from advisor.domain.errors import StoreError
from advisor.domain.evidence import RequestLog, Window

from .cursors import read_cursors, write_cursors
from .database import Database
from .slices import by_hours, merged, packed_lengths, unpacked_lengths, with_arrivals_since
from .thinning import MAX_ROWS, MAX_ROWS_AN_HOUR, Thinned, packed_latency, together, unpacked_latency

HOUR, DAY = 3600, 86_400


def commit_logs(database: Database, slices: Mapping[tuple[str, int], RequestLog], cursors: Cursors) -> None:
    """Add what was new and keep how far it was read: both or neither."""
    with database.transaction():
        for (deployment, start), log in slices.items():
            _add(database, deployment, start, log)
        write_cursors(database, cursors)


def cursors(database: Database) -> Cursors:
    """How far logs are read."""
    try:
        return read_cursors(database)
    except (ValueError, TypeError, KeyError) as problem:
        raise StoreError(f"{database.path}: the log cursors are damaged: restore the store from a backup") from problem


def logged_deployments(database: Database) -> tuple[str, ...]:
    """The deployments of which there is any log, by name."""
    return tuple(row[0] for row in database.rows("SELECT DISTINCT deployment FROM slice ORDER BY deployment"))


def request_log(database: Database, deployment: str, window: Window, latency_since: float) -> RequestLog | None:
    """The log of a window, in whole hours (days, where hours were rolled up); None where there is nothing.

    An hour that begins before the window counts when most of it lies within. Latencies are of whole hours since
    `latency_since` (UNIX seconds), at most 131,072 distinct ones.
    """
    rows = database.rows(
        "SELECT start, lengths, latency FROM slice "
        "WHERE deployment = ? AND start + seconds / 2 >= ? AND start < ? ORDER BY start",
        deployment,
        window.start,
        window.end,
    )
    if not rows:
        return None
    try:
        log = merged([unpacked_lengths(row["lengths"]) for row in rows])
        timed = [r["latency"] for r in rows if r["latency"] is not None and r["start"] >= latency_since]
        latency = together([unpacked_latency(body) for body in timed], MAX_ROWS).sample if timed else None
    except ValueError as problem:
        raise _damaged(database, deployment) from problem
    return replace(with_arrivals_since(log, rows[0]["start"]), latency=latency)


def roll_up(database: Database, before: float) -> None:
    """Make days of the hours of days that ended `before` (UNIX seconds). Latencies are not kept that long."""
    days = database.rows(
        "SELECT DISTINCT deployment, start / 86400 * 86400 AS day FROM slice WHERE seconds = 3600 AND start < ?",
        int(before // DAY * DAY),
    )
    for row in days:
        _roll_up_day(database, row["deployment"], row["day"])


def _roll_up_day(database: Database, deployment: str, day: int) -> None:
    within = deployment, day, day + DAY
    with database.transaction():
        rows = database.rows(
            "SELECT lengths FROM slice WHERE deployment = ? AND start >= ? AND start < ? ORDER BY start", *within
        )
        whole = _merged(database, deployment, [row["lengths"] for row in rows])
        database.change("DELETE FROM slice WHERE deployment = ? AND start >= ? AND start < ?", *within)
        _write(database, deployment, day, DAY, packed_lengths(by_hours(whole)), None)


def _add(database: Database, deployment: str, start: int, log: RequestLog) -> None:
    row = database.row(
        "SELECT lengths, latency FROM slice WHERE deployment = ? AND start = ? AND seconds = ?", deployment, start, HOUR
    )
    parts = [Thinned(log.latency, 0)] if log.latency is not None else []
    try:
        if row is not None:
            log = merged([unpacked_lengths(row["lengths"]), log])
        if row is not None and row["latency"] is not None:
            parts.insert(0, unpacked_latency(row["latency"]))
    except ValueError as problem:
        raise _damaged(database, deployment) from problem
    latency = packed_latency(together(parts, MAX_ROWS_AN_HOUR)) if parts else None
    _write(database, deployment, start, HOUR, packed_lengths(log), latency)


def _merged(database: Database, deployment: str, bodies: Sequence[bytes]) -> RequestLog:
    try:
        return merged([unpacked_lengths(body) for body in bodies])
    except ValueError as problem:
        raise _damaged(database, deployment) from problem


def _write(
    database: Database, deployment: str, start: int, seconds: int, lengths: bytes, latency: bytes | None
) -> None:
    database.change(
        "INSERT OR REPLACE INTO slice (deployment, start, seconds, lengths, latency) VALUES (?, ?, ?, ?, ?)",
        deployment,
        start,
        seconds,
        lengths,
        latency,
    )


def _damaged(database: Database, deployment: str) -> StoreError:
    return StoreError(f"{database.path}: the request log of {deployment[:80]!r} is damaged: restore it from a backup")
