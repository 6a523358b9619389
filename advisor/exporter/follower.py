"""The counts of this host's logs: every line once, over rotation, restarts and kills.

What is new in the counts is committed together with how far the logs were read, and only what is committed is shown. So
a process that is killed at any moment counts again what was not committed, and no counter ever falls.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from advisor.domain.cursor import Cursors
from advisor.domain.exported import LengthCounts
from advisor.domain.report import SourceState
from advisor.sources.request_log import LogOptions, follow
from advisor.sources.request_log.follow import REACH_SECONDS
from advisor.store import Store

from .counting import added, counts_of, label


@dataclass(frozen=True, slots=True)
class Shown:
    """What /metrics shows. counts: by model, all committed. read_at: when logs were last read, UNIX seconds."""

    counts: Mapping[str, LengthCounts]
    read_at: float = 0.0
    state: SourceState | None = None

    @property
    def summary(self) -> str:
        """One line for people."""
        requests = sum(number for counts in self.counts.values() for number in counts.outcomes.values())
        return f"{requests:,.0f} requests of {len(self.counts)} models counted"


class Follower:
    """Follows logs into a store. Requests that ended before the store was made are not counted: counters begin at 0."""

    def __init__(self, options: LogOptions, store: Store, most_models: int, now: float) -> None:
        self._options, self._store, self._most_models = options, store, most_models
        self._since = store.counting_since(now)
        self._cursors = store.cursors()
        self.shown = Shown(store.exported())

    def step(self, now: float) -> bool:
        """Count what is new, and whether there is more. Raises StoreError; what is new is then read again."""
        new = follow(
            self._options,
            self._cursors,
            lambda model, _: label(model),
            lambda _: math.inf,
            now,
            reach_seconds=min(max(now - self._since, 0.0), REACH_SECONDS),
        )
        hours: dict[str, LengthCounts] = defaultdict(LengthCounts.nothing)
        for (model, _), log in new.slices.items():
            hours[model] = hours[model].plus(counts_of(log))
        changed = added(self.shown.counts, hours, self._most_models)
        if changed or _places(new.cursors) != _places(self._cursors):
            self._store.commit_exported(changed, new.cursors)
        self._cursors = new.cursors
        self.shown = Shown({**self.shown.counts, **changed}, now, new.state)
        return new.behind


def _places(cursors: Cursors) -> frozenset[tuple[object, ...]]:
    """How far everything is read, whenever that was."""
    files = ((file.head, file.offset, file.tail, file.finished) for file in cursors.files)
    return frozenset([*files, *((stream.stream, stream.place) for stream in cursors.streams)])
