"""Hours of a request log: to bytes and back, and added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from advisor.domain.evidence import LatencySample, RequestLog
from advisor.domain.histogram import JointCounts, TokenCounts
from advisor.domain.length_history import LengthHistory

from .packing import Packed, pack, unpack

_COUNTS = ("declared", "refused_needs", "cut")
_HISTORY = ("start", "client", "bin", "counts")
_NUMBERS = ("refused", "failed", "without_usage", "first_seconds", "last_seconds", "source")


def packed_lengths(log: RequestLog) -> bytes:
    """A request log without its latencies."""
    arrays = {"prompt": log.served.prompt, "output": log.served.output, "counts": log.served.counts}
    for name in _COUNTS:
        counts: TokenCounts = getattr(log, name)
        arrays |= {f"{name}.lengths": counts.lengths, f"{name}.counts": counts.counts}
    slots = sorted(log.arrivals)
    arrays["arrivals.slots"] = np.array(slots, np.int64)
    arrays["arrivals.counts"] = np.array([log.arrivals[slot] for slot in slots], np.int64)
    values = {name: getattr(log, name) for name in _NUMBERS}
    if log.history is not None:
        values["history"] = [log.history.seconds, *log.history.clients]
        arrays |= {f"history.{name}": getattr(log.history, name) for name in _HISTORY}
    return pack(values, arrays)


def unpacked_lengths(body: bytes) -> RequestLog:
    """What `packed_lengths` was given. Raises ValueError."""
    packed = unpack(body)
    arrays, values = packed.arrays, packed.values
    try:
        counts = {name: TokenCounts(arrays[f"{name}.lengths"], arrays[f"{name}.counts"]) for name in _COUNTS}
        return RequestLog(
            served=JointCounts(arrays["prompt"], arrays["output"], arrays["counts"]),
            declared=counts["declared"],
            refused_needs=counts["refused_needs"],
            cut=counts["cut"],
            refused=values["refused"],
            failed=values["failed"],
            without_usage=values["without_usage"],
            first_seconds=values["first_seconds"],
            last_seconds=values["last_seconds"],
            arrivals=dict(zip(arrays["arrivals.slots"].tolist(), arrays["arrivals.counts"].tolist(), strict=True)),
            latency=None,
            source=values["source"],
            history=_history(packed),
        )
    except KeyError as problem:
        raise ValueError(f"no {problem} in it") from problem


def _history(packed: Packed) -> LengthHistory | None:
    """None in what an earlier release packed."""
    if "history" not in packed.values:
        return None
    seconds, *clients = packed.values["history"]
    start, client, bins, counts = (packed.arrays[f"history.{name}"] for name in _HISTORY)
    return LengthHistory(seconds, start, client, bins, counts, tuple(clients))


def merged(logs: Sequence[RequestLog]) -> RequestLog:
    """At least one log, added up without latencies; the name of the last source stays."""
    arrivals: Counter[int] = Counter()
    for log in logs:
        arrivals.update(log.arrivals)
    return RequestLog(
        served=JointCounts.merge(log.served for log in logs),
        declared=TokenCounts.merge(log.declared for log in logs),
        refused_needs=TokenCounts.merge(log.refused_needs for log in logs),
        cut=TokenCounts.merge(log.cut for log in logs),
        refused=sum(log.refused for log in logs),
        failed=sum(log.failed for log in logs),
        without_usage=sum(log.without_usage for log in logs),
        first_seconds=min(log.first_seconds for log in logs),
        last_seconds=max(log.last_seconds for log in logs),
        arrivals=dict(sorted(arrivals.items())),
        latency=None,
        source=logs[-1].source,
        history=LengthHistory.merge([log.history for log in logs if log.history is not None]),
    )


def by_hours(log: RequestLog) -> RequestLog:
    """With the history of its lengths in slots of an hour: as fine as days that are long past are looked at."""
    return log if log.history is None else replace(log, history=log.history.coarser(3600))


def with_arrivals_since(log: RequestLog, start: float) -> RequestLog:
    """Without earlier arrivals: of them only the slowest requests are in the log, and that is no rate."""
    return replace(log, arrivals={slot: n for slot, n in log.arrivals.items() if slot >= start})


def distinct(samples: Iterable[LatencySample]) -> LatencySample:
    """Samples added up: one row a distinct set of latencies and load, in ascending order."""
    listed = list(samples)
    columns = [
        np.concatenate([getattr(s, name) for s in listed])
        for name in ("ttft_seconds", "tpot_seconds", "concurrency", "in_flight")
    ]
    counts = np.concatenate([s.counts for s in listed])
    order = np.lexsort(columns[::-1])
    columns = [column[order] for column in columns]
    changed = np.ones(counts.size, np.bool_)
    if counts.size:
        # NaN stands for "none", and one none is like another.
        same = [np.equal(c[1:], c[:-1]) | ((c[1:] != c[1:]) & (c[:-1] != c[:-1])) for c in columns]
        changed[1:] = ~np.logical_and.reduce(same)
    starts = np.flatnonzero(changed)
    sums = np.add.reduceat(counts[order], starts) if starts.size else counts
    return LatencySample(columns[0][starts], columns[1][starts], columns[2][starts], columns[3][starts], sums)
