"""Request logs read as they grow: each line once, through rotation, compression, truncation and crashes.

Reading changes nothing. What it returns, slices and cursors, has to be committed together: then a process that is
killed at any moment reads again what was not committed, and nothing else.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.domain.cursor import Cursor, Cursors
from advisor.domain.evidence import RequestLog, Window
from advisor.domain.report import SourceState
from advisor.sources.log_formats import LogFormat

from .batch import Batch
from .budget import Budget
from .files import LineBlocks, open_log, shown
from .follow_content import BROKEN
from .follow_file import FollowedFile
from .follow_files import followed_files
from .follow_latency import HOLD_SECONDS, FollowedLatencies
from .follow_ledger import Ledger
from .follow_slices import MAX_SLICES, HourSlices, Slice
from .intake import Intake, UnknownFormatError
from .options import LogOptions
from .origins import Origins, Resolve
from .reading import what_stopped
from .stream_intake import take_stream

REACH_SECONDS = 14 * 86_400.0
BUDGET_BYTES = 1 << 26
_FORGOTTEN_AFTER_SECONDS = 30 * 86_400.0
_CLOCK_SKEW_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Followed:
    """What was new. slices: by deployment and hour (UNIX seconds of its start), to be added to what is known of it.

    cursors: to be kept with them and given to the next reading. behind: there is more to read than one call may.
    """

    slices: Mapping[Slice, RequestLog]
    cursors: Cursors
    state: SourceState
    strangers: Mapping[str, int]
    behind: bool


def follow(
    options: LogOptions,
    cursors: Cursors,
    resolve: Resolve,
    latency_since: Callable[[str], float],
    now: float,
    *,
    reach_seconds: float = REACH_SECONDS,
    budget_bytes: int = BUDGET_BYTES,
) -> Followed:
    """Read what the logs have that `cursors` do not know. Never raises for what it reads.

    resolve, latency_since: as in `read_request_logs`. Requests that completed more than `reach_seconds` before `now`
    (UNIX seconds) are not counted, nor those over an hour after it. One call unpacks about `budget_bytes` at most.
    Repetitions of a request are told within one call; one that falls into the next counts as a request of its own.
    """
    window = Window(now - reach_seconds, now + _CLOCK_SKEW_SECONDS)
    follower = _Follower(options, cursors, Origins(options.aliases, resolve, latency_since, window.start), window, now)
    budget = Budget(budget_bytes)
    follower.read_files(budget)
    follower.read_streams(budget)
    return follower.followed(max(_FORGOTTEN_AFTER_SECONDS, reach_seconds))


class _Follower:
    def __init__(self, options: LogOptions, cursors: Cursors, origins: Origins, window: Window, now: float) -> None:
        self._options, self._window, self._now = options, window, now
        self._intake = Intake(options, window, origins, self._add)
        self._slices = HourSlices(origins, self._intake.clients)
        self._latencies = FollowedLatencies(cursors.unsettled, origins)
        self._ledger = Ledger(cursors.files, now)
        self._streams = {cursor.stream: cursor for cursor in cursors.streams}
        # Loki stands alone, so that what was followed before it had the same requests: it begins where that ended.
        replaced = [*(c.seen for c in cursors.files), *(c.seconds for c in cursors.streams)] if options.loki else []
        self._unheard_since = max([window.start, *replaced])
        self._newest = -math.inf
        self._behind = False

    def read_files(self, budget: Budget) -> None:
        paths, problems = followed_files(self._options.paths, self._window.start)
        account = self._intake.account
        account.problems += problems
        for path in paths:
            try:
                with closing(open_log(path)) as stream:
                    account.files += 1
                    self._read(path, FollowedFile(stream), budget)
            except (UnknownFormatError, *BROKEN) as problem:
                account.problems.append(f"{shown(path)}: {what_stopped(problem)}")
        self._intake.flush()

    def read_streams(self, budget: Budget) -> None:
        for stream in self._options.streams(self._now):
            if budget.exhausted:
                self._behind = True
                break
            known = self._streams.get(stream.key)
            since, longest = self._unheard_since, self._options.max_line_bytes
            cursor = take_stream(self._intake, stream, known, since, longest, budget)
            if cursor is not None:
                self._streams[stream.key] = cursor
            self._behind |= budget.exhausted
        self._intake.flush()

    def _read(self, path: Path, file: FollowedFile, budget: Budget) -> None:
        if self._ledger.knows_all_of(file.stamp):
            return
        if not (budget.exhausted and file.compressed):
            place = file.find(self._ledger.contents)
            budget.spend(place.offset if file.compressed else 0)
            if place.known:
                self._ledger.meet(place.known)
            if not budget.exhausted or file.compressed:
                self._read_on(path, file, place.known, budget)
        self._behind |= file.unread

    def _read_on(self, path: Path, file: FollowedFile, known: Cursor | None, budget: Budget) -> None:
        written: LogFormat | None = None
        for chunk in file.chunks(self._options.max_line_bytes, budget):
            blocks = LineBlocks(io.BytesIO(chunk.lines), self._options.max_line_bytes)
            for block in blocks:
                written = written or self._intake.format_of(block, known.format if known else "")
                self._intake.take(block, written)
            self._intake.skip_too_long(blocks.too_long + chunk.too_long)
            if chunk.problem:
                self._intake.account.problems.append(f"{shown(path)}: {what_stopped(chunk.problem)}")
            if len(self._slices) > MAX_SLICES:
                budget.close()
        cursor = file.cursor(self._now, written.name if written else "")
        if cursor:
            self._ledger.move(known, cursor)

    def _add(self, batch: Batch) -> None:
        self._newest = max(self._newest, float(batch.completed.max()))
        self._slices.add(batch)
        self._latencies.add(batch)

    def followed(self, forgotten_after_seconds: float) -> Followed:
        # Of a reading that ends before its end, what is newest tells how far it came.
        until = min(self._newest, self._now) if self._behind else self._now
        latencies, unsettled = self._latencies.settle(until - HOLD_SECONDS)
        slices = self._slices.logs(self._intake.retries.replaced_failures, latencies, self._intake.name)
        state, strangers = self._intake.state(sum(log.requests for log in slices.values()))
        if self._behind:
            state = replace(state, status="partial", detail=f"{state.detail}; behind: the rest is read next time")
        files = self._ledger.kept(forgotten_after_seconds)
        streams = tuple(c for c in self._streams.values() if c.seconds >= self._now - forgotten_after_seconds)
        return Followed(slices, Cursors(files, unsettled, streams), state, strangers, self._behind)
