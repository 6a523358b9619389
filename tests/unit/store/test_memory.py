"""Runs, reports, facts, advice and deliveries: what is put in comes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.domain.advice import Advice, EvidenceLine, Prediction
from advisor.domain.errors import StoreError
from advisor.domain.hours import HourFacts
from advisor.domain.life import AdviceRecord, Score
from advisor.domain.ports import Delivery, DeliveryLog
from advisor.store import RunRow, Store

DAY = 86_400.0
NOW = 1_795_960_800.0  # 2026-11-29 14:00 UTC
ADVICE = Advice(
    id="chat/cap/24",
    rule="concurrency/cap",
    title="raise it",
    state="open",
    verdict="change_flag",
    knob="max_num_seqs",
    current=16.0,
    recommended=24.0,
    flag="--max-num-seqs 24",
    severity="opportunity",
    confidence="high",
    confidence_basis="R2 0.94",
    reason="the queue",
    evidence=(EvidenceLine("kv_usage_p95", 0.04, "ratio", "kv_usage_p95 < 60%"),),
    prediction=(Prediction("ttft_p99", 1.8, 0.5, 0.7, "seconds"),),
    verify="look",
    undo="--max-num-seqs 16",
    options=({"tensor_parallel_size": 2},),
)
RECORD = AdviceRecord(
    deployment="chat",
    advice=ADVICE,
    state="applied",
    since=NOW,
    first_seen=NOW - 7 * DAY,
    last_seen=NOW,
    reason="ok'); DROP TABLE advice; --",
    applied_at=NOW,
    baseline={"ttft_p99": 1.8},
    scores=(Score("ttft_p99", "seconds", 0.5, 0.7, 1.8, 0.6, True),),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "advisor.db")
    yield store
    store.close()


def test_runs_with_their_steps(store: Store) -> None:
    first = store.begin_run("gather", NOW)
    store.end_run(first, NOW + 2, "ok", [("prometheus", 1.5, "3 queries"), ("logs", 0.5, "")])
    second = store.begin_run("gather", NOW + 300)
    assert store.last_runs() == (
        RunRow(second, "gather", NOW + 300, None, None, ()),
        RunRow(first, "gather", NOW, NOW + 2, "ok", (("prometheus", 1.5, "3 queries"), ("logs", 0.5, ""))),
    )
    store.end_run(second, NOW + 310, "failed", [])
    assert store.last_success("gather") == NOW + 2
    assert store.last_success("report") is None
    assert [run.id for run in store.last_runs(1)] == [second]


def test_the_latest_report_and_facts_over_time(store: Store) -> None:
    store.save_report(NOW, '{"a": 1}', {"chat": {"ttft_p99": 1.8, "broken": float("nan")}, "code": {"ttft_p99": 9.0}})
    store.save_report(NOW + 3600, '{"a": "\u00fc"}', {"chat": {"ttft_p99": 0.6, "itl_mean": 0.014}})
    assert store.latest_report() == (NOW + 3600, '{"a": "\u00fc"}')
    assert store.fact_history("chat", ["ttft_p99", "itl_mean", "broken"], NOW) == {
        "ttft_p99": ((NOW, 1.8), (NOW + 3600, 0.6)),
        "itl_mean": ((NOW + 3600, 0.014),),
        "broken": (),
    }
    assert store.fact_history("chat", ["ttft_p99"], NOW + 1)["ttft_p99"] == ((NOW + 3600, 0.6),)


def hour(start: float, **figures: float) -> HourFacts:
    return HourFacts(start, NOW - DAY, {"max_num_seqs": 16, "version": "0.32.0"}, figures)


def test_hours_come_back_to_five_digits_and_are_told_once(store: Store) -> None:
    store.save_hours({"chat": [hour(NOW, itl_mean=0.0143217), hour(NOW + 3600)], "code": [hour(NOW)]})
    store.save_hours({"chat": [hour(NOW, itl_mean=9.0)]})  # of fewer engines, as one has been restarted since
    assert store.hours("chat", NOW) == (hour(NOW, itl_mean=0.014322), hour(NOW + 3600))
    assert store.hours("chat", NOW + 1) == (hour(NOW + 3600),)
    assert [store.last_hour(name) for name in ("chat", "code", "other")] == [NOW + 3600, NOW, None]


def test_hours_are_kept_for_seven_weeks(store: Store) -> None:
    store.save_hours({"chat": [hour(NOW - 50 * DAY), hour(NOW - 48 * DAY)]})
    store.prune(NOW, 400)
    assert store.hours("chat", 0.0) == (hour(NOW - 48 * DAY),)
    store.prune(NOW, 30)
    assert store.hours("chat", 0.0) == ()


def test_a_damaged_hour_is_told(store: Store) -> None:
    store.save_hours({"chat": [hour(NOW)]})
    store._database.change("UPDATE hour SET figures = '{'")
    with pytest.raises(StoreError, match="an hour is damaged"):
        store.hours("chat", 0.0)


def test_advice_comes_back_as_it_was(store: Store) -> None:
    store.save_records([RECORD])
    assert store.records() == (RECORD,)
    later = replace(RECORD, state="verified", since=NOW + DAY)
    store.save_records([later])
    assert store.records() == (later,)


def test_a_change_sees_what_others_wrote_meanwhile(tmp_path: Path, store: Store) -> None:
    store.save_records([replace(RECORD, state="open")])
    other = Store.open(tmp_path / "advisor.db")
    other.change_records(lambda records: [replace(r, state="snoozed", until=NOW + DAY) for r in records])
    store.change_records(lambda records: [replace(r, last_seen=NOW + 60) for r in records])
    (record,) = store.records()
    assert (record.state, record.until, record.last_seen) == ("snoozed", NOW + DAY, NOW + 60)
    other.close()


def test_a_change_that_fails_changes_nothing(store: Store) -> None:
    store.save_records([RECORD])

    def fail(records: tuple[AdviceRecord, ...]) -> list[AdviceRecord]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.change_records(fail)
    store.save_records([replace(RECORD, last_seen=NOW + 1)])  # no transaction was left open
    assert store.records() == (replace(RECORD, last_seen=NOW + 1),)


def test_damaged_advice_is_told(store: Store) -> None:
    store.save_records([RECORD])
    store._database.change("UPDATE advice SET body = '{}'")
    with pytest.raises(StoreError, match="a piece of advice is damaged"):
        store.records()


def test_a_message_is_claimed_once(store: Store) -> None:
    log: DeliveryLog = store.delivery_log
    assert log.state("week 48") is None
    assert not log.begin("week 48", NOW, after=1)
    assert log.begin("week 48", NOW)
    assert not log.begin("week 48", NOW + 1)
    assert log.state("week 48") == Delivery("week 48", "sending", 1, NOW, NOW, NOW)
    log.failed("week 48", NOW + 2, "503", permanent=False)
    assert log.begin("week 48", NOW + 60, after=1)
    assert not log.begin("week 48", NOW + 60, after=1)
    log.sent("week 48", NOW + 61, "C1/1795960861.1")
    log.failed("week 48", NOW + 62, "too late", permanent=True)
    assert not log.begin("week 48", NOW + 70, after=2)
    sent = Delivery("week 48", "sent", 2, NOW, NOW + 60, NOW + 61, reference="C1/1795960861.1")
    assert store.deliveries() == (sent,)


def test_what_is_old_is_thinned_and_then_deleted(store: Store) -> None:
    for hours in range(24 * 40):
        store.save_report(NOW - hours * 3600, "x", {"chat": {"n": float(hours)}})
    store.begin_run("gather", NOW - 31 * DAY)
    recent = store.begin_run("gather", NOW - 29 * DAY)
    store.delivery_log.begin("old", NOW - 31 * DAY)
    ended = replace(RECORD, state="verified", last_seen=NOW - 31 * DAY)
    live = replace(RECORD, state="rejected", last_seen=NOW - 31 * DAY, first_seen=NOW - 50 * DAY)
    store.save_records([ended, live])
    store.prune(NOW, 30)
    times = [at for at, _ in store.fact_history("chat", ["n"], 0.0)["n"]]
    # 14 days of 24 and the moment itself; before, one a day back to 30 days: 16 days, the first of them in part.
    assert len([at for at in times if at >= NOW - 14 * DAY]) == 14 * 24 + 1
    assert len([at for at in times if at < NOW - 14 * DAY]) == 17
    assert times[0] >= NOW - 30 * DAY
    assert [run.id for run in store.last_runs()] == [recent]
    assert store.deliveries() == ()
    assert store.records() == (live,)
