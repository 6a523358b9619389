"""The query API against a real HTTP server that plays a Prometheus in trouble, or one that is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Window
from advisor.sources.prometheus import PrometheusOptions, read_prometheus
from advisor.sources.prometheus_api import PrometheusApi, pieces
from tests.unit.sources.http_server import Answering, answering, reply


@contextmanager
def api(answer: Answering, headers: dict[str, str] | None = None) -> Iterator[PrometheusApi]:
    with answering(answer) as url:
        yield PrometheusApi(PrometheusOptions(url=url, read_timeout_seconds=0.5), headers or {})


def failure(answer: Answering) -> str:
    with api(answer) as prometheus, pytest.raises(SourceError) as caught:
        prometheus.instant("up", 0)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def vector(*results: object, **more: object) -> bytes:
    data = {"resultType": "vector", "result": list(results)}
    return json.dumps({"status": "success", "data": data, **more}).encode()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, b"Unauthorized", "wants credentials; set bearer_token_file, or user and password_file (401)"),
        (403, b"{}", "refuses these credentials; check bearer_token_file"),
        (404, b"404 page not found", "has no query API there; does url lack a path prefix? (404)"),
        (200, b"<!DOCTYPE html><title>Grafana</title>", "does not answer as Prometheus does"),
        (200, b'{"status":"success","data":{"resultType":"vector"', "gives an answer that breaks off or is no JSON"),
        (401, b"no org id\n", "serves several tenants; set tenant (401)"),
        (200, b"[" * 100_000, "does not answer as Prometheus does"),
        (200, b'"success"', "does not answer as Prometheus does"),
        (200, b'{"status":"success","data":{"resultType":"scalar","result":"1"}}', "does not answer as"),
        (200, b'{"status":"error","errorType":"internal","error":"lost\\nit"}', "cannot answer (internal): lost it"),
        (400, b'{"status":"error","errorType":"bad_data","error":"parse"}', "cannot answer (bad_data): parse"),
        (503, b'{"status":"error","errorType":"timeout","error":"query timed out"}', "(timeout): query timed out"),
        (500, b"", "answers with HTTP status 500"),
        (200, vector({"metric": 7, "value": [1, "2"]}), "gives samples in no known form"),
        (200, vector({"metric": {}, "value": [1, "two"]}), "gives samples in no known form"),
        (200, vector({"metric": {}, "value": 5}), "gives samples in no known form"),
        (200, vector("metric"), "gives samples in no known form"),
    ],
)
def test_every_failure_is_one_line(status: int, body: bytes, message: str) -> None:
    assert message in failure(lambda handler, _: reply(handler, body, status))


def test_an_endless_error_text_is_cut() -> None:
    body = json.dumps({"status": "error", "errorType": "x" * 9999, "error": "y" * 99999}).encode()
    assert len(failure(lambda handler, _: reply(handler, body, 500))) < 320


def test_a_query_travels_in_the_body_with_the_tenant() -> None:
    seen: list[tuple[str, dict[str, list[str]], str | None]] = []

    def note(handler: object, body: bytes) -> None:
        seen.append((handler.path, parse_qs(body.decode()), handler.headers.get("X-Scope-OrgID")))  # type: ignore[attr-defined]
        reply(handler, vector())  # type: ignore[arg-type]

    long = "up or " * 4000 + "up"
    with api(note, {"X-Scope-OrgID": "team"}) as prometheus:
        prometheus.instant(long, 5)
    ((path, form, tenant),) = seen
    assert (path, tenant) == ("/api/v1/query", "team")
    assert form == {
        "query": [long],
        "time": ["5.000"],
        "timeout": ["1s"],
        "nocache": ["1"],
        "dedup": ["true"],
        "partial_response": ["true"],
    }


def test_hostile_labels_come_through_as_they_are() -> None:
    labels = {"__name__": "up", "model_name": '<!channel>"}{\\\n', "instance": "a"}
    with api(lambda handler, _: reply(handler, vector({"metric": labels, "value": [7, "1"]}))) as prometheus:
        (series,) = prometheus.instant("up", 7)
    assert series.name == "up"
    assert series.labels == {"model_name": '<!channel>"}{\\\n', "instance": "a"}
    assert series.values.tolist() == [1]


def test_samples_that_are_no_finite_numbers_are_dropped_and_counted() -> None:
    values = [[15, "NaN"], [30, "+Inf"], [45, "-Inf"], [60, "2"]]
    body = vector({"metric": {}, "values": values}, {"metric": {"a": "b"}, "histograms": [[1, {}]]})
    with api(lambda handler, _: reply(handler, body)) as prometheus:
        (series,) = prometheus.range("x", 0, 60, 15, series=1)
        assert (prometheus.dropped, prometheus.samples, prometheus.queries) == (3, 4, 1)
    assert series.times.tolist() == [60]


def test_a_partial_answer_is_told_once_and_remarks_on_the_query_are_not() -> None:
    bodies = [vector(warnings=["store\x1b down"], infos=["PromQL info: no counter"]), vector(isPartial=True), vector()]
    with api(lambda handler, _: reply(handler, bodies.pop() if len(bodies) > 1 else bodies[0])) as prometheus:
        for _ in range(4):
            prometheus.instant("up", 0)
        assert prometheus.session.warnings == ["some storage nodes did not answer (isPartial)", "store down"]


def test_a_server_that_warns_without_end_is_not_kept_in_full() -> None:
    count = iter(range(10_000))
    with api(lambda handler, _: reply(handler, vector(warnings=[f"{next(count)}" for _ in range(9)]))) as prometheus:
        for _ in range(60):
            prometheus.instant("up", 0)
        assert len(prometheus.session.warnings) == 100


def test_an_empty_server_is_partial_and_says_what_to_look_at() -> None:
    with answering(lambda handler, _: reply(handler, vector())) as url:
        reading = read_prometheus(PrometheusOptions(url=url), Window(0, 7200))
    assert reading.deployments == ()
    assert reading.state.status == "partial"
    assert "none of vllm:num_requests_running, sglang:num_running_reqs" in reading.state.detail
    assert reading.queries == 2  # the second looks for engines under other names


def test_pieces_of_a_week_at_15_seconds() -> None:
    cut = list(pieces(0.4, 604800.2, 15, series=3))
    assert cut[0] == (1, 149986)  # 604,801 - 40,320 x 15 is the first grid time; 10,000 points to a piece
    assert cut[-1][1] == 604801
    assert len(cut) == 5


@given(start=st.floats(0, 1e6), span=st.floats(0, 1e6), step=st.integers(15, 3600), series=st.integers(0, 2_000_000))
def test_pieces_cover_the_grid_once(start: float, span: float, step: int, series: int) -> None:
    cut = list(pieces(start, start + span, step, min(series, 20_000)))
    grid = [t for first, last in cut for t in range(first, last + 1, step)]
    assert all(0 <= (last - first) / step < 10_000 for first, last in cut)
    assert all(b - a == step for a, b in pairwise(grid))
    assert grid[0] >= start - 1e-6  # a start of 1e-60 is 0 to whoever takes it from 2,747
    assert grid[0] - step < start + 1
    assert 0 <= grid[-1] - (start + span) <= 1


@pytest.mark.parametrize(
    "settings",
    [
        {"identity_labels": ["job", 'model"}']},
        {"identity_labels": []},
        {"matchers": {"a b": "c"}},
        {"matchers": {'x="1"} or {a': "c"}},
        {"sample_budget": 5},
    ],
)
def test_settings_that_would_break_queries_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        PrometheusOptions.model_validate({"url": "http://prometheus:9090", **settings})
