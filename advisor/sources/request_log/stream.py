"""Sources that hand out lines by themselves, in pieces and from a place on: what reading one takes and gives."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """One message, made one line. `seconds` is the UNIX time at which the source took it down."""

    seconds: float
    message: bytes


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a reading came: the place in the source's own terms, and its UNIX time."""

    place: str
    seconds: float


class StreamReading(Protocol):
    """One reading of a stream; what it says of itself is whole after the last piece."""

    @property
    def unreadable(self) -> int:
        """Entries that are none."""

    @property
    def too_long(self) -> int:
        """Entries that were dropped for their length."""

    @property
    def problem(self) -> str:
        """What ended it, for people; empty where nothing did."""

    @property
    def reached(self) -> Reached | None:
        """How far the pieces taken so far go; None before the first."""

    @property
    def lost(self) -> bool:
        """Whether the source does not know the place from which it was to go on."""

    def pieces(self) -> Generator[list[Entry], None, None]:
        """The entries in order, once; a piece may be empty. Closing it ends the reading."""


class Stream(Protocol):
    """A source of entries."""

    @property
    def key(self) -> str:
        """The name under which is kept how far it is read."""

    @property
    def source(self) -> str:
        """The kind of place, for people."""

    @property
    def title(self) -> str:
        """Which one it is, for people."""

    @property
    def silence(self) -> str:
        """What to say where nothing was ever heard of it."""

    def read(self, after: str, since: float, max_line_bytes: int) -> StreamReading:
        """Entries after a place where one is known, else since UNIX seconds."""
