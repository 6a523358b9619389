"""Whether an engine takes back what it preempted at once, by its first chunk, or waits until all of it fits.

Release and flag tell. Where neither is known its behaviour may: the second kind preempts E[O] / E[I] a request at most
while the cache is overfull; the first kind, while requests wait for cache and not for seats, 1 + q C / N times what the
second does (overflow.Growth). Worked: 1,155 in, 211 out and 13 running are preempted 0.18 times a
request by one kind and 4.6 times by the other. With the cache full a fifth of the time 0.03 seen are not 0.92.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact
from advisor.engines.admission import admits_by_first_chunk

from .load import sequence_cap
from .overflow import Growth

AT_ONCE = "a preempted request is back at once, by its first chunk"
UNTOLD = "the engine's version is not known, so the cache may be overfull only as often as requests may be preempted"
SURELY = 1.25
BUSIER = 4.0
"""Of the requests of a window far more than the share of the time may finish while others wait."""
FULL = 0.95
LEAST_FULL = 0.05
LEAST_SCRAPES = 500
FAR = 8.0
"""Simulated with 19 mixes of lengths at a full cache, those that take back at once were preempted at least 0.26 times
as often as computed for them; the others, where that is 8 times their own and more, at most 0.12 times."""


@dataclass(frozen=True, slots=True)
class Readmission:
    """How an overfull cache grows under this engine's admission, whether that is known, and why it is thought so."""

    growth: Growth
    known: bool
    why: str | None


def readmission(evidence: Evidence, known: Mapping[str, Fact], lengths: Growth, budget: int) -> Readmission:
    """`lengths` with the chunk of `budget` tokens where this engine admits a prompt by it."""
    flags = {name: flag.value for name, flag in evidence.flags.items()}
    told = admits_by_first_chunk(evidence.engine, evidence.engine_version, flags)
    at_once = replace(lengths, chunk=budget)
    if told is not None:
        return Readmission(at_once if told else lengths, known=True, why=f"this release: {AT_ONCE}" if told else None)
    seen, full = known["preempted_share"].number, _full(evidence)
    if seen is not None and lengths.prompt and seen > lengths.share(_overfull_at_most(known), 0.0, math.inf):
        return Readmission(at_once, known=True, why=f"{seen:.1%} preempted: {AT_ONCE}")
    if seen is not None and full is not None and FAR * seen < at_once.share(full[0], 0.0, full[1]):
        story = (
            f"{seen:.2%} preempted with the cache full {full[0]:.0%} of the time: a preempted request waits for room"
        )
        return Readmission(lengths, known=True, why=story)
    return Readmission(lengths, known=False, why=UNTOLD)


def _overfull_at_most(known: Mapping[str, Fact]) -> float:
    """More than the share of requests that finish while the cache is overfull, as somebody waits whenever it is."""
    waited = known["waiting_share"].ceiling
    return SURELY if waited is None else min(SURELY, BUSIER * max(waited, LEAST_FULL))


def _full(evidence: Evidence) -> tuple[float, float] | None:
    """Share of scrapes in which requests waited for cache although seats were free, and how many ran in these."""
    cap, samples = sequence_cap(evidence), [engine.samples for engine in evidence.engines]
    scrapes = [np.stack([s.running, s.waiting, s.kv_usage]) for s in samples if s.kv_usage is not None]
    if cap is None or not scrapes:
        return None
    running, waiting, usage = np.concatenate(scrapes, axis=1)
    full = (usage >= FULL) & (waiting > 0) & (running > 0) & (running < cap)
    if full.size < LEAST_SCRAPES or full.mean() < LEAST_FULL:
        return None
    return float(full.mean()), float(running[full].mean())
