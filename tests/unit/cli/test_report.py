from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from advisor.cli.report import command
from advisor.domain.errors import AdvisorError, SourceError
from advisor.domain.report import Report, SourceState
from advisor.outlets.structured import render_json
from advisor.store import Store
from tests.slack_server import CHANNEL, TOKEN, slack
from tests.unit.outlets import samples

pytestmark = pytest.mark.slow

FLEET = (samples.throttled(), samples.short_of_replicas(), samples.healthy())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration beside a store that holds one evaluation."""
    store = Store.open(tmp_path / "advisor.db")
    report = Report(samples.NOW, samples.WEEK, (SourceState("prometheus", "ok", "fine"),), FLEET)
    store.save_report(samples.NOW, render_json(report), {})
    store.close()
    (tmp_path / "token").write_text(TOKEN)
    file = tmp_path / "advisor.yaml"
    file.write_text(f"store: {{path: {tmp_path}/advisor.db}}\n")
    return file


def _with_slack(config: Path, url: str) -> None:
    settings = f"{{channel: {CHANNEL}, token_file: {config.parent}/token, api_url: '{url}/api/'}}"
    config.write_text(config.read_text() + f"slack: {settings}\n")


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], standalone_mode=False)


def test_text_is_the_report_as_people_read_it(config: Path) -> None:
    done = _run("-c", config)
    assert done.exception is None
    assert "3 deployments: 2 to change, 1 fine." in done.output
    assert "  | Undo: --max-num-seqs 16" in done.output


def test_slack_is_the_payload_that_posting_sends(config: Path) -> None:
    with slack() as (url, state):
        _with_slack(config, url)
        calls: list[dict[str, Any]] = json.loads(_run("-c", config, "--format", "slack").output)
        assert state.calls == []
        done = _run("-c", config, "--post")
    assert (done.exception, done.return_value) == (None, 0)
    assert [c["arguments"]["blocks"] for c in calls] == [m["blocks"] for m in state.messages]
    assert [c["arguments"]["text"] for c in calls] == [m["text"] for m in state.messages]
    assert {c["method"] for c in calls} == {"chat.postMessage"}


def test_posting_again_in_the_same_week_sends_nothing(config: Path) -> None:
    with slack() as (url, state):
        _with_slack(config, url)
        assert f"{CHANNEL}: 3 sent" in _run("-c", config, "--post").output
        again = _run("-c", config, "--post")
    # Advice that the channel was told of is in no thread any more, so that only the parent is met again.
    assert f"{CHANNEL}: 0 sent, 1 there already" in again.output
    assert len(state.messages) == 3


def test_a_post_that_slack_refuses_ends_with_3_and_the_remedy(config: Path) -> None:
    with slack() as (url, state):
        _with_slack(config, url)
        state.errors["chat.postMessage"] = "is_archived"
        done = _run("-c", config, "--post")
    assert done.return_value == 3
    assert "slack says is_archived: the channel is archived: mend channel" in done.output


def test_a_secret_that_cannot_be_read_is_refused_before_anything_is_noted(config: Path) -> None:
    _with_slack(config, "http://127.0.0.1:1")
    (config.parent / "token").unlink()
    before = (config.parent / "advisor.db").read_bytes()
    done = _run("-c", config, "--post")
    assert isinstance(done.exception, SourceError)
    assert f"slack.token_file {config.parent}/token cannot be read; nothing was posted" in str(done.exception)
    assert (config.parent / "advisor.db").read_bytes() == before


def test_markdown_is_the_whole_evaluation(config: Path) -> None:
    assert "## `chat-70b`" in _run("-c", config, "--format", "markdown").output


def test_html_is_the_page(config: Path) -> None:
    assert _run("-c", config, "--format", "html").output.lower().startswith("<!doctype html>")


def test_without_a_channel_there_is_nowhere_to_post_to(config: Path) -> None:
    done = _run("-c", config, "--post")
    assert isinstance(done.exception, AdvisorError)
    assert "nowhere to post to" in str(done.exception)


def test_a_store_without_an_evaluation_says_so(tmp_path: Path) -> None:
    Store.open(tmp_path / "empty.db").close()
    done = _run("--store", tmp_path / "empty.db")
    assert isinstance(done.exception, AdvisorError)
    assert "no evaluation yet" in str(done.exception)
