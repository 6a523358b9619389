"""The commands over what the daemon remembers, on a real store and against a real server."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import time_machine
from click.testing import CliRunner, Result

from advisor.cli import COMMANDS, cli
from advisor.cli.store_access import DEFAULT_STORE
from advisor.domain.errors import AdvisorError, SourceError, UsageError
from advisor.domain.life import AdviceRecord
from advisor.domain.report import DeploymentReport, Report
from advisor.outcomes import advance, with_states
from advisor.outlets.structured import render_json
from advisor.service_options import DEFAULT_STORE as CONFIGURED_DEFAULT
from advisor.store import Store
from advisor.web.api import History, RecordJson
from tests.unit.outlets.samples import NOW, fleet, report
from tests.unit.outlets.test_restore import PICTURES

pytestmark = pytest.mark.slow


def drawn(deployment: DeploymentReport) -> DeploymentReport:
    """With charts, and with ids that are unique in the fleet, as the composer's are."""
    judgement = deployment.judgement
    advice = tuple(
        replace(a, id=hashlib.sha256(f"{deployment.evidence.name} {a.rule}".encode()).hexdigest()[:10])
        for a in judgement.advice
    )
    return replace(deployment, judgement=replace(judgement, advice=advice), pictures=PICTURES)


DRAWN = replace(fleet(), deployments=tuple(map(drawn, fleet().deployments)))


def kept(path: Path, original: Report = DRAWN) -> Path:
    """A store as the daemon leaves it after one evaluation."""
    records = advance((), original.deployments, NOW)
    with closing(Store.open(path)) as store:
        store.save_records(records)
        store.save_report(NOW, render_json(with_states(original, records)), {})
    return path


def records(path: Path) -> tuple[AdviceRecord, ...]:
    with closing(Store.open(path, readonly=True)) as store:
        return store.records()


def advisor(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False)


def printed(*arguments: str | Path) -> str:
    result = advisor(*arguments)
    assert result.exception is None, result.exception
    return result.output


def refused(*arguments: str | Path) -> AdvisorError:
    error = advisor(*arguments).exception
    assert isinstance(error, AdvisorError)
    return error


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    with time_machine.travel(NOW + 720, tick=False):
        yield kept(tmp_path / "advisor.db")


def test_status_reads_the_store_and_says_how_old_it_is(store: Path) -> None:
    lines = printed("status", "--store", store).splitlines()
    assert lines[0].startswith("judged Sun 29 Nov 2026 16:00 UTC, 12 min ago · 7 deployments")
    assert all(len(line) <= 80 for line in lines)
    assert any(line.startswith("^ chat-70b   x2  --max-num-seqs 16 -> 24") for line in lines)


def test_a_decision_counts_at_once_and_can_be_taken_back(store: Path) -> None:
    chat = next(r for r in records(store) if r.deployment == "chat-70b" and r.state == "open")
    said = printed("snooze", chat.id, "--until", "2026-12-24", "--reason", "freeze", "--store", store)
    assert said == (f"{chat.id} is snoozed until Thu 24 Dec 2026 00:00 UTC: --max-num-seqs 16 -> 24 of chat-70b\n")
    status = printed("status", "--store", store)
    assert "^ chat-70b   x2  --max-model-len 131072 -> 8192" in status
    assert "1 snoozed" in status
    shown = printed("show", "chat-70b", "--store", store)
    assert "is snoozed until 24 Dec 2026: freeze" in " ".join(shown.split())
    printed("reject", chat.id, "--reason", "no", "--store", store)
    assert "1 rejected" in printed("status", "--store", store)
    printed("reopen", chat.id, "--store", store)
    assert "^ chat-70b   x2  --max-num-seqs 16 -> 24" in printed("status", "--store", store)


def test_wrong_decisions_are_refused_with_a_reason(store: Path) -> None:
    chat = next(r for r in records(store) if r.deployment == "chat-70b")
    past = refused("snooze", chat.id, "--until", "2026-11-01", "--reason", "x", "--store", store)
    assert isinstance(past, UsageError)
    assert "is not in the future" in str(past)
    assert "write a date" in str(refused("snooze", chat.id, "--until", "soon", "--reason", "x", "--store", store))
    assert "no advice has an id" in str(refused("reject", "zzz", "--reason", "x", "--store", store))
    assert "can be reopened" in str(refused("reopen", chat.id, "--store", store))


def test_show_draws_the_charts_below_the_detail(store: Path) -> None:
    shown = printed("show", "chat-70b", "--store", store)
    assert shown.index("CEILINGS on max_num_seqs") < shown.index("TOTAL TOKENS of 412,310 requests, request log")
    assert "TIME PER TOKEN over concurrency" in shown
    (one,) = json.loads(printed("show", "chat-70b", "-o", "json", "--store", store))["deployments"]
    assert one["name"] == "chat-70b"
    assert "did you mean 'chat-70b'?" in str(refused("show", "chat-7b", "--store", store))


def test_evidence_that_show_writes_is_what_check_reads(store: Path, tmp_path: Path) -> None:
    case = tmp_path / "case.yaml"
    case.write_text(printed("show", "chat-70b", "-o", "evidence", "--store", store), encoding="utf-8")
    (one,) = json.loads(printed("check", "--evidence", case, "-o", "json"))["deployments"]
    assert one["facts"]["memory_ceiling_guaranteed"]["value"] == 71
    assert one["facts"]["recommended_max_model_len"]["value"] == 8_192


def test_history_is_of_the_fleet_or_of_one_deployment(store: Path) -> None:
    assert "code-8b" in printed("history", "--store", store)
    one = printed("history", "chat-70b", "--store", store)
    assert "code-8b" not in one
    assert "expects TTFT p99 1.84 s -> 0.5-0.7 s" in one
    told = json.loads(printed("history", "chat-70b", "-o", "json", "--store", store))
    assert {r["state"] for r in told["records"]} == {"open", "queued"}
    assert printed("history", "ghost", "--store", store) == "no advice was given yet\n"


def test_explain_takes_the_id_of_a_piece_of_advice(store: Path, tmp_path: Path) -> None:
    chat = next(r for r in records(store) if r.advice.rule == "concurrency/cap-pinned-cache-free")
    page = printed("explain", chat.id, "--store", store)
    assert page.count(chat.id) == 1
    assert page.index("--max-num-seqs 16 -> 24") < page.index("concurrency/cap-pinned-cache-free")
    assert "no advice has an id" in str(refused("explain", "length/nonsense", "--store", store))


def test_the_store_is_named_by_option_environment_or_configuration(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "advisor.yaml"
    config.write_text(f"store: {{path: {store}}}\n", encoding="utf-8")
    expected = printed("status", "--store", store)
    assert printed("status", "-c", config) == expected
    monkeypatch.setenv("ADVISOR_STORE__PATH", str(store))
    assert printed("status") == expected
    config.write_text("store: {path: [1]}\n", encoding="utf-8")
    monkeypatch.delenv("ADVISOR_STORE__PATH")
    assert "store.path is no path" in str(refused("status", "-c", config))
    assert str(CONFIGURED_DEFAULT) == DEFAULT_STORE


def test_nothing_to_show_is_exit_code_3(tmp_path: Path) -> None:
    missing = refused("status", "--store", tmp_path / "none.db")
    assert isinstance(missing, SourceError)
    assert "there is no store: start the daemon" in str(missing)
    with closing(Store.open(tmp_path / "new.db")):
        pass
    assert isinstance(refused("status", "--store", tmp_path / "new.db"), SourceError)
    assert advisor("status", "--store", kept(tmp_path / "empty.db", report())).return_value == 3


@contextmanager
def served(answers: dict[str, tuple[int, str]]) -> Iterator[str]:
    """A server on loopback with these answers by path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = answers.get(self.path, (404, ""))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_reading_commands_ask_a_server_as_well(store: Path) -> None:
    with closing(Store.open(store, readonly=True)) as memory:
        latest = memory.latest_report()
    assert latest is not None
    history = History(records=[RecordJson.model_validate(r) for r in records(store)], track_records=[])
    answers = {"/api/v1/deployments": (200, latest[1]), "/api/v1/history": (200, history.model_dump_json())}
    with served(answers) as url:
        assert printed("status", "--server", url) == printed("status", "--store", store)
        assert printed("show", "chat-70b", "--server", url + "/") == printed("show", "chat-70b", "--store", store)
        assert printed("history", "--server", url) == printed("history", "--store", store)


def test_a_server_that_cannot_tell_is_one_line(store: Path) -> None:
    answers = {"/api/v1/deployments": (503, "{}"), "/api/v1/history": (200, "<html>")}
    with served(answers) as url:
        assert "nothing was evaluated yet" in str(refused("status", "--server", url))
        assert "no history of this version" in str(refused("history", "--server", url))
    assert "does not answer" in str(refused("status", "--server", url))
    assert "write http://HOST:PORT" in str(refused("status", "--server", "file:///etc/passwd"))


LOADED = """
import sys, json
from advisor.cli import cli
cli.main(["status", "--store", sys.argv[1]], standalone_mode=False)
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def test_status_loads_nothing_that_is_slow(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOADED, str(kept(tmp_path / "advisor.db"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stderr))
    assert loaded.isdisjoint({"numpy", "pandas", "scipy", "pydantic", "requests", "rich", "ruamel.yaml", "fastapi"})


def test_the_life_commands_are_listed() -> None:
    assert {"status", "show", "history", "snooze", "reject", "reopen"} <= set(COMMANDS)
