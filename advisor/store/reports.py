"""The latest report, and the facts of all of them over time."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence

from advisor.domain.errors import StoreError

from .database import Database

Series = tuple[tuple[float, float], ...]
"""(UNIX seconds, value), oldest first."""


def save_report(database: Database, at: float, document_json: str, facts: Mapping[str, Mapping[str, float]]) -> None:
    """Keep a report in place of the one before, and its facts beside those of others."""
    body = zlib.compress(document_json.encode(), 1)
    with database.transaction():
        database.change("INSERT OR REPLACE INTO report (id, at, document) VALUES (1, ?, ?)", at, body)
        for deployment, values in facts.items():
            known = {name: value for name, value in values.items() if math.isfinite(value)}
            database.change(
                "INSERT OR REPLACE INTO fact (deployment, at, body) VALUES (?, ?, ?)", deployment, at, json.dumps(known)
            )


def latest_report(database: Database) -> tuple[float, str] | None:
    """When the latest report was made, and its document."""
    row = database.row("SELECT at, document FROM report")
    try:
        return (row["at"], zlib.decompress(row["document"]).decode()) if row else None
    except (zlib.error, UnicodeDecodeError) as problem:
        raise StoreError(f"{database.path}: the latest report is damaged: wait for the next evaluation") from problem


def fact_history(database: Database, deployment: str, names: Sequence[str], since: float) -> dict[str, Series]:
    """Facts of a deployment since a moment (UNIX seconds), by name; those that were never known are empty."""
    series: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    rows = database.rows("SELECT at, body FROM fact WHERE deployment = ? AND at >= ? ORDER BY at", deployment, since)
    for row in rows:
        values = json.loads(row["body"])
        for name in names:
            if name in values:
                series[name].append((row["at"], values[name]))
    return {name: tuple(points) for name, points in series.items()}


def first_seen(database: Database, since: float) -> dict[str, float]:
    """The time of each deployment's first facts since a moment, in UNIX seconds."""
    rows = database.rows("SELECT deployment, min(at) AS first FROM fact WHERE at >= ? GROUP BY deployment", since)
    return {row["deployment"]: row["first"] for row in rows}


def thin_facts(database: Database, before: float) -> None:
    """Keep the last facts of each day (UTC) `before` a moment (UNIX seconds)."""
    database.change(
        "DELETE FROM fact WHERE at < ? AND EXISTS (SELECT 1 FROM fact AS later "
        "WHERE later.deployment = fact.deployment AND later.at > fact.at AND later.at < ? "
        "AND later.at < (CAST(fact.at / 86400 AS INTEGER) + 1) * 86400)",
        before,
        before,
    )
