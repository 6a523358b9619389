"""Quarters of an hour of each engine: what the prefix cache had room for, what was written, looked up and found."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from advisor.domain.evidence import EngineSeries, Evidence, as_floats
from advisor.domain.histogram import Floats

from .gauge_occupancy import kept_full

SLOT_SECONDS = 900.0
_WRITTEN = ("prompt_tokens_computed", "generation_tokens")
_COUNTED = (*_WRITTEN, "prefix_queries", "prefix_hits", "preemptions", "finished", "prompt_tokens")


@dataclass(frozen=True, eq=False, slots=True)
class Slots:
    """One entry a slot of one engine in which tokens were written: arrays of one length, in tokens and seconds.

    room: of the pool not held by running requests. written: prompts computed and output. queries, hits: lookups in the
    prefix cache. prompts, outputs: tokens of requests, of which `finished` ended there.
    """

    seconds: Floats
    room: Floats
    written: Floats
    queries: Floats
    hits: Floats
    preemptions: Floats
    finished: Floats
    prompts: Floats
    outputs: Floats

    @property
    def turnover(self) -> Floats:
        """Seconds in which as much is written as there is room for."""
        return self.room * self.seconds / self.written

    @property
    def mean_lengths(self) -> tuple[float, float]:
        """Mean prompt and output tokens; NaN where nothing finished."""
        finished = self.finished.sum() or np.nan
        return float(self.prompts.sum() / finished), float(self.outputs.sum() / finished)

    def looked_up(self) -> Slots:
        """Those with lookups and without preemptions: a preempted request finds its own blocks again."""
        return self.only((self.queries > 0) & ~(self.preemptions > 0))

    def part(self, order: Floats, share: float) -> Slots:
        """The first by that order that hold at least such a share of all lookups."""
        ranked = np.argsort(order, kind="stable")
        before = np.cumsum(self.queries[ranked]) - self.queries[ranked]
        chosen = np.zeros(order.size, bool)
        chosen[ranked[before < share * self.queries.sum()]] = True
        return self.only(chosen)

    def only(self, rows: npt.NDArray[np.bool_]) -> Slots:
        """These of them."""
        return Slots(*(getattr(self, field.name)[rows] for field in fields(self)))


def slots(evidence: Evidence, pool: float) -> Slots | None:
    """The slots of all engines that count what they write and show their usage; None where none does."""
    told = [e for e in evidence.engines if not e.lifetime and not kept_full(e)]
    parts = [part for e in told if (part := _of_engine(e, pool)) is not None]
    if not parts:
        return None
    return Slots(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Slots)))


def _of_engine(engine: EngineSeries, pool: float) -> Slots | None:
    windows, usage, time = engine.windows, engine.samples.kv_usage, engine.samples.time
    if usage is None or not windows.end.size or not set(_WRITTEN) <= windows.deltas.keys():
        return None
    first = windows.start[0] // SLOT_SECONDS
    slot = (((windows.start + windows.end) / 2) // SLOT_SECONDS - first).astype(np.int64)
    number = int(slot.max()) + 1

    def summed(values: Floats) -> Floats:
        return as_floats(np.bincount(slot, np.nan_to_num(values), number))

    seen = np.isfinite(usage) & (time >= windows.start[0]) & (time < (first + number) * SLOT_SECONDS)
    place = (time[seen] // SLOT_SECONDS - first).astype(np.int64)
    scrapes = np.bincount(place, minlength=number)
    used = np.bincount(place, usage[seen], number) / np.maximum(scrapes, 1)
    nothing = np.zeros(windows.end.size)
    prompt, output, queries, hits, preempted, finished, prompts = (
        summed(windows.deltas.get(name, nothing)) for name in _COUNTED
    )
    found = Slots(
        seconds=summed(windows.end - windows.start),
        room=pool * np.maximum(1 - used, 0.0),
        written=prompt + output,
        queries=queries,
        hits=hits,
        preemptions=preempted,
        finished=finished,
        prompts=prompts,
        outputs=output,
    )
    return found.only((found.written > 0) & (scrapes > 0))
