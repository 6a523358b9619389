"""Lines to batches of requests, with the account of what was not used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from advisor.domain.evidence import Window
from advisor.domain.report import SourceState
from advisor.sources.log_formats import LogFormat

from .account import Account
from .batch import Batch, batch_of
from .clients import Clients, own_salt
from .files import shown
from .lines import formats_of, recognise, told_apart
from .options import LogOptions
from .origins import Origins
from .retries import Retries

_FOLDED_ROWS = 1 << 16
_STRANGER = "of models that no deployment claims"


class UnknownFormatError(Exception):
    """The first lines of a file look like none of the known formats; with what to do about it."""


class Intake:
    """Takes blocks of whole lines and hands batches on: large ones, because a deployment costs the same in a small one.

    `hand_on` is called with at least one request. Retries are told within what one intake is given.
    """

    def __init__(self, options: LogOptions, window: Window, origins: Origins, hand_on: Callable[[Batch], None]) -> None:
        self._options, self._window, self._origins, self._hand_on = options, window, origins, hand_on
        self._formats = formats_of(options)
        self.account, self.retries = Account(), Retries()
        self.clients = Clients(own_salt())
        self._requests: Counter[int] = Counter()
        self._pending: list[Batch] = []
        self.name = f"request log {shown(Path(options.paths[0]).name)}" if len(options.paths) == 1 else "request log"

    def format_of(self, block: bytes, known: str = "") -> LogFormat:
        """How a file's lines are written: as configured, else as `known` from before, else as they look.

        Raises UnknownFormatError.
        """
        named = [f for f in self._formats if f.name == known]
        written = self._formats[0] if self._options.format != "auto" else next(iter(named), None)
        written = written or recognise(block, self._formats)
        if written is None:
            raise UnknownFormatError(told_apart(block))
        return written

    def take(self, block: bytes, written: LogFormat) -> None:
        """Add the requests of a block of whole lines."""
        read = written.read(block, self.account.bad, self.account.unused)
        self.account.rows += len(read)
        if len(read):
            batch = batch_of(read, self._window, self._origins, self.clients, self.retries, self.account.unused)
            self._pending.append(batch)
        if sum(batch.size for batch in self._pending) >= _FOLDED_ROWS:
            self.flush()

    def skip_too_long(self, lines: int) -> None:
        """Count lines that were dropped for their length."""
        if lines:
            self.account.bad[f"over {self._options.max_line_bytes / 2**20:g} MiB"] += lines

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
            self.account.unused[_STRANGER] += sum(strangers.values())
        return self.account.state(self.name, requests=requests), strangers
