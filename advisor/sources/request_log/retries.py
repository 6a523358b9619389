"""Repetitions of one request, told by its id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

_REMEMBERED = 1 << 16


class Retries:
    """Remembers the last 65,536 request ids of all deployments, as hashes, and how each request ended.

    A second line of one id that says the same is a repetition. One that follows a failure replaces it. One that differs
    otherwise (another prompt) is a request of its own: some gateways log a session's id as the request's.
    """

    def __init__(self) -> None:
        self._endings: dict[int, int] = {}
        self.replaced_failures: Counter[int] = Counter()

    def repeated(
        self, ids: Sequence[str], deployments: Sequence[int], endings: Sequence[int], failed: int
    ) -> list[int]:
        """Places of the lines that repeat an earlier one. An ending is any number that tells endings apart."""
        places = []
        for place, (request_id, deployment, ending) in enumerate(zip(ids, deployments, endings, strict=True)):
            if not request_id:
                continue
            key = hash((deployment, request_id))
            before = self._endings.get(key)
            if before == ending:
                places.append(place)
                continue
            if before == failed:
                self.replaced_failures[deployment] += 1
            self._remember(key, ending)
        return places

    def _remember(self, key: int, ending: int) -> None:
        self._endings[key] = ending
        if len(self._endings) > _REMEMBERED:
            del self._endings[next(iter(self._endings))]
