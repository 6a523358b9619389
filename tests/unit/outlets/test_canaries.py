"""A canary, a rollout and the way to try a change, as every outlet tells them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from advisor.domain.canary import Canary, Difference, Reading, Rollout
from advisor.domain.report import DeploymentReport
from advisor.outlets import phrases
from advisor.outlets.markdown import render_markdown
from advisor.outlets.restore import restore
from advisor.outlets.slack.options import SlackOptions
from advisor.outlets.slack.post import Post
from advisor.outlets.slack.preview import preview
from advisor.outlets.slack.standing import DAY, Edition
from advisor.outlets.slack.weekly import weekly
from advisor.outlets.structured import render_json
from advisor.outlets.terminal import render_table
from advisor.web.pages import standalone
from tests.unit.outlets.samples import FLAGS_CHANGED, HOSTILE_NAMES, NOW, report, throttled

WHY = "no metric of the canary tells it"
CANARY = Canary(
    instances=("10.0.0.3:8000",),
    since=NOW - 3 * DAY,
    differences=(Difference("max_num_seqs", 24, 16), Difference("pool_tokens", 620_000, 587_008)),
    hours=72,
    readings=(
        Reading("requests_per_second_per_replica", "1/s", 0.71, 0.70, 0.02, "same"),
        Reading("waiting_share", "ratio", 0.02, 0.17, 0.03, "lower"),
        Reading("itl_mean", "seconds", 0.0166, 0.0143, 0.0004, "higher"),
        Reading("ttft_mean", "seconds", None, None, None, "unknown", WHY),
        Reading("preempted_share", "ratio", None, None, None, "unknown", WHY),
    ),
)
TITLE = "10.0.0.3:8000 runs with max_num_seqs 24 (others 16), pool_tokens 620,000 (others 587,008)"
APART = "72 common hours: waiting share lower, 2 % against 17 %; ITL mean higher, 16.6 ms against 14.3 ms"
TRIAL = "10.0.0.3:8000 runs already with max_num_seqs 24"
ROLLOUT = "a rollout may be under way: 1 of 4 replicas runs with other settings, for 30 min now"


def tried(canary: Canary = CANARY) -> DeploymentReport:
    base = throttled()
    advice = tuple(replace(a, trial=TRIAL) for a in base.judgement.advice)
    evidence = replace(base.evidence, rollout=Rollout(ROLLOUT, refuses_ceilings=False))
    judgement = replace(base.judgement, advice=advice)
    return replace(base, evidence=evidence, judgement=judgement, canaries=(canary,))


def posted(deployment: DeploymentReport) -> tuple[Post, ...]:
    options = SlackOptions.model_validate({"channel": "C0123ABCD", "token_file": "token"})
    edition = Edition(NOW, "2026-W48", reported=lambda _: NOW - 7 * DAY)
    return weekly(report(deployment), (), (), edition, options)


def test_a_canary_in_words() -> None:
    assert phrases.canary(CANARY) == f"{TITLE} since Thu 26 Nov 2026 16:00 UTC"
    assert phrases.comparison(CANARY) == [
        APART,
        "no difference beyond noise in requests per second per replica",
        f"cannot tell TTFT mean, preempted share: {WHY}",
    ]


def test_several_replicas_and_nothing_apart() -> None:
    quiet = replace(CANARY, instances=("a", "b", "c"), hours=1, readings=CANARY.readings[:1])
    assert phrases.canary(quiet).startswith("a and 2 more run with max_num_seqs 24")
    assert phrases.comparison(quiet) == ["1 common hour: no difference beyond noise in requests per second per replica"]


def test_every_outlet_tells_it() -> None:
    shown = report(tried())
    for text in (render_table(shown, width=120), standalone(shown), preview(posted(tried()))):
        plain = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())
        for told in (TITLE, APART, TRIAL, ROLLOUT):
            assert told.lower() in plain.lower()
    # Markdown escapes the underscores' and dots' neighbours that would be markup, of which these have none.
    assert all(told in render_markdown(shown) for told in (TITLE, APART, TRIAL, ROLLOUT))


def test_the_document_keeps_it() -> None:
    original = report(tried())
    (kept,) = restore(render_json(original)).deployments
    assert kept.canaries == (CANARY,)
    assert kept.evidence.rollout == Rollout(ROLLOUT, refuses_ceilings=False)
    assert kept.judgement.advice[0].trial == TRIAL
    assert render_json(restore(render_json(original))) == render_json(original)


def test_a_document_from_before_canaries_is_read() -> None:
    document = json.loads(render_json(report(throttled())))
    for part in document["deployments"]:
        del part["canaries"], part["observed"]["rollout"], part["observed"]["measured_since"]
        for advice in part["advice"]:
            del advice["trial"]
    (kept,) = restore(json.dumps(document)).deployments
    assert (kept.canaries, kept.evidence.rollout, kept.judgement.advice[0].trial) == ((), None, "")
    assert {engine.epoch_start for engine in kept.evidence.engines} == {FLAGS_CHANGED}


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_what_an_instance_is_called_becomes_no_markup(name: str) -> None:
    hostile = replace(CANARY, instances=(name,), differences=(Difference("kv_cache_dtype", name, name),))
    page = standalone(report(tried(hostile)))
    assert "<script" not in page
    sent = json.dumps([message.payload() for post in posted(tried(hostile)) for message in post.thread])
    assert "max_num_seqs" in sent
    assert "<!channel>" not in sent
    assert render_json(restore(render_json(report(tried(hostile))))) == render_json(report(tried(hostile)))


def test_since_when_it_is_measured_and_why() -> None:
    evidence = throttled().evidence
    one, two = evidence.engines
    at = replace(one, epoch_cause="restarted")
    assert phrases.measuring(replace(evidence, engines=(at, at))) == (
        "measuring since Tue 24 Nov 2026 09:12 UTC (restarted)"
    )
    later = replace(two, epoch_start=NOW - DAY, epoch_cause="changed")
    told = "the last replica only since Sat 28 Nov 2026 16:00 UTC (its settings changed)"
    assert phrases.measuring(replace(evidence, engines=(at, later))) == (
        f"measuring since Tue 24 Nov 2026 09:12 UTC, {told}"
    )
    before = replace(one, epoch_start=NOW - 30 * DAY)
    assert phrases.measuring(replace(evidence, engines=(before, later))) == f"measuring, {told}"
    assert phrases.measuring(replace(evidence, engines=(before,))) == ""
