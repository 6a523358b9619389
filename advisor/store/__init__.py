"""The daemon's memory: one SQLite file, one writer, and readers that do not disturb it."""

from __future__ import annotations

from .runs import RunRow
from .store import Store

__all__ = ["RunRow", "Store"]
