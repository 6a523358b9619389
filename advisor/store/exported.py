"""What the host agent counted, by model, and how far it has read the logs for that."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from advisor.domain.cursor import Cursors
from advisor.domain.errors import StoreError
from advisor.domain.exported import EDGES, OUTCOMES, QUANTITIES, LengthCounts
from advisor.domain.histogram import Buckets

from .cursors import write_cursors
from .database import Database
from .packing import pack, unpack


def counting_since(database: Database, now: float) -> float:
    """When counting began, UNIX seconds: now, unless it began before."""
    database.change("INSERT OR IGNORE INTO counting (id, since) VALUES (1, ?)", now)
    row = database.row("SELECT since FROM counting")
    return float(row["since"]) if row else now


def exported(database: Database) -> dict[str, LengthCounts]:
    """The counts of every model."""
    rows = database.rows("SELECT model, body FROM exported ORDER BY model")
    try:
        return {row["model"]: _unpacked(row["body"]) for row in rows}
    except ValueError as problem:
        raise StoreError(f"{database.path}: the counts are damaged: restore the store from a backup") from problem


def commit_exported(database: Database, counts: Mapping[str, LengthCounts], cursors: Cursors) -> None:
    """Replace the counts of these models and keep the cursors that go with them: both or neither."""
    with database.transaction():
        for model, counted in counts.items():
            database.change("INSERT OR REPLACE INTO exported (model, body) VALUES (?, ?)", model, _packed(counted))
        write_cursors(database, cursors)


def _packed(counted: LengthCounts) -> bytes:
    histograms = counted.histograms
    return pack(
        {"sums": {q: h.total for q, h in histograms.items()}, "outcomes": dict(counted.outcomes)},
        {q: h.counts.astype(np.int64) for q, h in histograms.items()},
    )


def _unpacked(body: bytes) -> LengthCounts:
    packed = unpack(body)
    try:
        sums, outcomes = packed.values["sums"], packed.values["outcomes"]
        if any(packed.arrays[q].size != EDGES.size + 1 for q in QUANTITIES):
            raise ValueError("counted in other buckets")
        return LengthCounts(
            {q: Buckets(EDGES, packed.arrays[q].astype(np.float64), float(sums[q])) for q in QUANTITIES},
            {outcome: float(outcomes[outcome]) for outcome in OUTCOMES},
        )
    except KeyError as problem:
        raise ValueError(f"no {problem} in it") from problem
