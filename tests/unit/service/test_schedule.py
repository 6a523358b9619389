"""When work is due, by dates worked out with a calendar; and the scheduler itself, for a few seconds."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from advisor.service.schedule import EVALUATE, GATHER, PRUNE, REPORT, Schedule, next_report, next_run
from advisor.service_options import ScheduleOptions

BERLIN = ScheduleOptions(timezone="Europe/Berlin")
SUNDAY = datetime(2026, 11, 29, 18, tzinfo=UTC).timestamp()
MONDAY = datetime(2026, 11, 30, 8, tzinfo=UTC).timestamp()  # 09:00 in Berlin, one hour ahead in winter
WEEK = 7 * 86_400.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (SUNDAY, MONDAY),
        (MONDAY - 1, MONDAY),
        (MONDAY, MONDAY + WEEK),
        # The week in which Berlin leaves summer time (Sun 2026-10-25) is an hour longer.
        (at("2026-10-19T07:00:00Z"), at("2026-10-26T08:00:00Z")),
    ],
    ids=["the day before", "a second before", "at the time itself", "across the end of summer time"],
)
def test_the_weekly_report_follows_the_local_clock(after: float, expected: float) -> None:
    assert next_report(BERLIN, after) == expected


def test_half_past_two_exists_once_a_week_even_when_the_clock_is_set_back() -> None:
    # 02:30 happens twice on 2026-10-25; the second must not count as another week to a report keyed by period.
    options = ScheduleOptions(report_weekday="sun", report_time="02:30", timezone="Europe/Berlin")
    first = next_report(options, at("2026-10-24T12:00:00Z"))
    assert first == at("2026-10-25T00:30:00Z")
    assert next_report(options, first + 3700) == at("2026-11-01T01:30:00Z")


@pytest.mark.parametrize(
    ("kind", "last", "expected"),
    [
        (GATHER, None, SUNDAY),
        (GATHER, SUNDAY - 100, SUNDAY + 200),
        (EVALUATE, SUNDAY - 3 * 86_400, SUNDAY),
        (EVALUATE, SUNDAY + 86_400, SUNDAY),
        (PRUNE, SUNDAY - 3600, SUNDAY + 82_800),
        (REPORT, None, MONDAY),
        (REPORT, MONDAY - WEEK, MONDAY),
        (REPORT, MONDAY - 2 * WEEK, SUNDAY),
        (REPORT, MONDAY + WEEK, MONDAY),
    ],
    ids=[
        "never done is due",
        "within its interval",
        "off for three days",
        "the clock was set back a day",
        "daily",
        "the first report waits for its day",
        "this week's is done",
        "the weekly time was missed",
        "a report from the future",
    ],
)
def test_due(kind: str, last: float | None, expected: float) -> None:
    assert next_run(kind, BERLIN, last, SUNDAY) == expected


@given(last=st.floats(SUNDAY - 60 * 86_400, SUNDAY), kind=st.sampled_from([GATHER, EVALUATE, REPORT, PRUNE]))
def test_nothing_is_due_in_the_past_or_later_than_one_period(last: float, kind: str) -> None:
    due = next_run(kind, BERLIN, last, SUNDAY)
    assert SUNDAY <= due <= SUNDAY + {GATHER: 300, EVALUATE: 3600, REPORT: WEEK + 3600, PRUNE: 86_400}[kind]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"report_weekday": "1"}, "'mon', 'tue'"),
        ({"report_weekday": "mon,tue"}, "'mon', 'tue'"),
        ({"report_time": "9"}, "no time of day"),
        ({"report_time": "25:00"}, "no time of day"),
        ({"report_time": "09:00:30"}, "no time of day"),
        ({"timezone": "Europe/Bonn"}, "no time zone"),
        ({"timezone": "../../etc/passwd"}, "no time zone"),
        ({"gather": "1s"}, "greater than or equal to 10"),
    ],
)
def test_what_cannot_be_scheduled(wrong: dict[str, str], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        ScheduleOptions.model_validate(wrong)


def test_overdue_work_runs_once_and_never_beside_itself_or_other_work() -> None:
    began, at_once, most = [], 0, 0
    lock = threading.Lock()

    def run(kind: str) -> None:
        nonlocal at_once, most
        with lock:
            began.append(kind)
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.1)
        with lock:
            at_once -= 1

    now = time.time()
    schedule = Schedule(run)
    schedule.start(ScheduleOptions(), {REPORT: now - 30 * 86_400, PRUNE: now - 60}.get, now)
    try:
        deadline = time.monotonic() + 10
        while len(began) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        planned = schedule.next_runs()
        assert schedule.seconds_since_heartbeat() < 9
    finally:
        schedule.stop()
    assert sorted(began) == [EVALUATE, GATHER, REPORT]
    assert most == 1
    assert planned[GATHER] == pytest.approx(now + 300, abs=30)


def test_a_clock_set_back_by_a_day_stops_nothing() -> None:
    began: list[str] = []
    schedule = Schedule(began.append)
    tomorrow = time.time() + 86_400
    schedule.start(ScheduleOptions(), lambda _: tomorrow, tomorrow)  # planned by the wrong clock
    try:
        assert schedule.next_runs()[GATHER] > time.time() + 80_000
        schedule.replan(ScheduleOptions(), lambda _: tomorrow, time.time())
        deadline = time.monotonic() + 10
        while set(began) < {GATHER, EVALUATE, PRUNE} and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        schedule.stop()
    assert set(began) == {GATHER, EVALUATE, PRUNE}
