"""Advice and its life."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from advisor.domain.advice import Advice, EvidenceLine, Prediction
from advisor.domain.errors import StoreError
from advisor.domain.life import LIVE, AdviceRecord, Score

from .database import Database

Change = Callable[[tuple[AdviceRecord, ...]], Iterable[AdviceRecord]]


def records(database: Database) -> tuple[AdviceRecord, ...]:
    """All pieces of advice, in the order in which they were first seen."""
    rows = database.rows("SELECT body FROM advice ORDER BY first_seen, deployment, id")
    try:
        return tuple(_record(json.loads(row["body"])) for row in rows)
    except (ValueError, KeyError, TypeError) as problem:
        raise StoreError(f"{database.path}: a piece of advice is damaged: restore the store from a backup") from problem


def save_records(database: Database, changed: Iterable[AdviceRecord]) -> None:
    """Keep these as they are now; others stay."""
    with database.transaction():
        _write(database, changed)


def change_records(database: Database, change: Change) -> tuple[AdviceRecord, ...]:
    """Keep what `change` makes of all records, while nobody else can change them; and return that.

    So that a snooze on the command line is not undone by an evaluation that began before it.
    """
    with database.transaction():
        changed = tuple(change(records(database)))
        _write(database, changed)
    return changed


def forget_records(database: Database, before: float) -> None:
    """Delete advice whose life ended `before` a moment (UNIX seconds)."""
    live = ", ".join("?" * len(LIVE))
    database.change(f"DELETE FROM advice WHERE last_seen < ? AND state NOT IN ({live})", before, *LIVE)  # noqa: S608


def _write(database: Database, changed: Iterable[AdviceRecord]) -> None:
    for record in changed:
        database.change(
            "INSERT OR REPLACE INTO advice (deployment, id, first_seen, last_seen, state, body) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            record.deployment,
            record.id,
            record.first_seen,
            record.last_seen,
            record.state,
            json.dumps(asdict(record)),
        )


def _record(body: dict[str, Any]) -> AdviceRecord:
    return AdviceRecord(
        **{**body, "advice": _advice(body["advice"]), "scores": tuple(Score(**score) for score in body["scores"])}
    )


def _advice(body: dict[str, Any]) -> Advice:
    parts = {
        "evidence": tuple(EvidenceLine(**line) for line in body["evidence"]),
        "prediction": tuple(Prediction(**prediction) for prediction in body["prediction"]),
        "options": tuple(body["options"]),
    }
    return Advice(**{**body, **parts})
