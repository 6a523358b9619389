"""How far logs are read, as rows."""

from __future__ import annotations

import json
from typing import Any

from advisor.domain.cursor import AnsweredSpans, Cursor, Cursors, FileStamp, StreamCursor, Unsettled

from .database import Database
from .packing import pack, unpack


def write_cursors(database: Database, cursors: Cursors) -> None:
    """Replace all; within the caller's transaction."""
    database.change("DELETE FROM cursor")
    for place, body in enumerate([*map(_body, cursors.files), *map(_stream_body, cursors.streams)]):
        database.change("INSERT INTO cursor (place, body) VALUES (?, ?)", place, body)
    database.change("DELETE FROM unsettled")
    if cursors.unsettled is not None:
        database.change("INSERT INTO unsettled (id, body) VALUES (1, ?)", _packed(cursors.unsettled))


def read_cursors(database: Database) -> Cursors:
    """What was written last. Raises ValueError, TypeError or KeyError for what was not."""
    bodies = [json.loads(row["body"]) for row in database.rows("SELECT body FROM cursor ORDER BY place")]
    # A file's begins with its stamp, a stream's with its name.
    files = tuple(_cursor(*body) for body in bodies if isinstance(body[0], list))
    streams = tuple(StreamCursor(*body) for body in bodies if isinstance(body[0], str))
    row = database.row("SELECT body FROM unsettled")
    return Cursors(files, _unpacked(row["body"]) if row else None, streams)


def _body(cursor: Cursor) -> str:
    stamp = [getattr(cursor.stamp, name) for name in FileStamp.__slots__]
    return json.dumps([stamp, *(getattr(cursor, name) for name in Cursor.__slots__[1:])])


def _stream_body(cursor: StreamCursor) -> str:
    return json.dumps([getattr(cursor, name) for name in StreamCursor.__slots__])


def _cursor(stamp: list[int], offset: int, head: list[str], *rest: Any) -> Cursor:
    return Cursor(FileStamp(*stamp), offset, tuple(head), *rest)


def _packed(unsettled: Unsettled) -> bytes:
    values = {
        "deployments": unsettled.deployments,
        "replicas": unsettled.replicas,
        "settled_until": unsettled.settled_until,
    }
    return pack(values, {name: getattr(unsettled.spans, name) for name in AnsweredSpans.__slots__})


def _unpacked(body: bytes) -> Unsettled:
    packed = unpack(body)
    spans = AnsweredSpans(**{**packed.arrays, "told": packed.arrays["told"].astype(bool)})
    values = packed.values
    return Unsettled(tuple(values["deployments"]), tuple(values["replicas"]), spans, values["settled_until"])
