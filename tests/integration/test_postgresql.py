"""LiteLLM's table of spend on a real PostgreSQL: what the preset makes of it, and what the server refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from advisor.cli import cli
from advisor.domain.evidence import RequestLog, Window
from advisor.domain.report import SourceState
from advisor.gather import gather
from advisor.settings import Config, Settings
from advisor.sources.request_log import LogReading
from advisor.sources.sql import SqlOptions, read_sql
from advisor.sources.sql.connection import answer
from advisor.sources.yaml_file import load_yaml, validate
from tests.certificates import issue
from tests.conftest import absent
from tests.postgresql_server import PostgresqlMissingError, serve

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
T0 = 1_795_960_800  # 2026-11-29T14:00:00Z
WINDOW = Window(T0, T0 + 3600)
CREATED = """CREATE TABLE "LiteLLM_SpendLogs" (
    "request_id" TEXT NOT NULL PRIMARY KEY,
    "call_type" TEXT NOT NULL,
    "api_key" TEXT NOT NULL DEFAULT '',
    "spend" DOUBLE PRECISION NOT NULL DEFAULT 0.0,
    "total_tokens" INTEGER NOT NULL DEFAULT 0,
    "prompt_tokens" INTEGER NOT NULL DEFAULT 0,
    "completion_tokens" INTEGER NOT NULL DEFAULT 0,
    "startTime" TIMESTAMP(3) NOT NULL,
    "endTime" TIMESTAMP(3) NOT NULL,
    "completionStartTime" TIMESTAMP(3),
    "model" TEXT NOT NULL DEFAULT '',
    "model_group" TEXT DEFAULT '',
    "api_base" TEXT DEFAULT '',
    "metadata" JSONB DEFAULT '{}',
    "cache_hit" TEXT DEFAULT '',
    "end_user" TEXT,
    "messages" JSONB DEFAULT '{}',
    "response" JSONB DEFAULT '{}',
    "status" TEXT
)"""
TOO_LONG = (
    "litellm.ContextWindowExceededError: This model's maximum context length is 4096 tokens. However, you requested "
    "5000 tokens (4800 in the messages, 200 in the completion)."
)


@contextmanager
def postgresql(**more: Any) -> Iterator[str]:
    try:
        with serve(**more) as url:
            yield url
    except PostgresqlMissingError as error:
        absent(str(error))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        with psycopg.connect(url) as connection:
            connection.execute(CREATED)
            connection.execute("CREATE SEQUENCE ticket")
            # A server whose clock is elsewhere: stored times are UTC all the same.
            connection.execute("ALTER DATABASE postgres SET TIME ZONE 'Asia/Tokyo'")
        yield url


@pytest.fixture
def database(server: str) -> str:
    """The server with an empty table."""
    with psycopg.connect(server) as connection:
        connection.execute('TRUNCATE "LiteLLM_SpendLogs"')
    return server


def spend(url: str, *rows: dict[str, Any]) -> None:
    """Rows of requests that ended `at` seconds after T0 and took `took` seconds, `first` to their first token."""
    with psycopg.connect(url) as connection:
        (known,) = connection.execute('SELECT count(*) FROM "LiteLLM_SpendLogs"').fetchone() or (0,)
        for number, row in enumerate(rows, known):
            at, took, first = row.pop("at"), row.pop("took", 2.0), row.pop("first", None)
            end = datetime.fromtimestamp(T0 + at, UTC).replace(tzinfo=None)
            start = end - timedelta(seconds=took)
            told = {
                "request_id": f"chatcmpl-{number}",
                "call_type": "acompletion",
                "startTime": start,
                "endTime": end,
                "completionStartTime": end if first is None else start + timedelta(seconds=first),
                "model": "hosted_vllm/acme",
                "model_group": "chat",
                "api_base": "http://10.0.0.1:8000/v1",
                "cache_hit": "False",
                "status": "success",
                **row,
            }
            names = ", ".join(f'"{name}"' for name in told)
            marks = ", ".join(["%s"] * len(told))
            connection.execute(f'INSERT INTO "LiteLLM_SpendLogs" ({names}) VALUES ({marks})', [*told.values()])


def failure(code: str, message: str) -> dict[str, str]:
    told = {"status": "failure", "error_information": {"error_code": code, "error_message": message}}
    return {"status": "failure", "metadata": json.dumps(told)}


def read(url: str, window: Window = WINDOW, **more: Any) -> LogReading:
    options = SqlOptions.model_validate({"url": url, **({} if "query" in more else {"preset": "litellm"}), **more})
    return read_sql(options, window, lambda model, _: model, lambda _: 0.0)


def ask(options: SqlOptions) -> SourceState:
    return read_sql(options, WINDOW, lambda model, _: model, lambda _: 0.0).state


def only(reading: LogReading) -> RequestLog:
    (log,) = reading.logs.values()
    return log


def test_the_table_of_spend(database: str) -> None:
    spend(
        database,
        {"at": 10, "prompt_tokens": 100, "completion_tokens": 11, "first": 0.5, "took": 1.5},
        {"at": 400, "prompt_tokens": 100, "completion_tokens": 11, "api_base": "https://u:pw@gpu-2:8443/v1"},
        {"at": 500, "prompt_tokens": 4000, "completion_tokens": 90, "model_group": ""},
        {"at": 510, "prompt_tokens": 100, "completion_tokens": 11, "cache_hit": "True"},
        {"at": 520, "prompt_tokens": 4800, **failure("400", TOO_LONG)},
        {"at": 530, **failure("429", "no deployments available")},
        {"at": 540, **failure("", "connection reset")},
        {"at": 550, "prompt_tokens": 0, "completion_tokens": 0},
        {"at": 3601, "prompt_tokens": 7, "completion_tokens": 7},
        {"at": -1, "prompt_tokens": 7, "completion_tokens": 7},
    )
    reading = read(database, aliases={"hosted_vllm/acme": "chat"})
    log = only(reading)
    assert list(reading.logs) == ["chat"]
    assert dict(zip(log.served.prompt.tolist(), log.served.counts.tolist(), strict=True)) == {100: 2, 4000: 1}
    assert (log.refused, log.failed, log.without_usage) == (1, 2, 1)
    assert log.refused_needs.lengths.tolist() == [5000]
    assert (log.first_seconds, log.last_seconds) == (T0 + 10, T0 + 550)
    assert log.arrivals == {T0: 1, T0 + 300: 6}
    # Only the streamed one has a first token: 0.5 s, then 10 gaps in 1 s; the others' is their end.
    assert log.latency is not None
    assert log.latency.counts.tolist() == [1]
    assert (log.latency.ttft_seconds[0], log.latency.tpot_seconds[0]) == pytest.approx((0.5, 0.1), rel=0.0101)
    assert (log.tells_refusals, log.tells_cuts) == (True, False)
    assert (reading.state.status, reading.state.detail) == ("ok", "7 requests in 7 rows")


def test_an_upstream_is_the_address_of_the_replica(database: str) -> None:
    spend(database, {"at": 1, "prompt_tokens": 1, "api_base": "https://u:pw@gpu-2:8443/v1"})
    asked: set[str] = set()
    options = SqlOptions(url=database, preset="litellm")
    read_sql(options, WINDOW, lambda model, upstream: asked.add(upstream) or model, lambda _: 0.0)  # type: ignore[func-returns-value]
    assert asked == {"gpu-2:8443"}


def test_a_row_that_comes_late_counts_at_the_next_reading(database: str) -> None:
    spend(database, {"at": 100, "prompt_tokens": 10, "completion_tokens": 1})
    assert only(read(database)).served.n == 1
    spend(database, {"at": 50, "prompt_tokens": 10, "completion_tokens": 1})
    assert only(read(database)).served.n == 2


def test_the_example_for_a_warehouse(database: str) -> None:
    """40 requests of two lengths in two hours, one without lengths, one that failed."""
    with psycopg.connect(database) as connection:
        connection.execute(
            """CREATE TABLE llm_requests AS SELECT 'chat' AS model, 200 AS status, 10 + n %% 2 AS prompt_tokens,
                5 AS completion_tokens, to_timestamp(%s) + n * interval '3 min' AS finished_at
            FROM generate_series(0, 39) n""",
            [T0],
        )
        late = datetime.fromtimestamp(T0 + 60, UTC)
        rows = [("chat", 200, None, None, late), ("chat", 500, None, None, late)]
        connection.cursor().executemany("INSERT INTO llm_requests VALUES (%s, %s, %s, %s, %s)", rows)
    example = validate(load_yaml(ROOT / "config/examples/warehouse.yaml"), Config).sql
    assert example is not None
    reading = read(database, Window(T0, T0 + 7200), query=example.query)
    log = only(reading)
    assert (log.served.counts.tolist(), log.without_usage, log.failed) == ([20, 20], 1, 0)
    assert (log.first_seconds, log.last_seconds) == (T0, T0 + 7200)
    assert reading.state.detail == "41 requests in 5 rows"


def test_rows_wait_at_the_server_until_they_are_taken(database: str) -> None:
    """40,000 rows are two chunks of 16,384 and one of 7,232; between them the cursor lies in the server."""
    query = """SELECT now() AS time, 1 + n % 9 AS prompt_tokens, 1 AS completion_tokens FROM generate_series(1, 40000) n
        WHERE :since < :until"""
    options = SqlOptions(url=database, query=query)
    with answer(options, WINDOW) as told, psycopg.connect(database) as other:
        sizes = [len(next(told.chunks))]
        asked = other.execute("SELECT query FROM pg_stat_activity WHERE state = 'idle in transaction'").fetchall()
        sizes += [len(chunk) for chunk in told.chunks]
    assert sizes == [16_384, 16_384, 7_232]
    assert [text.startswith("FETCH FORWARD 1638") for (text,) in asked] == [True]


WRITES = """WITH gone AS (DELETE FROM "LiteLLM_SpendLogs" RETURNING *) SELECT now() AS time, 1 AS prompt_tokens,
    1 AS completion_tokens FROM gone WHERE :since < :until"""
WRITES_BY_FUNCTION = """SELECT now() AS time, nextval('ticket') AS prompt_tokens, 1 AS completion_tokens
    WHERE :since < :until"""
ENDLESS = """SELECT now() AS time, 1 AS prompt_tokens, 1 AS completion_tokens FROM pg_sleep(60) WHERE :since < :until"""
UNKNOWN = """SELECT nonsense AS time FROM "LiteLLM_SpendLogs" WHERE :since < :until"""
VALUE = """SELECT now() AS time, CAST('secret' AS integer) AS prompt_tokens WHERE :since < :until"""


@pytest.mark.parametrize(
    ("query", "more", "why"),
    [
        (WRITES, {}, "SQLSTATE 0A000"),
        (WRITES_BY_FUNCTION, {}, "the server says cannot execute nextval() in a read-only transaction"),
        (ENDLESS, {"statement_timeout_seconds": 0.3}, "no whole answer in time: raise statement_timeout_seconds"),
        (UNKNOWN, {}, 'the server says column "nonsense" does not exist'),
        (VALUE, {}, "SQLSTATE 22P02"),
    ],
)
def test_what_the_server_refuses(database: str, query: str, more: dict[str, Any], why: str) -> None:
    spend(database, {"at": 1, "prompt_tokens": 1, "completion_tokens": 1})
    reading = read(database, query=query, **more)
    assert reading.state.status == "failed"
    assert re.match(r"postgresql 127\.0\.0\.1:\d+/postgres: ", reading.state.detail)
    assert why in reading.state.detail
    assert "secret" not in reading.state.detail
    assert only(read(database)).served.n == 1


def test_the_log_is_believed_before_the_database(database: str, tmp_path: Path) -> None:
    spend(database, *[{"at": at, "prompt_tokens": 10, "completion_tokens": 5} for at in range(3)])
    spend(database, {"at": 5, "prompt_tokens": 10, "completion_tokens": 5, "model_group": "code"})
    usage = {"prompt_tokens": 77, "completion_tokens": 7}
    (tmp_path / "log").write_text(json.dumps({"ts": T0 + 1, "model": "chat", "status": 200, "usage": usage}) + "\n")
    stated = {"sql": {"url": database, "preset": "litellm"}, "logs": {"paths": [str(tmp_path / "log")]}}
    found = gather(Settings.model_validate(stated), WINDOW)
    logs = {name: evidence.log for name, evidence in found.deployments.items() if evidence.log}
    assert {name: (log.served.n, log.source) for name, log in logs.items()} == {
        "chat": (1, "request log log"),
        "code": (1, "sql"),
    }
    assert [(s.name, s.status, s.detail) for s in found.sources] == [
        ("request log log", "ok", "1 requests in 1 file"),
        ("sql", "ok", "4 requests in 4 rows"),
        ("sql passed over", "ok", "not used for chat (3 requests; the request log log has 1)"),
    ]


def test_without_metrics_that_were_asked_for_nobody_knows_whose_they_are(database: str) -> None:
    stated = {"sql": {"url": database, "preset": "litellm"}, "prometheus": {"url": "http://127.0.0.1:9"}}
    found = gather(Settings.model_validate(stated), WINDOW)
    (state,) = (source for source in found.sources if source.name == "sql")
    assert state.status == "failed"
    assert "no source of metrics answers" in state.detail
    assert found.deployments == {}


def test_a_newcomer_with_litellm_gets_advice(database: str, tmp_path: Path) -> None:
    """A week of 5,040 requests of 1,500 tokens under a limit of 32,768: 1,500 x 1.25 is 1,875, rounded up 2,048."""
    with psycopg.connect(database) as connection:
        connection.execute(
            """INSERT INTO "LiteLLM_SpendLogs" (request_id, call_type, prompt_tokens, completion_tokens,
                "startTime", "endTime", model_group, api_base, status)
            SELECT 'id-' || n, 'acompletion', 1000, 500, noon - n * interval '2 min',
                noon - n * interval '2 min' + interval '9 s', 'chat', 'http://r:8000/v1', 'success'
            FROM generate_series(1, 5100) n, (SELECT timestamp '2026-11-29 14:00:00' AS noon) AS told"""
        )
    config = tmp_path / "advisor.yaml"
    config.write_text(
        f"sql: {{url: '{database}', preset: litellm}}\ndeployments: {{chat: {{flags: {{max_model_len: 32768}}}}}}\n"
    )
    asked = ["check", "-c", str(config), "--until", str(T0), "-o", "json"]
    ran = CliRunner().invoke(cli, asked, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    facts = json.loads(ran.output)["deployments"][0]["facts"]
    assert facts["recommended_max_model_len"]["value"] == 2048
    assert facts["observed_days"]["value"] == pytest.approx(7, abs=0.01)
    assert facts["total_tokens_p999"]["source"] == "sql"
    # The table does not tell why generation ended, so nobody says that nothing was cut.
    assert facts["finish_length_share"]["value"] is None


def test_passwords_and_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    password = tmp_path / "password"
    password.write_text("p@ss:w/rd\n")
    query = "SELECT now() AS time, 1 AS prompt_tokens, 1 AS completion_tokens WHERE :since < :until"
    known = issue(tmp_path)
    certificate = known.certificate("server").read_bytes() + known.key("server").read_bytes()
    with postgresql(password="p@ss:w/rd", certificate=certificate) as url:
        options = SqlOptions(url=url, password_file=password, ca_file=known.authority, query=query)
        assert ask(options).status == "ok"
        whole = tmp_path / "url"
        whole.write_text(url.replace("advisor@", "advisor:p%40ss%3Aw%2Frd@"))
        assert ask(SqlOptions(url_file=whole, ca_file=known.authority, query=query)).status == "ok"
        stranger = ask(options.model_copy(update={"ca_file": None, "url": url + "?sslmode=verify-full"}))
        nowhere = ask(options.model_copy(update={"url": url.replace("/postgres", "/litellm")}))
        without = ask(options.model_copy(update={"password_file": None}))
        with monkeypatch.context() as environment:
            environment.setenv("PGPASSWORD", "p@ss:w/rd")
            assert ask(options.model_copy(update={"password_file": None})).status == "ok"
        password.write_text("hunter2")
        refused = ask(options)
    told = [stranger, nowhere, without, refused]
    assert {state.status for state in told} == {"failed"}
    assert [state.detail.partition(": ")[2] for state in told] == [
        "its certificate is not trusted; set ca_file",
        "has no such database; check url",
        "wants a password: set password_file, url_file or PGPASSWORD",
        "refuses account or password; check url and password_file",
    ]


def test_an_address_as_litellm_itself_has_it(database: str, tmp_path: Path) -> None:
    """Prisma's own parameters mean nothing to PostgreSQL's driver."""
    (tmp_path / "url").write_text(database + "?connection_limit=10&schema=public")
    state = ask(SqlOptions(url_file=tmp_path / "url", preset="litellm"))
    assert "the address has parameters that the driver does not know (Prisma's, perhaps)" in state.detail
