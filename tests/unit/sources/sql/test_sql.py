"""Queries against a small SQLite database; every figure stands in its rows."""

from __future__ import annotations

import math
import sqlite3
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from advisor.domain.evidence import RequestLog, Window
from advisor.sources.request_log import LogReading
from advisor.sources.sql import SqlOptions, read_sql
from advisor.sources.sql.columns import requests, seconds
from advisor.sources.sql.connection import address, connect_arguments

T0 = 1_795_960_800  # 2026-11-29T14:00:00Z, the beginning of an hour
WINDOW = Window(T0, T0 + 7200)
BOUNDED = "WHERE coalesce(time, 0) >= 0 AND :since < :until"
REFUSAL = (
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4800 in the messages, "
    "200 in the completion)."
)


class Database:
    """One table in a file, all columns of any type."""

    def __init__(self, folder: Path, columns: str, *rows: Sequence[object]) -> None:
        self.path = folder / "requests.db"
        marks = ",".join("?" * len(columns.split(",")))
        with sqlite3.connect(self.path) as connection:
            connection.execute(f"CREATE TABLE request ({columns})")
            connection.executemany(f"INSERT INTO request VALUES ({marks})", rows)
        connection.close()

    def read(self, query: str = f"SELECT * FROM request {BOUNDED}", **more: Any) -> LogReading:
        options = SqlOptions(url=f"sqlite:///{self.path}", query=query, **more)
        return read_sql(options, WINDOW, lambda model, _: None if model == "strange" else model, lambda _: 0.0)


def only(reading: LogReading) -> RequestLog:
    (log,) = reading.logs.values()
    return log


def told(reading: LogReading) -> tuple[str, str]:
    return reading.state.status, reading.state.detail


def test_rows_of_single_requests(tmp_path: Path) -> None:
    everything = (
        "time, model, upstream, status, prompt_tokens, completion_tokens, max_tokens, ttft, duration, finish_reason, "
        "error_message, client"
    )
    database = Database(
        tmp_path,
        everything,
        (T0 + 10, "m", "r:1", 200, 100, 11, 50, 0.5, 1.5, "stop", None, "team"),
        (T0 + 20.5, "m", "r:1", 200, 100, 11, None, None, 1.0, "length", None, None),
        ("2026-11-29 14:00:30", "m", None, None, 300, 30, None, None, None, None, None, None),
        (T0 + 40, "m", None, 400, 4800, None, None, None, None, None, REFUSAL, None),
        (T0 + 50, "m", None, 500, None, None, None, None, None, None, "boom", None),
        (T0 + 60, "m", None, 200, None, None, None, None, None, None, None, None),
        (T0 + 70, "strange", None, 200, 5, 5, None, None, None, None, None, None),
        (T0 - 1, "m", None, 200, 7, 7, None, None, None, None, None, None),
        (None, "m", None, 200, 7, 7, None, None, None, None, None, None),
    )
    reading = database.read()
    log = only(reading)
    assert (log.served.prompt.tolist(), log.served.output.tolist()) == ([100, 300], [11, 30])
    assert log.served.counts.tolist() == [2, 1]
    assert (log.refused, log.failed, log.without_usage, log.requests) == (1, 1, 1, 6)
    assert log.refused_needs.lengths.tolist() == [5000]
    assert (log.declared.lengths.tolist(), log.cut.lengths.tolist()) == ([150], [111])
    assert (log.first_seconds, log.last_seconds) == (T0 + 10, T0 + 60)
    # The second arrived a second before it ended, the others at their end or 1.5 s before it: all in one slot.
    assert log.arrivals == {T0: 6}
    assert log.latency is not None
    # Under the load of itself alone, rounded up by at most 1 %.
    assert log.latency.ttft_seconds == pytest.approx([0.5], rel=0.0101)
    assert log.latency.tpot_seconds == pytest.approx([0.1], rel=0.0101)
    assert (log.tells_refusals, log.tells_cuts, log.source) == (True, True, "sql")
    assert log.history is not None
    assert min(log.history.clients) == ""
    assert "team" not in log.history.clients
    assert reading.strangers == {"strange": 1}
    assert reading.state.status == "ok"
    assert reading.state.detail == (
        "6 requests in 9 rows (not used: 1 without a time, 1 outside the window, 1 of models that no deployment claims)"
    )


def test_what_the_query_does_not_yield_is_not_told(tmp_path: Path) -> None:
    log = only(Database(tmp_path, "TIME, Prompt_Tokens, completion_tokens, status", (T0, 5, 6, 200)).read())
    assert (log.tells_refusals, log.tells_cuts, log.latency) == (False, False, None)
    assert log.requests == 1


def test_a_bad_row_costs_one_row_and_is_counted(tmp_path: Path) -> None:
    good = [(T0 + place, 10, 20) for place in range(300)]
    bad = [(T0, -5, 1), (T0, "many", 1), ("yesterday", 1, 1), (T0, 10**12, 1), (1e400, b"\xff", 1)]
    reading = Database(tmp_path, "time, prompt_tokens, completion_tokens", *good, *bad).read()
    assert only(reading).served.n == 300
    assert told(reading) == (
        "partial",
        "300 requests in 305 rows (5 of 305 rows skipped: 5 with a missing or impossible value)",
    )


def test_counted_requests_by_the_hour(tmp_path: Path) -> None:
    """The hour before the window has most of its time outside; 7 requests have no usage."""
    columns = "time, count, prompt_tokens, completion_tokens, hour, model"
    database = Database(
        tmp_path,
        columns,
        (0, 1000, 100, 10, T0, "m"),
        (0, 500, 100, 10, "2026-11-29T15:00:00Z", "m"),
        (0, 1, 9000, 1000, T0, "m"),
        (0, 7, None, None, T0, "m"),
        (0, 3, 100, 10, T0 - 3600, "m"),
        (0, 9, 100, 10, T0, "strange"),
        (0, 0, 100_000, 10, T0, "m"),
        (0, -1, 100_000, 10, T0, "m"),
    )
    reading = database.read(f"SELECT count, prompt_tokens, completion_tokens, hour, model FROM request {BOUNDED}")
    log = only(reading)
    assert dict(zip(log.served.prompt.tolist(), log.served.counts.tolist(), strict=True)) == {100: 1500, 9000: 1}
    assert (log.without_usage, log.requests, log.refused, log.failed) == (7, 1508, 0, 0)
    assert (log.first_seconds, log.last_seconds) == (T0, T0 + 7200)
    assert (log.tells_refusals, log.tells_cuts) == (False, False)
    assert (log.arrivals, log.latency) == ({}, None)
    assert log.history is not None
    assert (log.history.seconds, log.history.n) == (3600, 1501)
    assert set(log.history.start.tolist()) == {T0, T0 + 3600}
    assert reading.strangers == {"strange": 9}
    assert reading.state.detail == (
        "1,508 requests in 8 rows (1 of 8 rows skipped: 1 with a missing or impossible value; "
        "not used: 9 of models that no deployment claims, 3 outside the window)"
    )


def test_counts_without_hours_span_no_time(tmp_path: Path) -> None:
    database = Database(tmp_path, "time, count, prompt_tokens, completion_tokens", (0, 1000, 100, 10))
    reading = database.read(f"SELECT count, prompt_tokens, completion_tokens FROM request {BOUNDED}")
    log = only(reading)
    assert log.served.n == 1000
    assert log.first_seconds == log.last_seconds
    assert log.history is None
    assert reading.state.detail == "1,000 requests in 1 row, over an unknown time: group by hour too"


@pytest.mark.parametrize(
    ("select", "why"),
    [
        ("time, prompt_tokens", "the query yields no column 'completion_tokens'; it needs time, prompt_tokens, "),
        ("prompt_tokens AS count", "the query yields no column 'prompt_tokens'; it needs count, prompt_tokens, "),
        ("*, 1 AS finish_reasons", "column 'finish_reasons' is none of time, model, upstream, "),
        ("*, time", "the query yields two columns of one name"),
        ("nothing", "sqlite /"),
    ],
)
def test_a_query_that_does_not_fit_is_told(tmp_path: Path, select: str, why: str) -> None:
    reading = Database(tmp_path, "time, prompt_tokens, completion_tokens").read(
        f"SELECT {select} FROM request {BOUNDED}"
    )
    assert reading.state.status == "failed"
    assert why in reading.state.detail
    assert "\n" not in reading.state.detail


def test_an_answer_is_whole_or_not_used(tmp_path: Path) -> None:
    database = Database(tmp_path, "time, prompt_tokens, completion_tokens", *[(T0, 1, 1)] * 11)
    assert only(database.read(max_rows=11)).served.n == 11
    reading = database.read(max_rows=10)
    assert (reading.logs, reading.state.status) == ({}, "failed")
    assert "more than 10 rows: group in the query, look back less far or raise max_rows" in reading.state.detail
    endless = f"""WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT {T0} AS time, 1 AS prompt_tokens, 1 AS completion_tokens FROM n WHERE :since < :until"""
    slow = database.read(endless, statement_timeout_seconds=0.05)
    assert "no whole answer in time" in slow.state.detail


def test_nothing_can_be_written(tmp_path: Path) -> None:
    database = Database(tmp_path, "time, prompt_tokens, completion_tokens", (T0, 1, 1))
    reading = database.read("DELETE FROM request WHERE :since < :until RETURNING *")
    assert reading.state.status == "failed"
    assert only(database.read()).served.n == 1


def test_an_empty_answer_is_no_failure(tmp_path: Path) -> None:
    reading = Database(tmp_path, "time, prompt_tokens, completion_tokens").read()
    assert told(reading) == ("ok", "0 requests in 0 rows")


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ({"preset": "litellm"}, "name `url` or `url_file`"),
        ({"url": "postgresql://db/x"}, "name `preset` or `query`"),
        ({"url": "postgresql://u:hunter2@db/x", "preset": "litellm"}, "must not hold a password"),
        ({"url": "postgresql://db/x?user=u&password=hunter2", "preset": "litellm"}, "must not hold a password"),
        ({"url": "db.example.com", "preset": "litellm"}, "must be an address such as postgresql://"),
        ({"url": "sqlite://", "query": "SELECT 1 WHERE x::until > :since"}, "must use :until"),
    ],
)
def test_settings_that_cannot_be(stated: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why) as caught:
        SqlOptions.model_validate(stated)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("clickhouse://db/x", "clickhouse db/x: no dialect of that name"),
        ("mysql://db/x", "mysql db/x: the driver MySQLdb is not installed"),
        (
            "postgresql://advisor:hunter2@127.0.0.1:9/x",
            "postgresql 127.0.0.1:9/x: refuses the connection; is it running",
        ),
        ("hunter2", "sql: url holds no address"),
    ],
)
def test_a_database_that_is_not_there(tmp_path: Path, url: str, why: str) -> None:
    (tmp_path / "url").write_text(url)
    reading = read_sql(SqlOptions(url_file=tmp_path / "url", preset="litellm"), WINDOW, lambda m, _: m, lambda _: 0.0)
    assert reading.state.status == "failed"
    assert why in reading.state.detail
    assert "hunter2" not in reading.state.detail


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql://advisor@db.example.com/x", "verify-full"),
        ("postgresql+psycopg://advisor@10.0.0.5:6432/x", "verify-full"),
        ("postgresql://advisor@db.example.com/x?sslmode=disable", None),
        ("postgresql://advisor@localhost/x", None),
        ("postgresql:///x?host=/var/run/postgresql", None),
        ("trino://advisor@db.example.com/x", None),
    ],
)
def test_a_postgresql_elsewhere_must_prove_who_it_is(url: str, mode: str | None) -> None:
    options = SqlOptions(url=url, preset="litellm")
    arguments = connect_arguments(options, address(options))
    assert arguments.get("sslmode") == mode
    assert mode is None or Path(arguments["sslrootcert"]).is_file()


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    for module in ("connection", "failure"):
        monkeypatch.delitem(sys.modules, f"advisor.sources.sql.{module}", raising=False)
    options = SqlOptions(url="postgresql://db/x", preset="litellm")
    state = read_sql(options, WINDOW, lambda m, _: m, lambda _: 0.0).state
    assert (state.status, state.detail) == (
        "failed",
        "SQLAlchemy is not installed: pip install 'serving-advisor[sql]'",
    )


def test_moments_of_every_driver() -> None:
    """2026-11-29T14:00:00Z is 1795960800, and midnight 50,400 s before it."""
    moments = [
        T0,
        float(T0),
        Decimal(T0),
        str(T0),
        T0 * 1000,
        "2026-11-29T14:00:00Z",
        datetime(2026, 11, 29, 14),  # noqa: DTZ001
        datetime(2026, 11, 29, 14, tzinfo=UTC),
        datetime.fromisoformat("2026-11-29T15:00:00+01:00"),
    ]
    assert seconds(moments) == [T0] * len(moments)
    assert seconds([date(2026, 11, 29)]) == [T0 - 50_400]
    assert math.isnan(seconds([None])[0])


VALUES = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=9), st.binary(max_size=9), st.datetimes())


@given(st.lists(st.tuples(VALUES, VALUES, VALUES, VALUES), max_size=4))
def test_any_values_are_read_or_refused(rows: list[tuple[object, ...]]) -> None:
    where = {"time": 0, "prompt_tokens": 1, "status": 2, "ttft": 3}
    try:
        read = requests(rows, where)
    except (ValueError, TypeError, ArithmeticError):
        return
    assert len(read) == len(rows)
    assert all(-1 <= tokens <= 100_000_000 for tokens in read.prompt_tokens)
