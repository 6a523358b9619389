"""Request logs: what each deployment's requests needed, and how long they took under which load."""

from __future__ import annotations

from .follow import Followed, follow
from .journal import JournalStream
from .options import JOURNAL, LogOptions
from .origins import Resolve
from .reading import LogReading, read_request_logs
from .survey import Surveyed, survey

__all__ = [
    "JOURNAL",
    "Followed",
    "JournalStream",
    "LogOptions",
    "LogReading",
    "Resolve",
    "Surveyed",
    "follow",
    "read_request_logs",
    "survey",
]
