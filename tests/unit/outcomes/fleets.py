"""Replicas that ran for days with this and that setting, for tests of who is a canary and what it shows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from advisor.domain.evidence import CounterWindows, EngineSeries, Flag, FlagValue, Samples, as_floats

HOUR, DAY = 3600.0, 86_400.0
NOW = 100 * DAY  # on the hour, so that hours are easily counted
EVERY = 300.0  # a reading each five minutes


def replica(
    instance: str = "a:8000",
    *,
    hours: float = 24.0,
    itl: npt.ArrayLike = 0.010,
    rate: float = 1.0,
    waiting: float = 0.0,
    pool: int | None = None,
    version: str | None = None,
    rank: str = "0",
    **flags: FlagValue,
) -> EngineSeries:
    """Up for so many hours until NOW, serving `rate` requests a second at `itl` (seconds; one, or one an hour)."""
    start = NOW - hours * HOUR
    time = as_floats(np.arange(start, NOW + 1, EVERY))
    slots = time.size - 1
    hourly = np.broadcast_to(as_floats(itl), (int(np.ceil(hours)),))
    gap = hourly[np.minimum((time[:-1] - start) // HOUR, hourly.size - 1).astype(int)]
    finished = np.full(slots, rate * EVERY)
    deltas = {"finished": finished, "itl_count": 100 * finished, "itl_sum": 100 * finished * gap}
    deltas |= {"ttft_count": finished, "ttft_sum": 0.2 * finished, "preemptions": np.zeros(slots)}
    edges = as_floats([0.01, 0.025, 0.05])
    within = np.stack([np.zeros(slots), 0.75 * finished, 0.25 * finished, np.zeros(slots)], axis=1)
    return EngineSeries(
        instance=instance,
        engine=rank,
        epoch_start=start,
        samples=Samples(time, np.full(time.size, 10.0), np.full(time.size, waiting), None),
        windows=CounterWindows(time[:-1], time[1:], deltas, edges, within),
        lengths={},
        latencies={},
        flags=told(flags),
        version=version,
        pool_tokens=pool,
    )


def told(flags: Mapping[str, FlagValue]) -> dict[str, Flag]:
    """Flags as the engine's own metrics tell them."""
    return {name: Flag(value, "metrics") for name, value in flags.items()}
