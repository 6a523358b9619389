"""Evidence from few arguments, for tests of what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from advisor.domain.catalogue import CATALOGUE
from advisor.domain.evidence import (
    CounterWindows,
    EngineSeries,
    Evidence,
    Flag,
    FlagValue,
    LatencySample,
    RequestLog,
    Samples,
    Window,
    as_floats,
)
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.histogram import Buckets, JointCounts, TokenCounts

WEEK = Window(0.0, 7 * 86400.0)
NOTHING = Evidence(name="nothing", window=WEEK)
NO_TIMES = np.empty(0)
GONE = CounterWindows(NO_TIMES, NO_TIMES, {})


def flags(**values: FlagValue) -> dict[str, Flag]:
    """Flags as the engine itself tells them."""
    return {name: Flag(value, "metrics") for name, value in values.items()}


def sheet(**facts: float | str | Fact | None) -> dict[str, Fact]:
    """Every fact of the catalogue, Unknown unless given."""
    given = {n: f if isinstance(f, Fact) else computed(f, source="given") for n, f in facts.items()}
    return {name: given.get(name, unknown("not given")) for name in CATALOGUE}


def bounded(low: float | None, high: float | None) -> Fact:
    """A fact that is only known to lie between two bounds."""
    return computed(None, low=low, high=high, source="given")


def joint(*rows: tuple[int, int, int]) -> JointCounts:
    """Rows of prompt tokens, output tokens, number of requests."""
    return JointCounts.of(*([row[i] for row in rows] for i in range(3)))


def log(
    served: JointCounts | None = None,
    *,
    refused: int = 0,
    refused_needs: Iterable[int] = (),
    cut: Iterable[int] = (),
    declared: Iterable[int] = (),
    arrivals: Mapping[int, int] | None = None,
    latency: LatencySample | None = None,
    days: float = 7.0,
) -> RequestLog:
    """A request log of so many days."""
    counts = [TokenCounts.of(list(lengths)) for lengths in (declared, refused_needs, cut)]
    return RequestLog(
        served=JointCounts.of([], []) if served is None else served,
        declared=counts[0],
        refused_needs=counts[1],
        cut=counts[2],
        refused=refused,
        failed=0,
        without_usage=0,
        first_seconds=0.0,
        last_seconds=days * 86400.0,
        arrivals=arrivals or {},
        latency=latency,
        source="log",
    )


def latencies(*rows: tuple[float, float, int, int]) -> LatencySample:
    """Rows of TTFT, TPOT (seconds), concurrency and number of requests; in flight is the concurrency."""
    ttft, tpot, concurrency, counts = (np.array([row[i] for row in rows]) for i in range(4))
    level = concurrency.astype(np.int64)
    return LatencySample(as_floats(ttft), as_floats(tpot), level, level, counts.astype(np.int64))


def gauges(
    running: npt.ArrayLike, waiting: npt.ArrayLike = 0.0, usage: npt.ArrayLike | None = None, *, every: float = 15.0
) -> Samples:
    """Scrapes of one engine, evenly spaced."""
    values = as_floats(running)
    waits = np.broadcast_to(as_floats(waiting), values.shape)
    used = None if usage is None else np.broadcast_to(as_floats(usage), values.shape)
    return Samples(as_floats(every * np.arange(1, values.size + 1)), values, waits, used)


def windows(deltas: Mapping[str, Sequence[float]], *, seconds: float = 60.0, start: float = 0.0) -> CounterWindows:
    """Successive windows of counters."""
    arrays = {name: as_floats(values) for name, values in deltas.items()}
    edges = as_floats(start + seconds * np.arange(max((a.size for a in arrays.values()), default=0) + 1))
    return CounterWindows(edges[:-1], edges[1:], arrays)


def engine(
    samples: Samples | None = None,
    counters: CounterWindows = GONE,
    *,
    instance: str = "host:8000",
    name: str = "0",
    lengths: Mapping[str, Buckets] | None = None,
    latencies: Mapping[str, Buckets] | None = None,
    lifetime: bool = False,
) -> EngineSeries:
    """One engine; without samples and counters it is one that left."""
    return EngineSeries(
        instance=instance,
        engine=name,
        epoch_start=0.0,
        samples=Samples(NO_TIMES, NO_TIMES, NO_TIMES, None) if samples is None else samples,
        windows=counters,
        lengths=lengths or {},
        latencies=latencies or {},
        lifetime=lifetime,
    )


def buckets(edges: Sequence[float], counts: Sequence[float], total: float | None = None) -> Buckets:
    """A histogram from the counts of its buckets, +Inf last."""
    return Buckets(as_floats(edges), as_floats(counts), total)
