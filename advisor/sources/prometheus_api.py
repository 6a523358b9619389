"""Prometheus's HTTP API, through prometheus-api-client: range and instant queries that come back as arrays.

The client sends and unpacks; what it leaves open is closed here: the body is bounded and read once, warnings of partial
answers are kept, the server's own error text is told, and ranges are cut below the 11,000 points that a server gives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import requests
from prometheus_api_client import PrometheusConnect

from advisor.domain.errors import SourceError

from .http_session import CONNECT_RETRY, HttpOptions, Session, one_line
from .metrics_series import RawSeries
from .prometheus_refusal import explained

LARGEST_BODY_BYTES = 128 << 20
MOST_POINTS = 10_000
SAMPLES_A_REQUEST = 500_000
"""Python needs about 200 bytes for a sample while an answer is unpacked, so this bounds a request to 100 MB."""

ASKED_OF_KIN = {"nocache": "1", "dedup": "true", "partial_response": "true"}
"""What other servers than Prometheus, which ignores it, are asked for. VictoriaMetrics would move the grid to multiples
of the step, so that pieces would not fit together and the newest data would be missed; Thanos is to merge redundant
servers, and to give what it has, with a warning, when a store is down."""
MOST_WARNINGS = 100


class Answer(requests.Response):
    """An answer whose JSON was decoded once already."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__()
        self.status_code = 200
        self._document = document

    def json(self, **_: Any) -> Any:
        """The decoded document."""
        return self._document


class QuerySession(Session):
    """Checks every answer and keeps what the server warns of."""

    def __init__(self, options: HttpOptions) -> None:
        super().__init__(options, largest_body_bytes=LARGEST_BODY_BYTES)
        self.warnings: list[str] = []

    def request(self, method: Any, url: Any, *args: Any, **keywords: Any) -> requests.Response:
        """Send; the answer is one with status `success` and a list of results, everything else is a SourceError."""
        response = super().request(method, url, *args, **keywords)
        document = _decoded(response.content)
        data = document.get("data")
        well_formed = isinstance(data, Mapping) and isinstance(data.get("result"), list)
        if response.status_code != 200 or document.get("status") != "success" or not well_formed:
            refusal = explained(response.status_code, response.content, document)
            raise SourceError(f"{self._options.place} {refusal.why}", permanent=refusal.permanent)
        self._note(document)
        return Answer(document)

    def _note(self, document: Mapping[str, Any]) -> None:
        """Keep what says that the answer is in part only; `infos` are remarks on the query."""
        texts = document.get("warnings")
        told = [one_line(str(text)) for text in (texts if isinstance(texts, list) else [])[:5]]
        if document.get("isPartial") is True:
            told.append("some storage nodes did not answer (isPartial)")
        self.warnings += [text for text in told if text not in self.warnings][: MOST_WARNINGS - len(self.warnings)]


def _decoded(body: bytes) -> Mapping[str, Any]:
    """The JSON object in a body, or an empty one: an HTML page and a broken document are told by what they lack."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return {}
    return document if isinstance(document, Mapping) else {}


class PrometheusApi:
    """Queries on one server, counted."""

    def __init__(self, options: HttpOptions, headers: Mapping[str, str]) -> None:
        self.session = QuerySession(options)
        self.session.headers.update(headers)
        self.samples = 0
        self.dropped = 0
        self._place = options.place
        self._asked = {"timeout": f"{math.ceil(options.read_timeout_seconds)}s", **ASKED_OF_KIN}
        self._client = PrometheusConnect(options.url, retry=CONNECT_RETRY, session=self.session, method="POST")

    @property
    def queries(self) -> int:
        """Requests sent so far, repeated ones included."""
        return self.session.sent

    def instant(self, query: str, at: float) -> list[RawSeries]:
        """The vector that `query` gives at one time (UNIX seconds)."""
        found = self._client.custom_query(query, params={"time": f"{at:.3f}", **self._asked})
        return self._series([found], "value")

    def range(self, query: str, start: float, end: float, step: int, series: int) -> list[RawSeries]:
        """The series that `query` gives on a grid of `step` seconds that ends at `end`; about `series` are expected."""
        answers = (self._piece(query, *piece, step) for piece in pieces(start, end, step, series))
        return self._series(answers, "values")

    def _piece(self, query: str, first: int, last: int, step: int) -> Any:
        begin, finish = (datetime.fromtimestamp(t, tz=UTC) for t in (first, last))
        return self._client.custom_query_range(query, begin, finish, str(step), params=self._asked)

    def _series(self, answers: Iterable[Any], field: str) -> list[RawSeries]:
        gathered: dict[frozenset[tuple[str, str]], list[tuple[Any, Any]]] = {}
        for answer in answers:
            try:
                for labels, times, values in _unpacked(answer, field):
                    gathered.setdefault(labels, []).append((times, values))
                    self.samples += times.size
            except (KeyError, TypeError, ValueError, AttributeError):
                raise SourceError(f"{self._place} gives samples in no known form; is url its address?") from None
        return [self._joined(dict(labels), parts) for labels, parts in gathered.items()]

    def _joined(self, labels: dict[str, str], parts: list[tuple[Any, Any]]) -> RawSeries:
        times, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        finite = np.isfinite(values)
        self.dropped += int(values.size - finite.sum())
        return RawSeries(labels.pop("__name__", ""), labels, times[finite], values[finite])


def _unpacked(answer: Any, field: str) -> Iterator[tuple[frozenset[tuple[str, str]], Any, Any]]:
    """Labels, times and values of every series; native histograms come under another field and are passed over."""
    for entry in answer:
        pairs = entry.get(field, [])
        if pairs:
            times, values = zip(*([pairs] if field == "value" else pairs), strict=True)
            yield frozenset(entry["metric"].items()), np.array(times, dtype=float), np.array(values, dtype=float)


def pieces(start: float, end: float, step: int, series: int) -> Iterator[tuple[int, int]]:
    """First and last time of the requests that cover the grid of `step` seconds which ends at `end`.

    Whole seconds, because the client rounds to them. No request asks for more than 10,000 points a series or 500,000
    samples: a day at 15 s (5,761 points with both ends) of 3 series is one request, of 300 series it is four.

    >>> list(pieces(0, 86400, 15, 300))[0]
    (0, 24975)
    """
    last = math.ceil(end)
    points = max(0, math.floor((last - start) / step)) + 1
    first = last - (points - 1) * step
    most = max(1, min(MOST_POINTS, SAMPLES_A_REQUEST // max(series, 1)))
    for begin in range(0, points, most):
        yield first + begin * step, first + (min(begin + most, points) - 1) * step
