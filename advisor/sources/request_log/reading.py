"""Request logs to evidence: one pass over the files, every deployment at once."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from advisor.domain.evidence import RequestLog, Window
from advisor.domain.report import SourceState
from advisor.sources.log_formats import FORMATS, LogFormat, Requests, mapped_format

from .account import Account
from .batch import Batch, batch_of
from .files import LineBlocks, log_files, open_log, shown
from .latency import Latencies
from .lines import recognise, requests
from .options import LogOptions
from .origins import Origins, Resolve
from .retries import Retries
from .tally import Tally

_FOLDED_ROWS = 1 << 16
_STRANGER = "of models that no deployment claims"


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
    return reader.reading()


class _UnknownFormatError(Exception):
    pass


class _Reader:
    def __init__(self, options: LogOptions, window: Window, origins: Origins) -> None:
        self._options, self._window, self._origins = options, window, origins
        self._formats = _formats(options)
        self._latencies, self._retries, self._account = Latencies(window), Retries(), Account()
        self._tallies: dict[int, Tally] = {}
        self._requests: Counter[int] = Counter()
        self._pending: list[Batch] = []
        self._name = f"request log {shown(Path(options.paths[0]).name)}" if len(options.paths) == 1 else "request log"

    def read_files(self) -> None:
        files, problems = log_files(self._options.paths)
        self._account.problems += problems
        for path in files:
            try:
                with closing(open_log(path)) as stream:
                    self._account.files += 1
                    self._read(LineBlocks(stream, self._options.max_line_bytes))
            except _UnknownFormatError:
                self._account.problems.append(f"{shown(path)}: no known log format; name one, or map its fields")
            except (EOFError, zlib.error):
                self._account.problems.append(f"{shown(path)}: the compressed file breaks off; its beginning is used")
            except OSError as problem:
                self._account.problems.append(f"{shown(path)}: {problem.strerror or 'a damaged compressed file'}")
        self._fold()

    def _read(self, blocks: LineBlocks) -> None:
        written = self._formats[0] if self._options.format != "auto" else None
        for block in blocks:
            written = written or recognise(block, self._formats)
            if written is None:
                raise _UnknownFormatError
            self._take(requests(block, written, self._account.bad, self._account.unused))
        if blocks.too_long:
            self._account.bad[f"over {self._options.max_line_bytes / 2**20:g} MiB"] += blocks.too_long

    def _take(self, read: Requests) -> None:
        self._account.rows += len(read)
        if len(read):
            self._pending.append(batch_of(read, self._window, self._origins, self._retries, self._account.unused))
        if sum(batch.size for batch in self._pending) >= _FOLDED_ROWS:
            self._fold()

    def _fold(self) -> None:
        """Add what is pending to the tallies: in large batches, because a deployment costs the same in a small one."""
        if not self._pending:
            return
        batch = Batch.joined(self._pending)
        self._pending.clear()
        self._requests.update(dict(enumerate(np.bincount(batch.origin).tolist())))
        deployment = self._origins.deployment_of(batch.origin)
        self._latencies.add(batch, self._origins)
        for number in np.flatnonzero(np.bincount(deployment[deployment >= 0])).tolist():
            self._tallies.setdefault(number, Tally()).add(batch.where(deployment == number), self._window)

    def reading(self) -> LogReading:
        strangers = self._origins.strangers(self._requests)
        if strangers:
            self._account.unused[_STRANGER] += sum(strangers.values())
        logs = {self._origins.deployments[number]: self._log(number) for number in sorted(self._tallies)}
        state = self._account.state(self._name, requests=sum(log.requests for log in logs.values()))
        return LogReading(logs, state, strangers)

    def _log(self, number: int) -> RequestLog:
        return self._tallies[number].log(
            replaced_failures=self._retries.replaced_failures[number],
            latency=self._latencies.sample(number),
            source=self._name,
        )


def _formats(options: LogOptions) -> list[LogFormat]:
    # A map that somebody wrote for this log knows better than recognition.
    own = [mapped_format(options.fields)] if options.fields else []
    if options.format == "auto":
        return [*own, *FORMATS.values()]
    return own if options.format == "mapped" else [FORMATS[options.format]]
