"""Loki's HTTP API: one page of lines at a time, patient with a busy server, within a time and a size."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any

import msgspec
from pydantic import Field
from requests import Response

from advisor.domain.errors import SourceError
from advisor.sources.http_session import HttpOptions, Session, TooLargeError, one_line

LARGEST_BODY_BYTES = 64 << 20
_PATH = "/loki/api/v1/query_range"
_BUSY = (429, 502, 503, 504)
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 60.0
_HASH_CHARACTERS = 16
_TOO_MANY = re.compile(rb"max entries limit per query exceeded, limit > max_entries_limit\w* \(\d+ > (\d{1,9})\)")
_ADVICE = {
    400: "refuses the query",
    401: "wants a tenant or credentials; set tenant, bearer_token_file, or user and password_file",
    403: "refuses these credentials; check tenant, bearer_token_file, user and password_file",
    404: "has no such API there; does url lack a path prefix?",
    429: "is throttled; what is left is read next time",
}


class LokiOptions(HttpOptions):
    """Lines in a Loki."""

    query: str = Field(
        min_length=2, max_length=10_000, description='LogQL that selects the lines, such as `{app="litellm"}`'
    )
    tenant: str | None = Field(None, description="Tenant, sent as X-Scope-OrgID")
    page_lines: int = Field(5000, ge=1, le=100_000, description="Lines to ask for at once; servers give 5,000 at most")
    delay_seconds: float = Field(
        120.0, ge=0, le=86_400, description="Younger lines are left for the next reading; none may come later than this"
    )
    reading_timeout_seconds: float = Field(
        300.0, gt=0, le=3600, description="How long one reading may take; what is left is read next time"
    )


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `nanoseconds`: UNIX time. `mark`: a hash that tells it from others of that time."""

    nanoseconds: int
    mark: str
    text: bytes


class _Stream(msgspec.Struct, gc=False):
    stream: dict[str, Any]
    values: list[list[Any]]


class _Data(msgspec.Struct, gc=False):
    result_type: str = msgspec.field(name="resultType")
    result: list[_Stream] = msgspec.field(default_factory=list)


class _Answer(msgspec.Struct, gc=False):
    data: _Data


_decode = msgspec.json.Decoder(_Answer).decode


class LokiApi:
    """Asks one server, until a moment of the monotonic clock."""

    def __init__(self, options: LokiOptions, deadline: float) -> None:
        self._options, self._deadline = options, deadline
        self._session = Session(options, largest_body_bytes=LARGEST_BODY_BYTES, busy_pauses_seconds=())
        if options.tenant is not None:
            self._session.headers["X-Scope-OrgID"] = options.tenant
        self._most_lines = options.page_lines
        self._lines = options.page_lines

    def close(self) -> None:
        """Give the connection back."""
        self._session.close()

    def page(self, start: int, end: int) -> tuple[list[Line], bool]:
        """The first lines of [start, end), nanoseconds, in order; and whether there may be more. Raises SourceError.

        Where an answer is too large, or the server gives fewer lines at once, fewer are asked for.
        """
        while True:
            asked = self._lines
            try:
                response = self._patiently(start, end, asked)
            except TooLargeError:
                if asked == 1:
                    raise
                self._lines = max(1, asked // 8)
                continue
            if (most := _TOO_MANY.search(response.content)) and 0 < int(most[1]) < asked:
                self._most_lines = self._lines = int(most[1])
                continue
            if response.status_code != 200:
                raise SourceError(f"{self._options.place} {_refusal(response)}")
            lines = self._decoded(response.content)
            self._lines = min(self._most_lines, 2 * asked)
            # A line that a server gives twice is one line.
            once = {(line.nanoseconds, line.mark): line for line in lines}
            return sorted(once.values(), key=lambda line: line.nanoseconds), len(lines) >= asked

    def _patiently(self, start: int, end: int, lines: int) -> Response:
        told = {"query": self._options.query, "start": str(start), "end": str(end), "limit": str(lines)}
        pause = _FIRST_PAUSE_SECONDS
        while True:
            response = self._session.get(self._options.url + _PATH, params=told | {"direction": "forward"})
            if response.status_code not in _BUSY:
                return response
            wait = _asked_to_wait(response, time.time())
            wait = pause if wait is None else wait
            if time.monotonic() + wait > self._deadline:
                return response
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _decoded(self, body: bytes) -> list[Line]:
        try:
            data = _decode(body).data
            if data.result_type != "streams":
                raise SourceError(f"{self._options.place}: the query yields no lines but numbers; select lines only")
            return [line for stream in data.result for line in _lines(stream)]
        except (msgspec.DecodeError, ValueError, TypeError, IndexError, RecursionError):
            raise SourceError(
                f"{self._options.place} answers with something else than Loki's JSON; is url right?"
            ) from None


def _lines(stream: _Stream) -> list[Line]:
    labels = sha256(msgspec.json.encode(stream.stream, order="deterministic"))
    found = []
    for moment, text, *_ in stream.values:
        written = str(text).encode("utf-8", "surrogatepass")
        mark = labels.copy()
        mark.update(written)
        found.append(Line(int(moment), mark.hexdigest()[:_HASH_CHARACTERS], written))
    return found


def _asked_to_wait(response: Response, now: float) -> float | None:
    """Seconds that a busy server asks for (RFC 9110: seconds or a date); None where it does not say."""
    told = response.headers.get("Retry-After", "")
    if told.isascii() and told.isdigit() and len(told) < 10:
        return float(told)
    try:
        moment = parsedate_to_datetime(told)
    except (ValueError, TypeError):
        return None
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)


def _refusal(response: Response) -> str:
    advice = _ADVICE.get(response.status_code, f"answers with HTTP {response.status_code}")
    said = one_line(response.content[:2000].decode("utf-8", "replace"), 200)
    return f"{advice}: {said}" if said else advice


def moment_of(nanoseconds: int) -> str:
    """A time for people, UTC to the second."""
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
