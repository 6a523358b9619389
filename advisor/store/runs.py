"""What the daemon did when, and how it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .database import Database

Step = tuple[str, float, str]
"""Name, seconds, and one line of detail."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. `ended_at` and `outcome` are None while it runs, and stay so when the process was killed in it."""

    id: int
    kind: str
    began_at: float
    ended_at: float | None
    outcome: str | None
    steps: tuple[Step, ...]


def begin_run(database: Database, kind: str, at: float) -> int:
    """Note the beginning; the number of the run."""
    return database.insert("INSERT INTO run (kind, began_at) VALUES (?, ?)", kind, at)


def end_run(database: Database, run: int, at: float, outcome: str, steps: Sequence[Step]) -> None:
    """Note the end."""
    with database.transaction():
        database.change("UPDATE run SET ended_at = ?, outcome = ? WHERE id = ?", at, outcome, run)
        for place, (name, seconds, detail) in enumerate(steps):
            database.change(
                "INSERT INTO step (run, place, name, seconds, detail) VALUES (?, ?, ?, ?, ?)",
                run,
                place,
                name,
                seconds,
                detail,
            )


def last_success(database: Database, kind: str) -> float | None:
    """When a run of this kind last ended with the outcome `ok`."""
    row = database.row("SELECT max(ended_at) FROM run WHERE kind = ? AND outcome = 'ok'", kind)
    return row[0] if row else None


def last_runs(database: Database, limit: int) -> tuple[RunRow, ...]:
    """The latest runs, latest first."""
    return tuple(
        RunRow(row["id"], row["kind"], row["began_at"], row["ended_at"], row["outcome"], _steps(database, row["id"]))
        for row in database.rows("SELECT * FROM run ORDER BY id DESC LIMIT ?", limit)
    )


def _steps(database: Database, run: int) -> tuple[Step, ...]:
    rows = database.rows("SELECT name, seconds, detail FROM step WHERE run = ? ORDER BY place", run)
    return tuple((row["name"], row["seconds"], row["detail"]) for row in rows)
