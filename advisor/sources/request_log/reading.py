"""Request logs to evidence: one pass over the files, every deployment at once."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import RequestLog, Window
from advisor.domain.report import SourceState
from advisor.sources.log_formats import LogFormat

from .batch import Batch
from .budget import Budget
from .files import LineBlocks, log_files, open_log, shown
from .intake import Intake, UnknownFormatError
from .journal_intake import take_journal
from .latency import Latencies
from .options import LogOptions
from .origins import Origins, Resolve
from .tally import Tally

_ALL_OF_IT = 1 << 62


@dataclass(frozen=True, slots=True)
class LogReading:
    """What was read: a log per deployment, how reading went, and requests of models that no deployment claims."""

    logs: Mapping[str, RequestLog]
    state: SourceState
    strangers: Mapping[str, int]


def read_request_logs(
    options: LogOptions, window: Window, resolve: Resolve, latency_since: Callable[[str], float]
) -> LogReading:
    """Read the logs that `options` name, for requests that completed within `window`. Never raises for what it reads.

    resolve: (model, upstream) to the deployment's name, or None for somebody else's; asked once a pair.
    latency_since: upstream to the UNIX seconds since which its latencies are of the present epoch; lengths count over
    the whole window. Latencies need an upstream: the load is unknown where nobody says which replica it was.
    """
    reader = _Reader(options, window, Origins(options.aliases, resolve, latency_since, window.start))
    reader.read_files()
    reader.read_journal()
    return reader.reading()


class _Reader:
    def __init__(self, options: LogOptions, window: Window, origins: Origins) -> None:
        self._options, self._window, self._origins = options, window, origins
        self._intake = Intake(options, window, origins, self._add)
        self._latencies = Latencies(window)
        self._tallies: dict[int, Tally] = {}

    def read_files(self) -> None:
        files, problems = log_files(self._options.paths)
        account = self._intake.account
        account.problems += problems
        for path in files:
            try:
                with closing(open_log(path)) as stream:
                    account.files += 1
                    self._read(LineBlocks(stream, self._options.max_line_bytes))
            except (UnknownFormatError, EOFError, zlib.error, OSError) as problem:
                account.problems.append(f"{shown(path)}: {what_stopped(problem)}")
        self._intake.flush()

    def read_journal(self) -> None:
        for stream in self._options.journal.streams if self._options.journal else ():
            since, longest = self._window.start, self._options.max_line_bytes
            take_journal(self._intake, stream, None, since, longest, Budget(_ALL_OF_IT))
        self._intake.flush()

    def _read(self, blocks: LineBlocks) -> None:
        written: LogFormat | None = None
        for block in blocks:
            written = written or self._intake.format_of(block)
            self._intake.take(block, written)
        self._intake.skip_too_long(blocks.too_long)

    def _add(self, batch: Batch) -> None:
        deployment = self._origins.deployment_of(batch.origin)
        self._latencies.add(batch, self._origins)
        for number in np.flatnonzero(np.bincount(deployment[deployment >= 0])).tolist():
            part = batch.where(deployment == number)
            self._tallies.setdefault(number, Tally(self._intake.clients)).add(part, self._window)

    def reading(self) -> LogReading:
        logs = {self._origins.deployments[number]: self._log(number) for number in sorted(self._tallies)}
        state, strangers = self._intake.state(sum(log.requests for log in logs.values()))
        return LogReading(logs, state, strangers)

    def _log(self, number: int) -> RequestLog:
        return self._tallies[number].log(
            replaced_failures=self._intake.retries.replaced_failures[number],
            latency=self._latencies.sample(number),
            source=self._intake.name,
        )


def what_stopped(problem: Exception) -> str:
    """Why a file was not read, or not wholly, for people."""
    if isinstance(problem, UnknownFormatError):
        return str(problem)
    if isinstance(problem, (EOFError, zlib.error)):
        return "the compressed file breaks off; its beginning is used"
    return getattr(problem, "strerror", None) or "a damaged compressed file"
