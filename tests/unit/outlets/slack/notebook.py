"""A delivery log in memory, for tests that need no store; what it holds outlives the poster that wrote it."""

from __future__ import annotations

import threading
from dataclasses import replace

from advisor.domain.ports import Delivery


class Notebook:
    """A DeliveryLog."""

    def __init__(self) -> None:
        self.entries: dict[str, Delivery] = {}
        self._lock = threading.Lock()

    def state(self, key: str) -> Delivery | None:
        return self.entries.get(key)

    def begin(self, key: str, now: float, *, after: int = 0) -> bool:
        with self._lock:
            known = self.entries.get(key)
            if known is not None and (known.state == "sent" or known.attempts != after):
                return False
            first = known.first_begun_at if known else now
            self.entries[key] = Delivery(key, "sending", after + 1, first, now, now)
            return True

    def sent(self, key: str, now: float, reference: str) -> None:
        self.entries[key] = replace(self.entries[key], state="sent", changed_at=now, reference=reference)

    def failed(self, key: str, now: float, why: str, *, permanent: bool) -> None:
        failed = replace(self.entries[key], state="failed", changed_at=now, why=why, permanent=permanent)
        self.entries[key] = failed
