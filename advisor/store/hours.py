"""What was measured hour by hour, for as long as a change may be compared with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from advisor.domain.errors import StoreError
from advisor.domain.hours import HourFacts

from .database import Database

KEPT_SECONDS = 49 * 86_400.0
"""Four weeks before a change, two weeks in which it is judged, and one to spare."""


def save_hours(database: Database, hours: Mapping[str, Iterable[HourFacts]]) -> None:
    """Keep hours by deployment. What is known of an hour stays: later readings may lack engines that served in it."""
    with database.transaction():
        for deployment, listed in hours.items():
            for hour in listed:
                database.change(
                    "INSERT OR IGNORE INTO hour (deployment, start, epoch, settings, figures) VALUES (?, ?, ?, ?, ?)",
                    deployment,
                    int(hour.start),
                    hour.epoch,
                    json.dumps(dict(hour.settings)),
                    json.dumps({name: float(f"{value:.5g}") for name, value in hour.figures.items()}),
                )


def hours(database: Database, deployment: str, since: float) -> tuple[HourFacts, ...]:
    """The hours of a deployment that began at a moment (UNIX seconds) or later, oldest first."""
    rows = database.rows("SELECT * FROM hour WHERE deployment = ? AND start >= ? ORDER BY start", deployment, since)
    try:
        return tuple(
            HourFacts(float(r["start"]), r["epoch"], json.loads(r["settings"]), json.loads(r["figures"])) for r in rows
        )
    except ValueError as problem:
        raise StoreError(f"{database.path}: an hour is damaged: restore the store from a backup") from problem


def last_hour(database: Database, deployment: str) -> float | None:
    """When the newest hour that is known of a deployment began."""
    row = database.row("SELECT max(start) FROM hour WHERE deployment = ?", deployment)
    return None if row is None or row[0] is None else float(row[0])
