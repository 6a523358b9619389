"""The rows that are simulated: promises to a number of plants, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.accuracy.plants import plants
from tests.accuracy.promises import PROMISE, promises
from tests.accuracy.table import Row, bound_row, share_row

SEEDS = (1, 2)


def rows(data: Path | None, seeds: Sequence[int] = SEEDS) -> list[Row]:
    """One row a promise, over plants with lengths of mixes and of DATA; every other one has a request log."""
    listed = plants(data, seeds)
    kept = [promises(plant, logged=place % 2 == 0) for place, plant in enumerate(listed)]

    def named(field: str) -> list[tuple[str, Any]]:
        return [(plant.name, getattr(one, field)) for plant, one in zip(listed, kept, strict=True)]

    return [
        bound_row("ITL at 1.5x the observed", named("itl"), 0.1, 0.9),
        bound_row("capacity at that cap", named("capacity_at_cap"), 0.1, 0.9),
        bound_row("capacity within SLO / simulated", named("capacity"), 0.25, 0.9),
        _preempted(named("preempted_share")),
        bound_row("  memory ceiling / simulated", named("memory_ceiling"), 0.25, 0.9),
        share_row("latency ceiling within bounds", named("latency_holds"), 0.9),
        bound_row("  latency ceiling / simulated", named("latency_ceiling"), 0.25, 0.9),
        share_row("replicas advised meet the SLO", named("replicas_hold"), 1.0),
    ]


def _preempted(shares: Sequence[tuple[str, float | None]]) -> Row:
    name, most = max(((n, s) for n, s in shares if s is not None), key=lambda pair: pair[1], default=("", 0.0))
    held = [(plant, None if share is None else share <= PROMISE) for plant, share in shares]
    return share_row("preempted at the memory ceiling", held, 0.9, goal=f"<= {PROMISE:.0%}", worst=f"{most:.1%} {name}")
