"""Request logs to evidence: one pass over the files, every deployment at once."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

from advisor.domain.evidence import RequestLog, Window
from advisor.domain.report import SourceState
from advisor.sources.log_formats import LogFormat

from .batch import Batch
from .budget import Budget
from .deployment_logs import DeploymentLogs
from .files import LineBlocks, log_files, open_log, shown
from .intake import Intake, UnknownFormatError
from .options import LogOptions
from .origins import Origins, Resolve
from .stream_intake import take_stream

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
    reader.read_streams()
    return reader.reading()


class _Reader:
    def __init__(self, options: LogOptions, window: Window, origins: Origins) -> None:
        self._options, self._window = options, window
        self._intake = Intake(options, window, origins, self._add)
        self._logs = DeploymentLogs(window, origins)

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

    def read_streams(self) -> None:
        for stream in self._options.streams(self._window.end):
            since, longest = self._window.start, self._options.max_line_bytes
            take_stream(self._intake, stream, None, since, longest, Budget(_ALL_OF_IT))
        self._intake.flush()

    def _read(self, blocks: LineBlocks) -> None:
        written: LogFormat | None = None
        for block in blocks:
            written = written or self._intake.format_of(block)
            self._intake.take(block, written)
        self._intake.skip_too_long(blocks.too_long)

    def _add(self, batch: Batch) -> None:
        self._logs.add(batch, self._intake.clients)

    def reading(self) -> LogReading:
        logs = self._logs.told(self._intake.retries.replaced_failures, self._intake.name)
        state, strangers = self._intake.state(sum(log.requests for log in logs.values()))
        return LogReading(logs, state, strangers)


def what_stopped(problem: Exception) -> str:
    """Why a file was not read, or not wholly, for people."""
    if isinstance(problem, UnknownFormatError):
        return str(problem)
    if isinstance(problem, (EOFError, zlib.error)):
        return "the compressed file breaks off; its beginning is used"
    return getattr(problem, "strerror", None) or "a damaged compressed file"
