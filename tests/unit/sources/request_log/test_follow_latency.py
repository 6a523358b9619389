"""Latencies of a log that is read in pieces; requests last two seconds, one of them waiting for its first token."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.sources.request_log import Followed, follow_latency
from tests.unit.sources.request_log.rotating_log import T0, Reader, line

HOUR = int(T0)


def write(path: Path, *ends: float, **more: object) -> None:
    with path.open("ab") as file:
        file.writelines(line(int(end * 10), end, **more) for end in ends)


def told(followed: Followed) -> int:
    """How many requests' latencies are told."""
    logs = followed.slices.values()
    return sum(int(log.latency.counts.sum()) for log in logs if log.latency is not None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


def test_the_last_ten_minutes_wait_for_their_company(path: Path) -> None:
    reader = Reader(path, now=T0 + 1000)
    write(path, 100, 500)
    assert told(reader.read()) == 1  # 500 s is less than 600 s ago
    write(path, 501)
    reader.now = T0 + 1300
    later = reader.read()
    assert told(later) == 2
    latency = later.slices["m", HOUR].latency
    assert latency is not None
    # They were there from 498 to 500 and 499 to 501, and decoded in the second half of that, so never both. While the
    # first decoded the second was there; while the second decoded the first was gone.
    assert latency.concurrency.tolist() == [1, 1]
    assert latency.in_flight.tolist() == [1, 2]
    assert told(reader.read()) == 0


def test_latencies_that_are_told_later_count_nothing_twice(path: Path) -> None:
    reader = Reader(path, now=T0 + 1000)
    write(path, 500)
    reader.read()
    reader.now = T0 + 1300
    log = reader.read().slices["m", HOUR]
    assert log.requests == 0
    assert log.latency is not None
    assert not log.arrivals
    assert reader.counted == {5000: 1}


def test_a_line_that_comes_late_is_told(path: Path) -> None:
    reader = Reader(path, now=T0 + 2000)
    write(path, 100, 1500)
    assert told(reader.read()) == 1
    write(path, 90)
    assert told(reader.read()) == 1


def test_what_was_told_stays_as_company(path: Path) -> None:
    reader = Reader(path, now=T0 + 2000)
    write(path, 1390, duration_ms=60_000)  # from 1330 on; told now, because 1390 is more than 600 s ago
    assert told(reader.read()) == 1
    write(path, 1410, duration_ms=60_000)  # from 1350 on
    reader.now += 600
    latency = reader.read().slices["m", HOUR].latency
    assert latency is not None
    # It decoded 59 s, from 1351 to 1410, and for 39 of them beside the other: 1 + 39 / 59 = 1.66.
    assert latency.concurrency.tolist() == [2]


def test_of_too_many_that_wait_the_older_are_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_latency, "MAX_LEFT", 10)
    reader = Reader(path, now=T0 + 500)
    write(path, *range(100, 130))
    assert told(reader.read()) == 25  # the five newest wait
    unsettled = reader.cursors.unsettled
    assert unsettled is not None
    assert unsettled.spans.size == 10  # with five more as company
    reader.now += 1000
    assert told(reader.read()) == 5


def test_replicas_keep_their_names_over_readings(path: Path) -> None:
    reader = Reader(path, now=T0 + 1000)
    write(path, 500, upstream="a")
    write(path, 500.5, upstream="b", model="other")
    reader.read()
    write(path, 501, upstream="b", model="other")
    reader.now += 1000
    slices = reader.read().slices
    assert {key: log.latency.counts.sum() for key, log in slices.items() if log.latency} == {
        ("m", HOUR): 1,
        ("other", HOUR): 2,
    }
    alone = slices["m", HOUR].latency
    assert alone is not None
    assert alone.in_flight.tolist() == [1]
