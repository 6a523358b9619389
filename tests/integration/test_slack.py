"""Posting against a local server that speaks Slack's Web API: each message arrives once, whatever goes wrong."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.pictures import LengthPicture, Pictures
from advisor.outlets.charts import ChartError
from advisor.outlets.slack.options import SlackOptions
from advisor.outlets.slack.post import Message, Picture, Post, advice_key, section
from advisor.outlets.slack.poster import Outcome, SlackPoster
from tests.slack_server import CHANNEL, HOOK, TOKEN, Fault, SlackState, slack
from tests.unit.outlets.slack.notebook import Notebook

pytestmark = pytest.mark.integration

NOW = 1_795_968_000.0
PICTURE = Picture("chat", Pictures(LengthPicture((1.0, 10.0), (1.0,), 5, None, None, None, "log")), "chat: lengths")
PARENT = f"{CHANNEL}/2026-W48"
ANSWER = f"{PARENT}/chat"
FAULTS: tuple[Fault, ...] = ("429", "500 before", "500 after", "drop before", "drop after", "stall after", "not json")


def painted(wanted: Sequence[Picture]) -> list[bytes]:
    """As many pictures as are wanted."""
    return [b"a picture" for _ in wanted]


class Workplace:
    """One workspace, one delivery log, and posters that come and go."""

    def __init__(self, url: str, state: SlackState, folder: Path) -> None:
        self.url, self.state, self.log = url, state, Notebook()
        self.slept: list[float] = []
        self.token = folder / "token"
        self.token.write_text(f"{TOKEN}\n")
        self.hook = folder / "hook"
        self.hook.write_text(url + HOOK)

    def options(self, **changes: object) -> SlackOptions:
        given = {"channel": CHANNEL, "token_file": self.token, "api_url": f"{self.url}/api/", "timeout_seconds": 1.0}
        return SlackOptions.model_validate(given | {"settle_seconds": 0.0} | changes)

    def hooked(self) -> SlackOptions:
        return SlackOptions(webhook_url_file=self.hook, timeout_seconds=1.0, settle_seconds=0.0)

    def post(self, options: SlackOptions | None = None, now: float = NOW, post: Post | None = None) -> Outcome:
        poster = SlackPoster(options or self.options(), draw=painted, sleep=self.slept.append)
        return poster.post(post or _post(), self.log, now)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workplace]:
    with slack() as (url, state):
        yield Workplace(url, state, tmp_path)


def _post() -> Post:
    parent = Message(PARENT, "the week", (section("*the week*"),))
    answer = Message(ANSWER, "chat: raise it", (section("chat"),), PICTURE, announces=("a1",))
    return Post(CHANNEL, parent, (answer,))


def _hook_post() -> Post:
    return Post("webhook", Message("webhook/2026-W48", "the week", (section("the week"),), announces=("a1",)))


def _everything_is_there_once(work: Workplace) -> None:
    assert work.state.texts(thread=False) == ["the week"]
    assert work.state.texts(thread=True) == ["chat: raise it"]
    assert [share["thread_ts"] for share in work.state.shares()] == [work.state.messages[0]["ts"]]


def test_a_report_is_a_message_an_answer_and_a_picture_under_it(work: Workplace) -> None:
    outcome = work.post()
    assert (outcome.sent, outcome.already, outcome.complete) == (3, 0, True)
    _everything_is_there_once(work)
    assert work.state.files["F00000000"]["alt"] == "chat: lengths"
    assert work.state.messages[0]["metadata"]["event_payload"] == {"key": PARENT}


def test_the_same_period_is_posted_once(work: Workplace) -> None:
    work.post()
    again = work.post(now=NOW + 3600)
    assert (again.sent, again.already, again.complete) == (0, 3, True)
    _everything_is_there_once(work)


def test_what_a_channel_was_told_of_is_remembered(work: Workplace) -> None:
    work.post()
    known = work.log.state(advice_key(CHANNEL, "a1"))
    assert known is not None
    assert known.state == "sent"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", [0, 1])
def test_no_failure_of_a_message_doubles_or_loses_it(work: Workplace, fault: Fault, place: int) -> None:
    if place:
        work.post(post=Post(CHANNEL, _post().parent))
    work.state.faults["chat.postMessage"] = [fault, fault]
    outcomes = [work.post(now=NOW + 300 * n) for n in range(2)]
    assert outcomes[-1].complete, str(outcomes[-1])
    _everything_is_there_once(work)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "upload", "files.completeUploadExternal"])
def test_no_failure_of_an_upload_doubles_or_loses_the_picture(work: Workplace, fault: Fault, method: str) -> None:
    work.state.faults[method] = [fault]
    outcomes = [work.post(now=NOW + 300 * n) for n in range(2)]
    assert outcomes[-1].complete, str(outcomes[-1])
    _everything_is_there_once(work)


QUICK = st.lists(
    st.sampled_from(["429", "500 before", "500 after", "drop before", "drop after", "not json"]), max_size=4
)
METHODS = ("chat.postMessage", "files.completeUploadExternal", "conversations.history", "conversations.replies")


@settings(max_examples=40, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(METHODS, QUICK)))
def test_no_run_of_failures_doubles_or_loses_anything(faults: dict[str, list[Fault]]) -> None:
    with tempfile.TemporaryDirectory() as folder, slack(SlackState(faults=faults)) as (url, state):
        work = Workplace(url, state, Path(folder))
        # Sixteen failures at most, and every run that is not complete has met one of them.
        outcomes = [work.post(now=NOW + 300 * n) for n in range(17)]
        assert outcomes[-1].complete, str(outcomes[-1])
        _everything_is_there_once(work)


def test_retry_after_is_obeyed(work: Workplace) -> None:
    work.state.faults["chat.postMessage"] = ["429"]
    assert work.post().complete
    assert work.slept[0] == 7.0


def test_a_wait_that_is_too_long_is_left_to_the_next_run(work: Workplace) -> None:
    work.state.faults["chat.postMessage"], work.state.retry_after = ["429"], "3600"
    first = work.post()
    assert (first.sent, first.complete, first.retry) == (0, False, True)
    assert 3600.0 not in work.slept
    assert work.post(now=NOW + 3600).complete
    _everything_is_there_once(work)


@pytest.mark.parametrize("arrived", [True, False])
def test_after_a_crash_the_message_is_looked_for_first(work: Workplace, arrived: bool) -> None:
    if arrived:
        work.post()
        work.log = Notebook()
    for key in (PARENT, ANSWER, f"{ANSWER}/picture"):
        work.log.begin(key, NOW)
    assert work.post(now=NOW + 3600).complete
    _everything_is_there_once(work)
    assert work.state.calls.count("chat.postMessage") == 2


def test_what_lies_behind_many_other_messages_is_found(work: Workplace) -> None:
    work.post()
    work.state.messages += [{"ts": work.state.stamp(), "text": f"chatter {n}"} for n in range(450)]
    work.log = Notebook()
    work.log.begin(PARENT, NOW)
    work.post(now=NOW + 3600, post=Post(CHANNEL, _post().parent))
    assert work.state.texts(thread=False).count("the week") == 1


def test_a_quotation_of_the_text_is_not_taken_for_the_message(work: Workplace) -> None:
    work.state.messages.append({"ts": work.state.stamp(), "text": "the week"})
    work.log.begin(PARENT, NOW)
    assert work.post(now=NOW + 3600).complete
    assert work.state.texts(thread=False) == ["the week", "the week"]


def test_a_server_that_accepts_slowly_is_given_time(tmp_path: Path) -> None:
    # The client gives up after 1 s, the server accepts after 1.6 s, and 3 s are left for that.
    with slack() as (url, state):
        work = Workplace(url, state, tmp_path)
        state.accept_delay_seconds = 1.6
        waiting = threading.Event()
        poster = SlackPoster(work.options(settle_seconds=3.0), sleep=waiting.wait)
        outcome = poster.post(Post(CHANNEL, _post().parent), work.log, NOW)
        assert outcome.complete
        assert state.texts(thread=False) == ["the week"]
        assert state.calls.count("chat.postMessage") == 1


def test_a_stop_leaves_an_open_message_alone(work: Workplace) -> None:
    work.log.begin(PARENT, NOW)
    poster = SlackPoster(work.options(settle_seconds=60.0), sleep=lambda _: True)
    outcome = poster.post(_post(), work.log, NOW + 1)
    assert (outcome.sent, outcome.retry) == (0, True)
    assert "chat.postMessage" not in work.state.calls


def test_where_looking_is_not_allowed_nothing_is_repeated_and_it_is_said(work: Workplace) -> None:
    work.state.errors["conversations.history"] = "missing_scope"
    work.state.faults["chat.postMessage"] = ["drop after"]
    outcomes = [work.post(now=NOW + 3600 * n) for n in range(2)]
    assert work.state.texts(thread=False) == ["the week"]
    for outcome in outcomes:
        assert (outcome.complete, outcome.retry) == (False, False)
        assert "may have arrived" in str(outcome)
        assert "scope channels:history" in str(outcome)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("invalid_auth", "token_file"),
        ("channel_not_found", "mend channel"),
        ("is_archived", "mend channel"),
        ("missing_scope", "add the scope"),
    ],
)
def test_a_permanent_error_is_named_once_with_its_remedy(work: Workplace, error: str, remedy: str) -> None:
    work.state.errors["chat.postMessage"] = error
    outcome = work.post()
    assert (outcome.sent, outcome.retry, len(outcome.problems)) == (0, False, 1)
    assert error in str(outcome)
    assert remedy in str(outcome)
    known = work.log.state(PARENT)
    assert known is not None
    assert (known.state, known.permanent) == ("failed", True)


def test_a_mended_error_is_made_up_for(work: Workplace) -> None:
    work.state.errors["chat.postMessage"] = "not_in_channel"
    work.post()
    work.state.errors.clear()
    assert work.post(now=NOW + 3600).complete
    _everything_is_there_once(work)


def test_the_token_is_read_anew_and_never_told(work: Workplace, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    work.token.write_text("xoxb-old-and-secret")
    outcome = work.post()
    assert "xoxb" not in str(outcome) + repr(outcome) + caplog.text
    work.token.write_text(TOKEN)
    assert work.post(now=NOW + 60).complete
    assert TOKEN not in caplog.text


def test_a_token_that_cannot_be_read_is_a_permanent_problem(work: Workplace) -> None:
    work.token.unlink()
    outcome = work.post()
    assert not outcome.retry
    assert "slack.token_file" in str(outcome)
    assert work.state.calls == []
    known = work.log.state(PARENT)
    assert known is not None
    assert (known.state, known.permanent) == ("failed", True)
    work.token.write_text(TOKEN)
    assert work.post(now=NOW + 3600).complete
    _everything_is_there_once(work)


def test_a_token_that_is_gone_does_not_forget_what_may_have_arrived(work: Workplace) -> None:
    work.log.begin(PARENT, NOW)
    work.token.unlink()
    work.post(now=NOW + 3600)
    known = work.log.state(PARENT)
    assert known is not None
    assert known.state == "sending"


def test_slack_out_of_reach_is_tried_again_later(work: Workplace) -> None:
    away = work.options(api_url="http://127.0.0.1:1/api/")
    outcome = work.post(away)
    assert (outcome.sent, outcome.retry) == (0, True)
    assert work.post(now=NOW + 300).complete


def test_two_processes_at_once_post_once(work: Workplace) -> None:
    work.state.accept_delay_seconds = 0.2

    def one(_: int) -> Outcome:
        options = work.options(settle_seconds=1.5)
        poster = SlackPoster(options, draw=painted, sleep=lambda seconds: time.sleep(min(seconds, 1.5)))
        return poster.post(_post(), work.log, NOW)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(4)))
    assert work.post(now=NOW + 600).complete
    _everything_is_there_once(work)


def test_a_picture_that_cannot_be_drawn_costs_only_the_picture(work: Workplace) -> None:
    def broken(wanted: Sequence[Picture]) -> list[bytes | ChartError]:
        return [ChartError("the chart was not drawn: out of memory") for _ in wanted]

    poster = SlackPoster(work.options(), draw=broken, sleep=work.slept.append)
    outcome = poster.post(_post(), work.log, NOW)
    assert (outcome.sent, outcome.retry) == (2, True)
    assert work.post(now=NOW + 300).complete
    _everything_is_there_once(work)


def test_a_webhook_posts_the_parent(work: Workplace) -> None:
    outcome = work.post(work.hooked(), post=_hook_post())
    assert (outcome.sent, outcome.complete) == (1, True)
    assert [m["text"] for m in work.state.hooked] == ["the week"]
    assert work.post(work.hooked(), post=_hook_post()).already == 1


@pytest.mark.parametrize("fault", ["500 after", "drop after", "stall after"])
def test_a_webhook_without_an_answer_is_not_repeated(work: Workplace, fault: Fault) -> None:
    work.state.faults[HOOK] = [fault]
    outcomes = [work.post(work.hooked(), now=NOW + 3600 * n, post=_hook_post()) for n in range(2)]
    assert len(work.state.hooked) == 1
    assert all("a webhook cannot look back" in str(outcome) for outcome in outcomes)


def test_a_dead_webhook_is_a_permanent_problem_and_its_address_stays_secret(work: Workplace) -> None:
    work.hook.write_text(f"{work.url}/services/T0/B0/gone")
    outcome = work.post(work.hooked(), post=_hook_post())
    assert (outcome.retry, outcome.sent) == (False, 0)
    assert "404 no_service" in str(outcome)
    assert "services" not in str(outcome)
