"""How far request logs have been read: what one reading leaves for the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .histogram import Floats, Ints


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Which file it was and in what condition; equal stamps mean that it has not changed since."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the content of one file is read, told by the content, which rotation leaves alone.

    offset: bytes read, unpacked. head: digests of its first 16, 32, ... bytes, as far as they were read. tail: digest
    of the last bytes before the offset. inside_long_line: the offset lies in a line that is being skipped.
    finished: the file with this stamp has no more to give. format: how its lines are written, empty when unknown.
    seen: UNIX seconds when a file with this content was last there.
    """

    stamp: FileStamp
    offset: int
    head: tuple[str, ...]
    tail: str
    seen: float
    format: str = ""
    inside_long_line: bool = False
    finished: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class AnsweredSpans:
    """Answered requests in time: parallel arrays. Deployment and replica are places in lists kept beside them.

    Times in UNIX seconds. `told`: its time to first token and its output tokens are known.
    """

    deployment: Ints
    replica: Ints
    arrival: Floats
    first_token: Floats
    completed: Floats
    ttft_seconds: Floats
    output_tokens: Ints
    told: npt.NDArray[np.bool_]

    @property
    def size(self) -> int:
        """How many requests."""
        return self.completed.size

    def where(self, mask: npt.NDArray[np.bool_]) -> AnsweredSpans:
        """Those for which `mask` holds."""
        return AnsweredSpans(*(getattr(self, name)[mask] for name in self.__slots__))

    @classmethod
    def joined(cls, parts: list[AnsweredSpans]) -> AnsweredSpans:
        """All requests of at least one part."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


@dataclass(frozen=True, eq=False, slots=True)
class Unsettled:
    """Requests whose load cannot be told yet, because others that ran beside them are not logged yet.

    Those that completed before `settled_until` are told already and stay as company of the others.
    """

    deployments: tuple[str, ...]
    replicas: tuple[str, ...]
    spans: AnsweredSpans
    settled_until: float


@dataclass(frozen=True, slots=True)
class StreamCursor:
    """How far a stream is read: the messages of one unit or identifier in the journal, or the lines of a query to Loki.

    place: of the last entry, in the source's own terms; empty where it knows it no longer. seconds: UNIX time of that
    entry. format: how its lines are written, empty when unknown.
    """

    stream: str
    place: str
    seconds: float
    format: str = ""


@dataclass(frozen=True, slots=True)
class Cursors:
    """Everything that following request logs remembers between two readings."""

    files: tuple[Cursor, ...] = ()
    unsettled: Unsettled | None = None
    streams: tuple[StreamCursor, ...] = ()
