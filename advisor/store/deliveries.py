"""What was sent: each message at most once, over restarts and between processes."""

from __future__ import annotations

import sqlite3

from advisor.domain.ports import Delivery

from .database import Database


class Deliveries:
    """The delivery log of the store. Every change is on the disk when the call returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def state(self, key: str) -> Delivery | None:
        """What is known of a message; None when no attempt ever began."""
        row = self._database.row("SELECT * FROM delivery WHERE key = ?", key)
        return _delivery(row) if row else None

    def begin(self, key: str, now: float, *, after: int = 0) -> bool:
        """Claim the next attempt, as the caller who has seen `after` of them; False when another was faster."""
        begun = self._database.change(
            "INSERT INTO delivery (key, state, attempts, first_begun_at, begun_at, changed_at) "
            "SELECT ?, 'sending', 1, ?, ?, ? WHERE ? = 0 ON CONFLICT DO NOTHING",
            key,
            now,
            now,
            now,
            after,
        )
        again = self._database.change(
            "UPDATE delivery SET state = 'sending', attempts = attempts + 1, begun_at = ?, changed_at = ? "
            "WHERE key = ? AND attempts = ? AND state <> 'sent'",
            now,
            now,
            key,
            after,
        )
        return begun + again == 1

    def sent(self, key: str, now: float, reference: str) -> None:
        """The message is there."""
        self._database.change(
            "UPDATE delivery SET state = 'sent', changed_at = ?, reference = ?, why = '', permanent = 0 WHERE key = ?",
            now,
            reference,
            key,
        )

    def failed(self, key: str, now: float, why: str, *, permanent: bool) -> None:
        """The message is not there."""
        self._database.change(
            "UPDATE delivery SET state = 'failed', changed_at = ?, why = ?, permanent = ? "
            "WHERE key = ? AND state <> 'sent'",
            now,
            why,
            permanent,
            key,
        )

    def latest(self, limit: int) -> tuple[Delivery, ...]:
        """Those that changed last, latest first."""
        rows = self._database.rows("SELECT * FROM delivery ORDER BY changed_at DESC, key LIMIT ?", limit)
        return tuple(map(_delivery, rows))


def _delivery(row: sqlite3.Row) -> Delivery:
    return Delivery(**{**dict(row), "permanent": bool(row["permanent"])})
