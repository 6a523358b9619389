"""The sequence cap that nobody states, from where running requests stop rising while others wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import EngineSeries

LEAST_SCRAPES = 30
AT_THE_PLATEAU = 0.9
CACHE_FREE = 0.9
TURNED_OVER = 3
"""Requests that every seat has served: an engine that hangs with the same ones shows a plateau too."""


@dataclass(frozen=True, slots=True)
class Plateau:
    """Most requests that run while others wait, and the scrapes in which they waited."""

    seats: int
    scrapes: int


def plateau(engines: Iterable[EngineSeries]) -> Plateau | None:
    """Where running stops on every engine whose requests wait; None where it does not, or not at the same number.

    Scrapes of 15, 16, 16, … running, 40 of them with requests waiting and 39 of these at 16, the cache half full and
    500 requests finished: 16. A full cache stops running as well, so a cache that is full or not known tells nothing.
    """
    waited = [one for engine in engines if not engine.lifetime and (one := _of_engine(engine)) is not None]
    seats = {one.seats for one in waited}
    if len(seats) != 1 or 0 in seats:
        return None
    return Plateau(seats.pop(), sum(one.scrapes for one in waited))


def _of_engine(engine: EngineSeries) -> Plateau | None:
    """None where requests hardly waited; 0 seats where they waited and running did not stop at its most."""
    gauges = engine.samples
    waiting = np.isfinite(gauges.running) & (gauges.waiting > 0)
    scrapes = int(waiting.sum())
    if scrapes < LEAST_SCRAPES:
        return None
    most = float(np.nanmax(gauges.running))
    usage = np.empty(0) if gauges.kv_usage is None else gauges.kv_usage[waiting]
    usage = usage[np.isfinite(usage)]
    holds = (
        most >= 1
        and float((gauges.running[waiting] == most).mean()) >= AT_THE_PLATEAU
        and usage.size >= LEAST_SCRAPES
        and float(np.quantile(usage, 0.95)) <= CACHE_FREE
        and (engine.windows.total("finished") or 0.0) >= TURNED_OVER * most
    )
    return Plateau(int(most) if holds else 0, scrapes)
