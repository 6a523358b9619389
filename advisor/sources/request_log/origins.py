"""Where a request came from: which deployment and replica a logged (model, upstream) stands for, asked once a pair."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from advisor.domain.histogram import Floats, Ints

Resolve = Callable[[str, str], str | None]

MAX_ORIGINS = 10_000
_MAX_NAME_CHARACTERS = 512
_NOBODY = -1
OTHERS, NAMELESS = "(others)", "(no name)"


class Origins(dict[tuple[str, str], int]):
    """Codes of (model, upstream) pairs. Origin 0 stands for all pairs beyond the 10,000th and for endless names."""

    def __init__(
        self, aliases: Mapping[str, str], resolve: Resolve, latency_since: Callable[[str], float], start: float
    ) -> None:
        super().__init__()
        self._aliases, self._resolve, self._latency_since, self._start = aliases, resolve, latency_since, start
        self._deployments: dict[str, int] = {}
        self._upstreams: dict[str, int] = {}
        self._models = [OTHERS]
        self._deployment_of, self._upstream_of, self._since = [_NOBODY], [_NOBODY], [math.inf]

    def __missing__(self, pair: tuple[str, str]) -> int:
        if len(self) >= MAX_ORIGINS or len(pair[0]) + len(pair[1]) > _MAX_NAME_CHARACTERS:
            return 0
        model, upstream = self._aliases.get(pair[0], pair[0]), pair[1]
        deployment = self._resolve(model, upstream)
        self._models.append(pair[0] or NAMELESS)
        self._deployment_of.append(_index(self._deployments, deployment))
        self._upstream_of.append(_index(self._upstreams, upstream if deployment and upstream else None))
        self._since.append(max(self._start, self._latency_since(upstream)) if deployment and upstream else math.inf)
        self[pair] = len(self) + 1
        return self[pair]

    @property
    def deployments(self) -> list[str]:
        """Names of the deployments met, in the order of their numbers."""
        return list(self._deployments)

    @property
    def upstreams(self) -> list[str]:
        """Names of the replicas met, in the order of their numbers."""
        return list(self._upstreams)

    def remember(self, deployments: Iterable[str], upstreams: Iterable[str]) -> tuple[Ints, Ints]:
        """The numbers of names that an earlier reading met."""
        return (
            np.array([_index(self._deployments, name) for name in deployments], np.int64),
            np.array([_index(self._upstreams, name) for name in upstreams], np.int64),
        )

    def deployment_of(self, origin: Ints) -> Ints:
        """Number of the deployment of each origin, -1 for none."""
        return np.array(self._deployment_of)[origin]

    def upstream_of(self, origin: Ints) -> Ints:
        """Number of the replica of each origin, -1 where the log names none."""
        return np.array(self._upstream_of)[origin]

    def latency_since(self, origin: Ints) -> Floats:
        """UNIX seconds from which latencies of each origin count; inf for never."""
        return np.array(self._since)[origin]

    def strangers(self, requests: Counter[int]) -> dict[str, int]:
        """Requests by model that no deployment claims, of requests by origin; most first."""
        counts: Counter[str] = Counter()
        for origin, n in requests.items():
            if n and self._deployment_of[origin] == _NOBODY:
                counts[self._models[origin]] += n
        return dict(counts.most_common())


def _index(known: dict[str, int], name: str | None) -> int:
    return _NOBODY if name is None else known.setdefault(name, len(known))
