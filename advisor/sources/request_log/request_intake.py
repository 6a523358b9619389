"""Requests to batches, whatever they were read from, with the account of what was not used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from advisor.domain.evidence import Window
from advisor.domain.report import SourceState
from advisor.sources.log_formats import Requests

from .account import Account
from .batch import Batch, batch_of
from .clients import Clients, own_salt
from .origins import Origins
from .retries import Retries

_FOLDED_ROWS = 1 << 16
STRANGER = "of models that no deployment claims"


class RequestIntake:
    """Takes requests and hands batches on: large ones, because a deployment costs the same in a small one.

    `hand_on` is called with at least one request. Retries are told within what one intake is given.
    """

    def __init__(
        self, name: str, window: Window, origins: Origins, hand_on: Callable[[Batch], None], account: Account
    ) -> None:
        self.name, self._window, self._origins, self._hand_on = name, window, origins, hand_on
        self.account, self.retries = account, Retries()
        self.clients = Clients(own_salt())
        self._requests: Counter[int] = Counter()
        self._pending: list[Batch] = []

    def add(self, requests: Requests) -> None:
        """Add requests."""
        self.account.rows += len(requests)
        if len(requests):
            batch = batch_of(requests, self._window, self._origins, self.clients, self.retries, self.account.unused)
            self._pending.append(batch)
        if sum(batch.size for batch in self._pending) >= _FOLDED_ROWS:
            self.flush()

    def flush(self) -> None:
        """Hand on what is pending."""
        if not self._pending:
            return
        batch = Batch.joined(self._pending)
        self._pending.clear()
        self._requests.update(dict(enumerate(np.bincount(batch.origin).tolist())))
        if batch.size:
            self._hand_on(batch)

    def state(self, requests: int) -> tuple[SourceState, dict[str, int]]:
        """How reading went, where `requests` count towards a deployment; and requests by model that nobody claims."""
        strangers = self._origins.strangers(self._requests)
        if strangers:
            self.account.unused[STRANGER] += sum(strangers.values())
        return self.account.state(self.name, requests=requests), strangers
