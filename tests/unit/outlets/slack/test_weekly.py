from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from advisor.domain.advice import Advice
from advisor.domain.fact import Fact, FactSheet, measured
from advisor.domain.life import AdviceRecord, LifeState, Score, TrackRecord
from advisor.domain.pictures import LengthPicture, Pictures
from advisor.domain.report import DeploymentReport, Report, SourceState
from advisor.outlets.slack.options import SlackOptions
from advisor.outlets.slack.post import Message, Post
from advisor.outlets.slack.preview import preview
from advisor.outlets.slack.standing import DAY, Edition, period_of
from advisor.outlets.slack.weekly import critical, weekly
from tests.slack_server import SlackState, _post_message
from tests.unit.outlets import samples
from tests.unit.outlets.samples import HOSTILE_NAMES, NOW, WEEK

EDITION = Edition(NOW, "2026-W48", reported=lambda _: NOW - 7 * DAY)
FLEET = (samples.throttled(), samples.short_of_replicas(), samples.healthy(), samples.cannot_tell())
OK = (SourceState("prometheus", "ok", "fine"),)


def _options(**changes: Any) -> SlackOptions:
    return SlackOptions.model_validate({"channel": "C0123ABCD", "token_file": Path("token")} | changes)


def _report(*deployments: DeploymentReport, sources: tuple[SourceState, ...] = OK) -> Report:
    return Report(NOW, WEEK, sources, deployments)


def _weekly(report: Report, *records: AdviceRecord, edition: Edition = EDITION, **changes: Any) -> tuple[Post, ...]:
    return weekly(report, records, (), edition, _options(**changes))


def _record(state: LifeState, since: float = NOW - DAY, **changes: Any) -> AdviceRecord:
    advice = replace(samples.throttled().judgement.advice[0], id="old", current=12.0, recommended=16.0)
    advice = replace(advice, flag="--max-num-seqs 16", undo="--max-num-seqs 12")
    return replace(AdviceRecord("chat-70b", advice, state, since, since - 30 * DAY, NOW), **changes)


def _text(posts: tuple[Post, ...]) -> str:
    return preview(posts)


def _parent(posts: tuple[Post, ...]) -> str:
    return preview([replace(posts[0], thread=())])


def _accepted(message: Message) -> None:
    """The local Slack refuses what the real one refuses."""
    given = {"channel": "C0123ABCD", **json.loads(json.dumps(message.payload()))}
    _post_message(SlackState(), given, "")


def test_the_week_is_counted_by_the_readers_calendar() -> None:
    # Sun 3 Jan 2027 23:30 UTC ends week 53 of 2026; in Berlin it is half past midnight on Monday, in week 1.
    assert period_of(1_799_019_000.0) == "2026-W53"
    assert period_of(1_799_019_000.0, ZoneInfo("Europe/Berlin")) == "2027-W01"


def test_the_parent_tells_the_fleet_the_new_advice_and_the_flag_to_copy() -> None:
    text = _parent(_weekly(_report(*FLEET)))
    assert "Serving advice · week 48" in text
    assert "4 deployments: 2 to change, 1 fine, 1 cannot tell." in text
    assert "🚨 code-8b raise replicas from 4 to 6" in text
    assert "💡 chat-70b raise max_num_seqs from 16 to 24\n--max-num-seqs 24\nrequests wait behind the cap" in text
    assert text.index("code-8b") < text.index("chat-70b")


def test_the_thread_has_one_message_for_each_deployment_with_something_to_say() -> None:
    (post,) = _weekly(_report(*FLEET))
    assert [m.key for m in post.thread] == ["C0123ABCD/2026-W48/code-8b", "C0123ABCD/2026-W48/chat-70b"]
    text = _text((replace(post, parent=post.thread[1], thread=()),))
    assert "Expect: TTFT p99 1.84 s -> 0.5-0.7 s" in text
    assert "Verify: restart one replica with it first" in text
    assert "Undo: --max-num-seqs 16" in text
    assert "• memory, expected: 445 (1 % overflow risk" in text
    assert "• latency: at least 16" in text
    assert text.count("•") == 4
    assert "Queued behind it: --max-model-len 131072 -> 8192" in text
    assert "advisor snooze max_num_seqs-1 --until 2026-12-13" in text  # two weeks after Sun 29 Nov


def test_a_quiet_week_is_one_line() -> None:
    (post,) = _weekly(_report(*FLEET), edition=replace(EDITION, announced=lambda _channel, _advice: True))
    assert len(post.parent.blocks) == 1
    assert "\n" not in str(post.parent.blocks[0])
    assert post.thread == ()
    assert "Nothing new; 2 pieces of advice are still open" in _text((post,))


def test_advice_that_the_channel_was_told_of_is_not_told_again_but_listed() -> None:
    edition = replace(EDITION, announced=lambda _channel, advice: advice == "max_num_seqs-1")
    (post,) = _weekly(_report(*FLEET), edition=edition)
    assert [m.key.rpartition("/")[2] for m in post.thread] == ["code-8b"]
    assert "Still open: chat-70b --max-num-seqs 16 -> 24" in _parent((post,))


def test_followed_advice_is_told_with_what_was_predicted() -> None:
    scores = (
        Score("itl_mean", "seconds", 0.0161, 0.0172, 0.0143, 0.0166, held=True),
        Score("ttft_p99", "seconds", 0.5, 0.7, 1.84, 1.9, held=False),
    )
    verified = _parent(_weekly(_report(*FLEET), _record("verified", scores=scores[:1])))
    assert "chat-70b --max-num-seqs 12 -> 16 followed, and it did as predicted: ITL mean 14.3 ms -> 16.6 ms" in verified
    regressed = _parent(_weekly(_report(*FLEET), _record("regressed", scores=scores)))
    assert "did not do what was predicted: TTFT p99 1.84 s -> 1.9 s (predicted 0.5-0.7 s)" in regressed
    assert "undo with --max-num-seqs 12" in regressed


def test_what_became_of_advice_before_the_last_report_is_old_news() -> None:
    assert "followed" not in _parent(_weekly(_report(*FLEET), _record("applied", since=NOW - 8 * DAY)))
    assert "followed; the verdict comes" in _parent(_weekly(_report(*FLEET), _record("applied")))


@pytest.mark.parametrize(("state", "word"), [("rejected", "rejected"), ("snoozed", "snoozed"), ("superseded", "gone")])
def test_advice_that_was_put_away_is_told_with_the_reason(state: LifeState, word: str) -> None:
    text = _parent(_weekly(_report(*FLEET), _record(state, reason="batch job <needs> it")))
    assert f"{word} (batch job <needs> it)" in text


def test_snoozed_advice_is_not_repeated() -> None:
    snoozed = AdviceRecord("chat-70b", FLEET[0].judgement.advice[0], "snoozed", NOW - 9 * DAY, NOW - 9 * DAY, NOW)
    (post,) = _weekly(_report(*FLEET), snoozed)
    assert [m.key.rpartition("/")[2] for m in post.thread] == ["code-8b"]
    assert "1 snoozed, rejected or being verified" in _parent((post,))


def test_a_failed_source_and_the_track_record_are_told() -> None:
    failed = SourceState("loki", "failed", "did not answer for 3 h on Thursday")
    track = (TrackRecord("a/b", 11, 9, 1, 1), TrackRecord("c/d", 2, 2, 0, 0))
    (post,) = weekly(_report(*FLEET, sources=(*OK, failed)), (), track, EDITION, _options())
    text = _parent((post,))
    assert "Sources that failed: loki: did not answer for 3 h on Thursday" in text
    assert "Track record: 13 followed, 11 did as predicted, 1 did not, 1 undecided" in text
    assert "prometheus" not in text


def test_a_freeze_holds_advice_and_says_until_when() -> None:
    freeze = {"first_day": "2026-11-27", "last_day": "2026-11-29", "match": "code-*", "reason": "quarter end"}
    (post,) = _weekly(_report(*FLEET), freezes=[freeze])
    assert [m.key.rpartition("/")[2] for m in post.thread] == ["chat-70b"]
    assert "Held: code-8b frozen until Sun 29 Nov: quarter end" in _parent((post,))
    after = _weekly(_report(*FLEET), edition=replace(EDITION, now=NOW + DAY), freezes=[freeze])
    assert len(after[0].thread) == 2


def _observed(days: Fact) -> DeploymentReport:
    base = samples.throttled()
    return replace(base, facts=FactSheet({**dict(base.facts), "observed_days": days}))


def test_in_the_first_week_it_is_collecting() -> None:
    # Two of seven days are there: five are left, until Fri 4 Dec.
    (post,) = _weekly(_report(_observed(measured(2.0, source="request log"))))
    assert "Held: chat-70b collecting until Fri 04 Dec" in _parent((post,))
    assert post.thread == ()


def test_without_a_log_it_is_collecting_since_it_was_first_seen() -> None:
    edition = replace(EDITION, first_seen={"chat-70b": NOW - 3 * DAY})
    assert "collecting until Thu 03 Dec" in _parent(_weekly(_report(FLEET[0]), edition=edition))
    assert (
        len(_weekly(_report(FLEET[0]), edition=replace(edition, first_seen={"chat-70b": NOW - 8 * DAY}))[0].thread) == 1
    )


def test_a_log_that_covers_the_week_needs_no_collecting() -> None:
    edition = replace(EDITION, first_seen={"chat-70b": NOW - 3600})
    report = _report(_observed(measured(6.9, source="request log")))
    assert len(_weekly(report, edition=edition)[0].thread) == 1


def test_routes_give_channels_and_owners() -> None:
    routes = [{"match": "chat-*", "channel": "C0CHATTEAM", "owner": "S0CHATTEAM"}, {"match": "*", "owner": "U0BOSS12"}]
    posts = {post.channel: post for post in _weekly(_report(*FLEET), routes=routes)}
    assert set(posts) == {"C0CHATTEAM", "C0123ABCD"}
    assert "@S0CHATTEAM" in _text((posts["C0CHATTEAM"],))
    assert "<!subteam^S0CHATTEAM>" in json.dumps(posts["C0CHATTEAM"].thread[0].payload())
    assert "1 deployment: 1 to change." in _parent((posts["C0CHATTEAM"],))
    assert "3 deployments" in _parent((posts["C0123ABCD"],))


def test_a_webhook_tells_advice_in_its_only_message() -> None:
    options = SlackOptions(webhook_url_file=Path("hook"))
    (post,) = weekly(_report(*FLEET), (), (), EDITION, options)
    assert post.thread == ()
    assert set(post.parent.announces) == {"replicas-1", "max_num_seqs-1"}


def test_critical_advice_goes_out_at_once_where_that_is_wanted() -> None:
    report = _report(*FLEET)
    (post,) = critical(report, (), EDITION, _options(critical_at_once=True))
    assert post.parent.key == "C0123ABCD/advice/replicas-1/critical"
    assert post.parent.announces == ("replicas-1",)
    assert "Critical advice" in _text((post,))
    told = replace(EDITION, announced=lambda _channel, _advice: True)
    assert critical(report, (), told, _options(critical_at_once=True)) == ()
    assert critical(report, (), EDITION, _options()) == ()


def test_a_deployment_with_charts_gets_a_picture() -> None:
    charts = Pictures(LengthPicture((1.0, 2.0), (1.0,), 3, None, None, None, "log"))
    (post,) = _weekly(_report(replace(FLEET[0], pictures=charts)))
    picture = post.thread[0].picture
    assert picture is not None
    assert picture.alt == "chat-70b: lengths of requests with p99.9, proposal and present limit"


def _large(number: int) -> Report:
    return _report(*(samples.throttled(f"chat-{place:04}") for place in range(number)))


def test_a_thousand_deployments_stay_within_slacks_limits() -> None:
    (post,) = _weekly(_large(1_000))
    for message in (post.parent, *post.thread):
        _accepted(message)
    assert len(post.thread) == 20
    assert "and 992 more with new advice" in _parent((post,))  # 8 are told in the parent


def _lengthy(deployment: DeploymentReport, text: str) -> DeploymentReport:
    def lengthened(advice: Advice, place: int) -> Advice:
        return replace(
            advice, id=f"id{place}", state="open", reason=text, verify=text, undo=text, title=text, flag=text
        )

    pieces = tuple(lengthened(deployment.judgement.advice[0], place) for place in range(8))
    return replace(deployment, judgement=replace(deployment.judgement, advice=pieces))


@pytest.mark.parametrize("text", [*HOSTILE_NAMES, "&" * 5_000, "<!channel>" * 500], ids=range(len(HOSTILE_NAMES) + 2))
def test_hostile_text_neither_calls_anybody_nor_breaks_a_limit(text: str) -> None:
    deployments = [replace(d, evidence=replace(d.evidence, name=text)) for d in (samples.hostile(text), *FLEET[:2])]
    failed = SourceState(text, "failed", text)
    record = _record("rejected", reason=text, deployment=text)
    posts = weekly(
        _report(*(_lengthy(d, text) for d in deployments), sources=(failed,)),
        [record] * 30,
        (TrackRecord(text, 1, 1, 0, 0),),
        EDITION,
        _options(critical_at_once=True),
    )
    for message in (posts[0].parent, *posts[0].thread):
        _accepted(message)
        shown = json.dumps({"text": message.text, "blocks": message.blocks})
        assert "<!" not in shown
        assert "<@" not in shown
        message.key.encode()
