"""Requests out of an SQL database: a gateway's own table, or whatever a query makes of a warehouse."""

from __future__ import annotations

from .options import SqlOptions
from .reading import read_sql

__all__ = ["SqlOptions", "read_sql"]
