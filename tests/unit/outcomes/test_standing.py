"""The report with the memory of earlier evaluations."""

from __future__ import annotations

from dataclasses import replace

from advisor.outcomes import advance, reject, snooze, standing, with_states
from tests.unit.outcomes.lives import DAY, HOUR, NOW, evaluation, raise_cap
from tests.unit.outlets.samples import report


def test_advice_is_shown_with_its_lasting_id_and_first_value() -> None:
    records = advance(advance((), [evaluation(raise_cap(24.0))], NOW), [evaluation(raise_cap(25.0))], NOW + HOUR)
    (shown,) = with_states(report(evaluation(raise_cap(25.0))), records).deployments
    assert [(a.id, a.recommended, a.state) for a in shown.judgement.advice] == [(raise_cap(24.0).id, 24.0, "open")]


def test_a_rejection_leaves_nothing_to_act_on_and_says_why() -> None:
    (record,) = advance((), [evaluation(raise_cap())], NOW)
    rejected = reject(record, reason="the batch job needs the cache", now=NOW)
    shown = standing(evaluation(raise_cap()).judgement, [rejected], NOW)
    assert (shown.status, [a.state for a in shown.advice]) == ("ok", ["rejected"])
    assert shown.findings[0].title == "--max-num-seqs 24 is rejected: the batch job needs the cache"


def test_a_snooze_says_until_when_and_lets_the_next_advice_up() -> None:
    queued = raise_cap(8_192.0, current=131_072.0, rule="length/oversized", knob="max_model_len", state="queued")
    judged = evaluation(raise_cap(), queued)
    first, second = advance((), [judged], NOW)
    snoozed = snooze(first, until=NOW + 3 * DAY, reason="freeze", now=NOW)
    shown = standing(judged.judgement, [second, snoozed], NOW)
    assert [(a.recommended, a.state) for a in shown.advice] == [(8_192.0, "open"), (24.0, "snoozed")]
    assert shown.status == "advice"
    assert [f.title for f in shown.findings] == ["--max-num-seqs 24 is snoozed until 02 Dec 2026: freeze"]
    assert standing(shown, [second, snoozed], NOW) == shown


def test_a_change_that_is_observed_is_told_and_holds_the_rest() -> None:
    records = advance(advance((), [evaluation(raise_cap())], NOW), [evaluation(running=24.0)], NOW + HOUR)
    following = evaluation(raise_cap(36.0, current=24.0), running=24.0)
    records = advance(records, [following], NOW + 2 * HOUR)
    shown = standing(following.judgement, records, NOW + 2 * HOUR)
    assert [(a.recommended, a.state) for a in shown.advice] == [(36.0, "queued"), (24.0, "applied")]
    assert shown.status == "ok"
    assert shown.findings[0].title == "--max-num-seqs 24 is applied since 29 Nov 2026 and being observed"


def test_advice_that_hovers_is_still_shown_and_ended_advice_is_not() -> None:
    records = advance(advance((), [evaluation(raise_cap())], NOW), [evaluation()], NOW + HOUR)
    assert [a.state for a in standing(evaluation().judgement, records, NOW + HOUR).advice] == ["open"]
    ended = [replace(records[0], state="superseded")]
    assert standing(evaluation(raise_cap()).judgement, ended, NOW + HOUR).advice == ()


def test_several_flags_of_a_plan_are_open_together() -> None:
    length = raise_cap(8_192.0, current=None, rule="plan/length", knob="max_model_len")
    judged = evaluation(raise_cap(current=None), length, running=256.0)
    records = advance((), [judged], NOW)
    assert [r.state for r in records] == ["open", "open"]
    assert standing(judged.judgement, records, NOW).status == "advice"


def test_sweeps_to_run_stay_cannot_tell() -> None:
    sweep = replace(raise_cap(None, knob=None), verdict="run_sweep")
    judged = evaluation(sweep, status="cannot_tell")
    assert standing(judged.judgement, advance((), [judged], NOW), NOW).status == "cannot_tell"
