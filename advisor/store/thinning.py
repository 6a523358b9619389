"""Latencies within bounds: every request of an hour, or every 2nd, 4th, 8th ... one, and the hours on equal terms.

A share over several hours is right only where each hour has the same share of its requests in it; an hour with
many requests would otherwise count like a quiet one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from advisor.domain.evidence import LatencySample

from .packing import pack, unpack
from .slices import distinct

MAX_ROWS_AN_HOUR = 1 << 11
MAX_ROWS = 1 << 17


@dataclass(frozen=True, eq=False, slots=True)
class Thinned:
    """A sample of one request in 2**halvings."""

    sample: LatencySample
    halvings: int

    def to(self, halvings: int) -> Thinned:
        """The same, thinned further."""
        thinned = self
        while thinned.halvings < halvings:
            thinned = Thinned(_halved(thinned.sample, thinned.halvings), thinned.halvings + 1)
        return thinned


def together(parts: Sequence[Thinned], most_rows: int) -> Thinned:
    """At least one part, added up on equal terms and thinned to at most so many rows."""
    halvings = max(part.halvings for part in parts)
    whole = Thinned(distinct(part.to(halvings).sample for part in parts), halvings)
    while whole.sample.counts.size > most_rows:
        whole = whole.to(whole.halvings + 1)
    return whole


def packed_latency(thinned: Thinned) -> bytes:
    """As bytes."""
    sample = thinned.sample
    return pack({"halvings": thinned.halvings}, {name: getattr(sample, name) for name in LatencySample.__slots__})


def unpacked_latency(body: bytes) -> Thinned:
    """What `packed_latency` was given. Raises ValueError."""
    packed = unpack(body)
    try:
        return Thinned(LatencySample(**packed.arrays), packed.values["halvings"])
    except (KeyError, TypeError) as problem:
        raise ValueError("not a latency sample") from problem


def _halved(sample: LatencySample, halvings: int) -> LatencySample:
    """Half of the requests of each row, and of the rows with an odd one every second gets it.

    Rows are in order of latency, so what is kept is spread evenly over it. Whether the first one gets it is left to
    chance, or quiet hours, each with one row, would all be rounded up.
    """
    odd = sample.counts & 1
    chance = blake2b(sample.ttft_seconds.tobytes(), digest_size=1, salt=halvings.to_bytes(2)).digest()[0] & 1
    counts = sample.counts // 2 + (odd & (np.cumsum(odd) + chance))
    kept = counts > 0
    return LatencySample(
        ttft_seconds=sample.ttft_seconds[kept],
        tpot_seconds=sample.tpot_seconds[kept],
        concurrency=sample.concurrency[kept],
        in_flight=sample.in_flight[kept],
        counts=counts[kept],
    )
