"""Limits told by the words of the servers' own messages, which were read in their sources and tests."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.sources.prometheus_refusal import explained


def refusal(told: str, status: int = 422, kind: str = "execution") -> str:
    document = {"status": "error", "errorType": kind, "error": told}
    return explained(status, json.dumps(document).encode(), document).why


MIMIR = "To adjust the related per-tenant limit, configure {}, or contact your service administrator."


@pytest.mark.parametrize(
    ("told", "line"),
    [
        pytest.param(
            "the total query time range exceeds the limit (query length: 168h0m0s, limit: 24h0m0s) "
            "(err-mimir-max-total-query-length). " + MIMIR.format("-query-frontend.max-total-query-length"),
            "the total query time range exceeds the limit (query length: 168h0m0s, limit: 24h0m0s) "
            "(err-mimir-max-total-query-length); look back less far (since), or raise "
            "-query-frontend.max-total-query-length",
            id="Mimir, length",
        ),
        pytest.param(
            "expanding series: the query exceeded the maximum number of series (limit: 3 series) "
            "(err-mimir-max-series-per-query). " + MIMIR.format("-querier.max-fetched-series-per-query"),
            "the query exceeded the maximum number of series (limit: 3 series) (err-mimir-max-series-per-query); "
            "narrow matchers, or raise -querier.max-fetched-series-per-query",
            id="Mimir, series",
        ),
        pytest.param(
            "the query exceeded the aggregated chunks size limit (limit: 9 bytes) (err-mimir-max-chunks-bytes-per-query"
            "). " + MIMIR.format("-querier.max-fetched-chunk-bytes-per-query"),
            "the query exceeded the aggregated chunks size limit (limit: 9 bytes) "
            "(err-mimir-max-chunks-bytes-per-query); narrow matchers, look back less far (since), or raise "
            "-querier.max-fetched-chunk-bytes-per-query",
            id="Mimir, chunks",
        ),
        pytest.param(
            "the query time range exceeds the limit (query length: 721h0m0s, limit: 720h0m0s)",
            "the query time range exceeds the limit (query length: 721h0m0s, limit: 720h0m0s); look back less far "
            "(since), or raise the tenant's limit on the length of a query",
            id="Cortex and Thanos, length",
        ),
        pytest.param(
            "expanding series: proxy Series(): rpc error: code = Aborted desc = receive series from Addr: store-0:1: "
            "rpc error: code = ResourceExhausted desc = exceeded series limit: limit 10 violated (got 11)",
            "exceeded series limit: limit 10 violated (got 11); narrow matchers, or raise "
            "the server's limit on the series of a query",
            id="Thanos, series",
        ),
        pytest.param(
            "query timed out in expression evaluation",
            "query timed out in expression evaluation; narrow matchers, lower sample_budget, or raise "
            "read_timeout_seconds and --query.timeout",
            id="Prometheus, time",
        ),
        pytest.param(
            "couldn't start executing the request in 10.000 seconds, since -search.maxConcurrentRequests=4 concurrent "
            "requests are executed",
            "couldn't start executing the request in 10.000 seconds, since -search.maxConcurrentRequests=4 concurrent "
            "requests are executed; try again when it is less busy, or raise -search.maxConcurrentRequests",
            id="VictoriaMetrics, busy",
        ),
    ],
)
def test_a_limit_is_told_with_what_to_do(told: str, line: str) -> None:
    assert refusal(told) == f"cannot answer (execution): {line}"


def test_an_error_that_is_no_limit_is_told_by_its_end() -> None:
    echo = 'error when executing query="' + "x" * 5000 + '": '
    why = refusal(echo + "unexpected token ; want (", 400, "bad_data")
    assert why.startswith("cannot answer (bad_data): …xxx")
    assert why.endswith('": unexpected token ; want (')


def test_only_what_another_time_may_answer_is_not_permanent() -> None:
    told = {"query timed out": False, "too many outstanding requests": False, "exceeded series limit": True, "?": True}
    for text, permanent in told.items():
        document = {"status": "error", "errorType": "execution", "error": text}
        assert explained(422, b"", document).permanent is permanent
    assert explained(503, b"", {"error": "store is down"}).permanent is False


@given(
    st.integers(100, 599), st.binary(max_size=300), st.dictionaries(st.sampled_from(["error", "errorType"]), st.text())
)
def test_every_refusal_is_one_short_line(status: int, body: bytes, document: dict[str, str]) -> None:
    why = explained(status, body, document).why
    assert why.isprintable()
    assert len(why) < 400
