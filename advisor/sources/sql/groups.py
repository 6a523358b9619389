"""Requests that the database has counted: how many had which lengths, and in which hour."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import RequestLog, Window
from advisor.domain.histogram import Ints, JointCounts, TokenCounts
from advisor.domain.length_history import NOBODY
from advisor.sources.request_log.account import Account
from advisor.sources.request_log.batch import OUTSIDE
from advisor.sources.request_log.history import History
from advisor.sources.request_log.origins import Origins
from advisor.sources.request_log.pairs import Pairs
from advisor.sources.request_log.request_intake import STRANGER

from .columns import Rows, column, seconds, tokens, words

HOUR = 3600
MOST_EQUAL = 1 << 40
_CLIENTS = (NOBODY,)


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Rows as arrays of one length. `hour` is UNIX seconds of its beginning, -1 where nobody tells it."""

    origin: Ints
    prompt: Ints
    output: Ints
    hour: Ints
    count: Ints

    def where(self, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Group:
        """Those for which `mask` holds."""
        return Group(*(getattr(self, name)[mask] for name in self.__slots__))


def groups(rows: Rows, where: Mapping[str, int], origins: Origins) -> Group:
    """Rows of counted requests. Raises ValueError, TypeError or OverflowError where a value cannot be meant."""
    count = [0 if n is None else int(n) for n in column("count", rows, where)]
    if count and not (min(count) >= 0 and max(count) <= MOST_EQUAL):
        raise ValueError("no number of requests")
    hour = [-1 if math.isnan(at) else int(at // HOUR) * HOUR for at in seconds(column("hour", rows, where))]
    pairs = zip(words(column("model", rows, where)), words(column("upstream", rows, where)), strict=True)
    return Group(
        origin=np.array([origins[pair] for pair in pairs], np.int64),
        prompt=np.array(tokens(column("prompt_tokens", rows, where)), np.int64),
        output=np.array(tokens(column("completion_tokens", rows, where)), np.int64),
        hour=np.array(hour, np.int64),
        count=np.array(count, np.int64),
    )


class GroupIntake:
    """Adds up groups by deployment."""

    def __init__(self, window: Window, origins: Origins, account: Account) -> None:
        self._window, self._origins, self._account = window, origins, account
        self._tallies: dict[int, _Tally] = {}
        self._requests: Counter[int] = Counter()

    def add(self, group: Group) -> None:
        """Add groups. An hour that begins before the window counts when most of it lies within."""
        self._account.rows += group.count.size
        within = (group.hour + HOUR // 2 >= self._window.start) & (group.hour < self._window.end)
        inside = group.where(within | (group.hour < 0))
        if outside := int(group.count.sum() - inside.count.sum()):
            self._account.unused[OUTSIDE] += outside
        self._requests.update(dict(enumerate(np.bincount(inside.origin, inside.count).astype(np.int64).tolist())))
        deployment = self._origins.deployment_of(inside.origin)
        for number in np.unique(deployment[deployment >= 0]).tolist():
            self._tallies.setdefault(number, _Tally()).add(inside.where(deployment == number))

    def logs(self, source: str) -> dict[str, RequestLog]:
        """The sums by deployment."""
        return {
            self._origins.deployments[number]: tally.log(self._window.end, source)
            for number, tally in sorted(self._tallies.items())
        }

    def strangers(self) -> dict[str, int]:
        """Requests by model that no deployment claims."""
        strangers = self._origins.strangers(self._requests)
        if strangers:
            self._account.unused[STRANGER] += sum(strangers.values())
        return strangers


class _Tally:
    """What the groups of one deployment add up to."""

    def __init__(self) -> None:
        self._pairs, self._history = Pairs(), History()
        self._without_usage = 0
        self._first, self._last = math.inf, -math.inf

    def add(self, group: Group) -> None:
        group = group.where(group.count > 0)
        counted = (group.prompt > 0) & (group.output >= 0)
        self._without_usage += int(group.count[~counted].sum())
        served = group.where(counted)
        self._pairs.add(served.prompt, served.output, served.count)
        timed = group.where(group.hour >= 0)
        if timed.count.size:
            self._first = min(self._first, float(timed.hour.min()))
            self._last = max(self._last, float(timed.hour.max()) + HOUR)
        told = served.where(served.hour >= 0)
        nobody = np.zeros(told.count.size, np.int64)
        self._history.add(told.hour.astype(np.float64), told.prompt + told.output, nobody, _CLIENTS, told.count)

    def log(self, end: float, source: str) -> RequestLog:
        """The sum. Without hours it spans no time that anybody could tell, and so nothing is shrunk on it."""
        none, timed = TokenCounts.of([]), self._last >= self._first
        history = self._history.lengths(_CLIENTS) if timed else None
        joint: JointCounts = self._pairs.joint()
        return RequestLog(
            served=joint,
            declared=none,
            refused_needs=none,
            cut=none,
            refused=0,
            failed=0,
            without_usage=self._without_usage,
            first_seconds=self._first if timed else end,
            last_seconds=min(self._last, end) if timed else end,
            arrivals={},
            latency=None,
            source=source,
            history=history.coarser(HOUR) if history else None,
            tells_refusals=False,
            tells_cuts=False,
        )
