"""A server that answers `query_range` as Loki's API does, with the limits and the moods of a real one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from tests.unit.sources.http_server import answering, reply

Logged = tuple[int, str, str]
"""UNIX nanoseconds, the stream (value of its only label), the line."""


@dataclass
class Loki:
    """What it holds, and how it behaves.

    most: lines that it gives at once. busy: what to answer first, status and Retry-After. fails_after: so many answers.
    """

    lines: list[Logged] = field(default_factory=list)
    most: int = 5000
    tenant: str | None = None
    busy: list[tuple[int, str | None]] = field(default_factory=list)
    fails_after: int | None = None
    end_included: bool = False
    asked: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler, _: bytes) -> None:
        """Answer one request."""
        url = urlsplit(handler.path)
        told = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.asked.append(told)
        self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        if url.path != "/loki/api/v1/query_range":
            reply(handler, b"404 page not found", 404)
        elif self.tenant is not None and handler.headers.get("X-Scope-OrgID") != self.tenant:
            reply(handler, b"no org id\n", 401)
        elif self.busy:
            status, after = self.busy.pop(0)
            reply(handler, b"too many outstanding requests", status, {"Retry-After": after} if after else {})
        elif self.fails_after is not None and len(self.asked) > self.fails_after:
            reply(handler, b"context deadline exceeded", 500)
        elif int(told["limit"]) > self.most:
            limit = f"max_entries_limit_per_query ({told['limit']} > {self.most})"
            reply(handler, f"max entries limit per query exceeded, limit > {limit}".encode(), 400)
        else:
            reply(handler, self._streams(int(told["start"]), int(told["end"]), int(told["limit"])))

    def _streams(self, start: int, end: int, limit: int) -> bytes:
        """The first lines, start included and end not, by stream; the streams in an order that nobody knows."""
        last = end if self.end_included else end - 1
        first = sorted(line for line in set(self.lines) if start <= line[0] <= last)[:limit]
        streams: dict[str, list[list[object]]] = {}
        for moment, name, line in first:
            metadata = [{"structuredMetadata": {"trace_id": "7"}}] if name == "c" else []
            streams.setdefault(name, []).append([str(moment), line, *metadata])
        result = [{"stream": {"app": name}, "values": values} for name, values in reversed(streams.items())]
        data = {"resultType": "streams", "result": result, "stats": {}}
        return json.dumps({"status": "success", "data": data}).encode()


@contextmanager
def serving(loki: Loki) -> Iterator[str]:
    """Yields the URL."""
    with answering(loki.answer) as url:
        yield url
