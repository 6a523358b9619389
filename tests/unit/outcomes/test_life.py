"""Advice from its first sight to its end, evaluation by evaluation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.advice import Advice
from advisor.domain.fact import measured, unknown
from advisor.domain.life import AdviceRecord
from advisor.domain.report import DeploymentReport
from advisor.outcomes import advance, reject, snooze, track_records, with_states
from tests.unit.outcomes.lives import DAY, HOUR, NOW, RULE, evaluation, raise_cap
from tests.unit.outlets.samples import report


def lived(*steps: tuple[float, DeploymentReport], records: tuple[AdviceRecord, ...] = ()) -> tuple[AdviceRecord, ...]:
    """Records after evaluations, each at `hours` after NOW."""
    for hours, step in steps:
        records = advance(records, [step], NOW + hours * HOUR)
    return records


def states(records: tuple[AdviceRecord, ...]) -> list[tuple[float | None, str]]:
    return [(r.advice.recommended, r.state) for r in records]


def test_new_advice_is_open_or_queued_as_it_was_judged() -> None:
    length = raise_cap(8_192.0, current=131_072.0, rule="length/oversized", knob="max_model_len", state="queued")
    records = lived((0, evaluation(raise_cap(), length)))
    assert states(records) == [(24.0, "open"), (8_192.0, "queued")]
    assert all(r.first_seen == r.last_seen == r.since == NOW for r in records)


def test_a_value_that_moves_by_under_a_tenth_keeps_its_record_its_id_and_its_first_value() -> None:
    # 24 -> 26 is 8.3 %, 24 -> 27 is 12.5 %; what counts is the way from the first value, not from the last one.
    (kept,) = lived((0, evaluation(raise_cap(24.0))), (1, evaluation(raise_cap(26.0))))
    assert (kept.id, kept.advice.recommended, kept.advice.flag) == (raise_cap(24.0).id, 24.0, "--max-num-seqs 24")
    assert (kept.first_seen, kept.last_seen) == (NOW, NOW + HOUR)
    moved = lived((2, evaluation(raise_cap(27.0))), records=(kept,))
    assert states(moved) == [(27.0, "open"), (24.0, "superseded")]
    assert moved[1].reason == "replaced: max_num_seqs 27 instead of max_num_seqs 24"


def test_the_same_value_brings_its_newest_reason() -> None:
    (record,) = lived(
        (0, evaluation(raise_cap())), (1, evaluation(replace(raise_cap(), reason="28 % of the time", current=15.0)))
    )
    assert (record.advice.reason, record.advice.current, record.since) == ("28 % of the time", 15.0, NOW)


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_a_fact_that_hovers_leaves_one_record(fires: list[bool]) -> None:
    # Evaluations every 20 minutes; at most 8 of them in a row without the advice are 2 h 40 min, under the grace.
    steps = [evaluation(raise_cap()), *(evaluation(*([raise_cap()] if f else [])) for f in fires)]
    records: tuple[AdviceRecord, ...] = ()
    gap = 0
    for number, step in enumerate(steps):
        gap = 0 if step.judgement.advice else gap + 1
        if gap > 8:
            break
        records = advance(records, [step], NOW + number * HOUR / 3)
    assert states(records) == [(24.0, "open")]
    assert records[0].since == NOW


def test_advice_that_stays_away_ends_and_continues_under_its_id_when_it_is_soon_back() -> None:
    gone = lived((0, evaluation(raise_cap())), (2, evaluation()), (3, evaluation()))
    assert [(r.state, r.reason) for r in gone] == [("superseded", "no longer holds")]
    (back,) = lived((4, evaluation(raise_cap())), records=gone)
    assert (back.state, back.id, back.first_seen, back.reason) == ("open", raise_cap().id, NOW, None)
    later = lived((40, evaluation(raise_cap())), records=gone)
    assert [(r.state, r.id) for r in later] == [
        ("open", f"{raise_cap().id}-2"),
        ("superseded", raise_cap().id),
    ]


def test_open_advice_that_hovers_does_not_swap_with_what_is_queued_behind_it() -> None:
    length = raise_cap(8_192.0, current=131_072.0, rule="length/oversized", knob="max_model_len", state="queued")
    alone = replace(length, state="open")
    records = lived((0, evaluation(raise_cap(), length)), (1, evaluation(alone)))
    assert sorted(states(records)) == [(24.0, "open"), (8_192.0, "queued")]
    critical = replace(alone, severity="critical")
    assert sorted(states(lived((1, evaluation(critical)), records=records))) == [(24.0, "open"), (8_192.0, "open")]


@pytest.mark.parametrize(
    "blind", [evaluation(undetermined=(RULE,), status="cannot_tell"), evaluation(status="no_data"), None]
)
def test_what_nobody_could_judge_does_not_end_until_two_weeks_have_passed(blind: DeploymentReport | None) -> None:
    seen = lived((0, evaluation(raise_cap())))
    reports = [] if blind is None else [blind]
    assert states(advance(seen, reports, NOW + 13 * DAY)) == [(24.0, "open")]
    (ended,) = advance(seen, reports, NOW + 14 * DAY)
    assert (ended.state, ended.reason) == ("superseded", "nobody could judge it any more")


def test_another_rule_that_takes_the_knob_replaces_the_advice_at_once() -> None:
    lower = raise_cap(12.0, rule="concurrency/cap-above-latency-ceiling", severity="warning")
    records = lived((0, evaluation(raise_cap())), (1, evaluation(lower)))
    assert states(records) == [(12.0, "open"), (24.0, "superseded")]


def test_snoozed_advice_is_silent_until_its_date_and_the_next_moves_up() -> None:
    length = raise_cap(8_192.0, current=131_072.0, rule="length/oversized", knob="max_model_len", state="queued")
    both = evaluation(raise_cap(), length)
    first, second = lived((0, both))
    records = (snooze(first, until=NOW + 5 * HOUR, reason="freeze", now=NOW), second)
    assert sorted(states(lived((1, both), records=records))) == [(24.0, "snoozed"), (8_192.0, "open")]
    woken = lived((1, both), (5, both), records=records)
    assert states(woken) == [(24.0, "open"), (8_192.0, "queued")]
    assert woken[0].until is None


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        (raise_cap(30.0), [(24.0, "rejected")]),  # 25 % exactly: still the same
        (raise_cap(31.0), [(31.0, "open"), (24.0, "superseded")]),
        (raise_cap(24.0, severity="warning"), [(24.0, "open")]),
        (raise_cap(24.0, severity="info"), [(24.0, "rejected")]),
    ],
)
def test_rejected_advice_comes_back_when_its_value_moves_far_or_it_gets_graver(
    again: Advice, expected: list[tuple[float, str]]
) -> None:
    (record,) = lived((0, evaluation(raise_cap())))
    rejected = reject(record, reason="the batch job needs the cache", now=NOW)
    assert states(lived((1, evaluation(again)), records=(rejected,))) == expected
    weeks_later = lived((1, evaluation()), (500, evaluation()), (501, evaluation(raise_cap())), records=(rejected,))
    assert states(weeks_later) == [(24.0, "rejected")]


@pytest.mark.parametrize(
    ("running", "state"), [(16.0, "open"), (19.0, "open"), (20.0, "applied"), (24.0, "applied"), (32.0, "applied")]
)
def test_it_is_applied_when_the_flag_goes_at_least_half_the_way(running: float, state: str) -> None:
    (record,) = lived((0, evaluation(raise_cap())), (1, evaluation(raise_cap(), running=running)))
    assert record.state == state


def test_a_value_that_is_only_a_default_is_not_an_applied_one() -> None:
    records = lived((0, evaluation(raise_cap())), (1, evaluation(running=256.0, source="default")))
    assert states(records) == [(24.0, "open")]


def test_a_snoozed_or_rejected_change_that_somebody_makes_is_applied_too() -> None:
    (record,) = lived((0, evaluation(raise_cap())))
    for decided in (
        snooze(record, until=NOW + DAY, reason="later", now=NOW),
        reject(record, reason="no", now=NOW),
    ):
        assert states(lived((1, evaluation(running=24.0)), records=(decided,))) == [(24.0, "applied")]


def test_application_freezes_the_facts_of_the_last_evaluation_before_it() -> None:
    empty = {"ttft_p99": unknown("just restarted"), "observed_seconds": measured(600.0, source="gauges")}
    (record,) = lived(
        (0, evaluation(raise_cap())),
        (1, evaluation(raise_cap(), facts={"ttft_p99": measured(1.9, source="log")})),
        (2, evaluation(running=24.0, since=NOW + 1.5 * HOUR, facts=empty)),
    )
    assert record.applied_at == NOW + 1.5 * HOUR
    assert record.baseline == {"ttft_p99": 1.9, "demand_requests_per_second_mean": 2.0, "total_tokens_p50": 1_400.0}


def test_while_a_change_is_observed_only_critical_advice_is_open() -> None:
    applied = lived((0, evaluation(raise_cap())), (1, evaluation(running=24.0)))
    following = evaluation(raise_cap(36.0, current=24.0), running=24.0, facts={"observed_seconds": unknown("new")})
    assert states(lived((2, following), records=applied)) == [(36.0, "queued"), (24.0, "applied")]
    grave = evaluation(raise_cap(36.0, current=24.0, severity="critical"), running=24.0)
    assert states(lived((2, grave), records=applied)) == [(36.0, "open"), (24.0, "applied")]
    waited = replace(applied[0], scores=())
    unlike = {"demand_requests_per_second_mean": measured(9.0, source="log")}
    late = evaluation(raise_cap(36.0, current=24.0), running=24.0, facts=unlike)
    assert states(lived((60, late), records=(waited,))) == [(36.0, "open"), (24.0, "applied")]


@pytest.mark.parametrize(
    ("running", "reason"),
    [
        (16.0, "undone before it could be judged: max_num_seqs is 16"),
        (48.0, "changed again before it could be judged: max_num_seqs is 48"),
    ],
)
def test_a_change_that_did_not_last_is_never_judged(running: float, reason: str) -> None:
    applied = lived((0, evaluation(raise_cap())), (1, evaluation(running=24.0)))
    (record,) = lived((30, evaluation(running=running)), records=applied)
    assert (record.state, record.reason) == ("superseded", reason)
    assert [(t.followed, t.held, t.undecided) for t in track_records([record])] == [(1, 0, 1)]


def test_a_whole_life_ends_verified() -> None:
    better = {"ttft_p99": measured(0.61, source="log"), "observed_seconds": measured(25 * HOUR, source="gauges")}
    (record,) = lived(
        (0, evaluation(raise_cap())),
        (1, evaluation(running=24.0)),
        (170, evaluation(running=24.0, facts=better)),
        (171, evaluation(running=24.0)),
    )
    (score,) = record.scores
    assert (record.state, record.since) == ("verified", NOW + 170 * HOUR)
    assert (score.before, score.low, score.high, score.after, score.held) == (1.84, 0.5, 0.7, 0.61, True)
    (track,) = track_records([record])
    assert (track.rule, track.followed, track.held, track.regressed, track.undecided) == (RULE, 1, 1, 0, 0)


@given(st.lists(st.sampled_from([None, 12.0, 24.0, 25.0, 27.0, 40.0]), max_size=25), st.integers(1, 9))
def test_ids_stay_unique_and_one_question_has_one_live_record(values: list[float | None], hours: int) -> None:
    records: tuple[AdviceRecord, ...] = ()
    for number, value in enumerate(values):
        step = evaluation(*([] if value is None else [raise_cap(value)]))
        records = advance(records, [step], NOW + number * hours * HOUR)
        assert len({r.id for r in records}) == len(records)
        assert sum(r.state in ("open", "queued") for r in records) <= 1
        again = with_states(report(step), records)
        assert with_states(again, records) == again
