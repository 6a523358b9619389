"""Lines to batches of requests, with the account of what was not used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from advisor.domain.evidence import Window
from advisor.sources.log_formats import LogFormat

from .account import Account
from .batch import Batch
from .files import shown
from .lines import formats_of, recognise, told_apart
from .options import LogOptions
from .origins import Origins
from .request_intake import RequestIntake


class UnknownFormatError(Exception):
    """The first lines of a file look like none of the known formats; with what to do about it."""


class Intake(RequestIntake):
    """Takes blocks of whole lines."""

    def __init__(self, options: LogOptions, window: Window, origins: Origins, hand_on: Callable[[Batch], None]) -> None:
        single = f"request log {shown(Path(options.paths[0]).name)}" if len(options.paths) == 1 else "request log"
        super().__init__(single, window, origins, hand_on, Account())
        self._options, self._formats = options, formats_of(options)

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
        self.add(written.read(block, self.account.bad, self.account.unused))

    def skip_too_long(self, lines: int) -> None:
        """Count lines that were dropped for their length."""
        if lines:
            self.account.bad[f"over {self._options.max_line_bytes / 2**20:g} MiB"] += lines
