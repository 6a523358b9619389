"""Request logs as the daemon reads them: each line once, into the store; a window of them comes out of the store."""

from __future__ import annotations

from collections import Counter

from advisor.domain.evidence import RequestLog, Window
from advisor.domain.report import SourceState
from advisor.owners import Owners
from advisor.sources.request_log import LogOptions, LogReading
from advisor.sources.request_log.follow import follow
from advisor.store import Store


class RememberedLogs:
    """What `gather` takes as its request logs. `owners`: the newest that could be relied on, or None."""

    def __init__(self, store: Store, owners: Owners | None) -> None:
        self._store = store
        self.owners = owners

    def __call__(self, options: LogOptions, window: Window, owners: Owners) -> LogReading:
        """Follow the logs up to now, then tell the window from what is remembered."""
        if owners.sure:
            self.owners = owners
        if self.owners is None:
            why = "not read yet: no source of metrics answers, so nobody knows which deployment a request is of"
            return LogReading({}, SourceState("request log", "failed", why), {})
        state, strangers = remember(self._store, options, self.owners, window.end)
        return LogReading(self._remembered(window, self.owners), state, strangers)

    def _remembered(self, window: Window, owners: Owners) -> dict[str, RequestLog]:
        logs = {}
        for name in self._store.logged_deployments():
            log = self._store.request_log(name, window, owners.epoch_of(name))
            if log is not None:
                logs[name] = log
        return logs


def remember(store: Store, options: LogOptions, owners: Owners, now: float) -> tuple[SourceState, Counter[str]]:
    """Read and commit what is new, piece by piece where there is much; how it went, and requests of nobody by model.

    Raises StoreError; what is committed by then is not read again, and the rest is.
    """
    strangers: Counter[str] = Counter()
    while True:
        new = follow(options, store.cursors(), owners.resolve, owners.latency_since, now)
        store.commit_logs(new.slices, new.cursors)
        strangers.update(new.strangers)
        if not new.behind:
            return new.state, strangers
