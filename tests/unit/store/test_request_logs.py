"""Hours put in one by one against the same log read at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from advisor.domain.cursor import Cursor, Cursors, FileStamp, StreamCursor
from advisor.domain.errors import StoreError
from advisor.domain.evidence import LatencySample, RequestLog, Window
from advisor.domain.histogram import JointCounts, TokenCounts
from advisor.domain.length_history import LengthHistory
from advisor.sources.request_log import LogOptions, follow, read_request_logs
from advisor.store import Store
from advisor.store.thinning import Thinned, together
from tests.unit.sources.request_log.rotating_log import T0, line

DAY = 86_400


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "advisor.db")
    yield store
    store.close()


def hour(start: float, prompt: int, *, requests: int = 1, latency: LatencySample | None = None) -> RequestLog:
    return RequestLog(
        served=JointCounts.of([prompt], [10], [requests]),
        declared=TokenCounts.of([prompt + 100]),
        refused_needs=TokenCounts.of([9000]),
        cut=TokenCounts.of([]),
        refused=1,
        failed=2,
        without_usage=3,
        first_seconds=start + 5,
        last_seconds=start + 3000,
        arrivals={int(start): requests},
        latency=latency,
        source="request log access.log",
    )


def sample(rows: int, *, tpot: float = 0.02, counts: int = 1) -> LatencySample:
    return LatencySample(
        np.arange(1, rows + 1, dtype=np.float64) * 0.01,
        np.full(rows, tpot),
        np.full(rows, 3, np.int64),
        np.full(rows, 5, np.int64),
        np.full(rows, counts, np.int64),
    )


def commit(store: Store, *slices: tuple[str, float, RequestLog]) -> None:
    store.commit_logs({(name, int(start)): log for name, start, log in slices}, Cursors())


def test_how_far_files_and_the_journal_are_read_is_remembered(store: Store) -> None:
    file = Cursor(FileStamp(1, 2, 3, 4), 5, ("ab", "cd"), "ef", T0, "sglang", inside_long_line=True)
    journal = StreamCursor("unit=sglang.service", "s=1;i=5", T0 + 0.25, "sglang")
    store.commit_logs({}, Cursors((file,), None, (journal,)))
    assert store.cursors() == Cursors((file,), None, (journal,))


def test_slices_of_one_hour_and_of_several_add_up(store: Store) -> None:
    commit(store, ("chat", T0, hour(T0, 100, requests=7)), ("code", T0, hour(T0, 1)))
    commit(store, ("chat", T0, hour(T0, 100, requests=5)), ("chat", T0 + 3600, hour(T0 + 3600, 200)))
    log = store.request_log("chat", Window(T0, T0 + 7200), T0)
    assert log is not None
    assert log.served.prompt.tolist() == [100, 200]
    assert log.served.counts.tolist() == [12, 1]
    assert log.declared.lengths.tolist() == [200, 300]
    assert (log.refused, log.failed, log.without_usage) == (3, 6, 9)
    assert (log.first_seconds, log.last_seconds) == (T0 + 5, T0 + 6600)
    assert log.arrivals == {T0: 12, T0 + 3600: 1}
    assert log.latency is None
    assert store.request_log("nobody", Window(T0, T0 + 7200), T0) is None


def test_a_window_takes_hours_that_lie_mostly_within_it(store: Store) -> None:
    commit(store, *(("chat", T0 + n * 3600, hour(T0 + n * 3600, n + 1)) for n in range(4)))
    log = store.request_log("chat", Window(T0 + 1700, T0 + 2 * 3600 + 60), T0)
    assert log is not None
    assert log.served.prompt.tolist() == [1, 2, 3]
    log = store.request_log("chat", Window(T0 + 1900, T0 + 2 * 3600), T0)
    assert log is not None
    assert log.served.prompt.tolist() == [2]


def test_latencies_are_of_whole_hours_of_the_present_epoch(store: Store) -> None:
    commit(store, ("chat", T0, hour(T0, 1, latency=sample(2))))
    commit(store, ("chat", T0 + 3600, hour(T0, 1, latency=sample(3, counts=2))))
    commit(store, ("chat", T0 + 3600, hour(T0, 1, latency=sample(3))))
    window = Window(T0, T0 + 7200)
    all_of_it, later, none = (store.request_log("chat", window, T0 + since) for since in (0, 60, 7200))
    assert all_of_it is not None
    assert all_of_it.latency is not None
    # Hours of 2 x 1 and 3 x (2 + 1) requests share their first two triples.
    assert all_of_it.latency.counts.tolist() == [4, 4, 3]
    assert later is not None
    assert later.latency is not None
    assert later.latency.counts.tolist() == [3, 3, 3]
    assert none is not None
    assert none.latency is None
    assert none.requests == 3 * (1 + 1 + 2 + 3)


def test_busy_and_quiet_hours_are_thinned_alike(store: Store) -> None:
    busy = sample(100_000, tpot=0.09)
    commit(store, ("chat", T0, hour(T0, 1, latency=busy)), ("chat", T0 + 3600, hour(T0, 1, latency=sample(2_000))))
    log = store.request_log("chat", Window(T0, T0 + 7200), T0)
    assert log is not None
    assert log.latency is not None
    counts = log.latency.counts
    slow = counts[log.latency.tpot_seconds > 0.05].sum()
    # 100,000 rows fit 2,048 after 6 halvings: 1,562.5 of them stay, and 31.25 of the quiet hour's 2,000.
    assert int(slow) in {1562, 1563}
    assert int(counts.sum() - slow) in {31, 32}


def test_hours_of_a_single_request_are_thinned_too(store: Store) -> None:
    alone = [replace(sample(1), ttft_seconds=np.array([n * 0.001])) for n in range(1, 401)]
    whole = together([Thinned(one, 0) for one in alone] + [Thinned(sample(10), 2)], 10_000).sample
    # A quarter of 400 is 100, give or take 2.5 standard deviations of 8.7, and the ten that were thinned before.
    assert 10 + 78 <= whole.counts.sum() <= 10 + 122


def test_rows_without_a_figure_are_alike() -> None:
    none = replace(sample(1), tpot_seconds=np.array([np.nan]))
    whole = together([Thinned(none, 0), Thinned(none, 0), Thinned(sample(1), 0)], 100).sample
    assert whole.counts.tolist() == [1, 2]
    assert np.isnan(whole.tpot_seconds).tolist() == [False, True]


def test_old_hours_become_days(store: Store) -> None:
    midnight = T0 - T0 % DAY
    for n in (0, 5, 23, 24):
        start = midnight + n * 3600
        commit(store, ("chat", start, hour(start, n + 1, latency=sample(1))))
    store.prune(midnight + DAY + 14 * DAY + 60, 400)
    rows = store._database.rows("SELECT start, seconds, latency FROM slice ORDER BY start")
    assert [(row["start"], row["seconds"]) for row in rows] == [(midnight, DAY), (midnight + DAY, 3600)]
    assert rows[0]["latency"] is None
    log = store.request_log("chat", Window(midnight, midnight + 2 * DAY), 0.0)
    assert log is not None
    assert log.served.prompt.tolist() == [1, 6, 24, 25]
    assert sorted(log.arrivals) == [midnight + n * 3600 for n in (0, 5, 23, 24)]
    # An hour that comes late joins the day.
    commit(store, ("chat", midnight + 3600, hour(midnight + 3600, 99)))
    store.prune(midnight + DAY + 14 * DAY + 60, 400)
    log = store.request_log("chat", Window(midnight, midnight + DAY), 0.0)
    assert log is not None
    assert log.served.prompt.tolist() == [1, 6, 24, 99]
    store.prune(midnight + 500 * DAY, 400)
    assert store.request_log("chat", Window(0.0, midnight + 500 * DAY), 0.0) is None


def test_what_fails_leaves_cursors_and_hours_together(store: Store) -> None:
    commit(store, ("chat", T0, hour(T0, 1)))
    store._database.change("UPDATE slice SET lengths = x'00' WHERE deployment = 'chat'")
    with pytest.raises(StoreError, match="the request log of 'chat' is damaged"):
        commit(store, ("code", T0, hour(T0, 1)), ("chat", T0, hour(T0, 1)))
    assert store.request_log("code", Window(T0, T0 + 3600), T0) is None


def traffic(requests: int) -> list[bytes]:
    """Requests of 1 to 5 minutes on two replicas over three hours, in the order in which they end."""
    rng = random.Random(7)
    lines = []
    for serial in range(1, requests + 1):
        duration = rng.uniform(60, 300)
        at = rng.uniform(0, 3 * 3600) + duration
        more = {"upstream": f"r{serial % 2}", "duration_ms": duration * 1000, "ttft_ms": rng.uniform(100, 900)}
        lines.append((at, line(serial, round(at, 3), **more)))
    return [written for _, written in sorted(lines)]


def test_a_log_read_in_pieces_says_what_it_says_at_once(tmp_path: Path, store: Store) -> None:
    lines, path = traffic(2_000), tmp_path / "access.log"
    options, end = LogOptions(paths=(str(path),)), T0 + 4 * 3600
    with path.open("ab") as file:
        for place in range(0, len(lines), 50):
            file.write(b"".join(lines[place : place + 50]))
            file.flush()
            now = T0 + 300 + place / len(lines) * 3 * 3600
            told = follow(options, store.cursors(), lambda model, _: model, lambda _: 0.0, now)
            store.commit_logs(told.slices, told.cursors)
    told = follow(options, store.cursors(), lambda model, _: model, lambda _: 0.0, end)
    store.commit_logs(told.slices, told.cursors)
    window = Window(T0, end)
    whole = read_request_logs(options, window, lambda model, _: model, lambda _: 0.0).logs["m"]
    pieces = store.request_log("m", window, T0)
    assert pieces is not None
    np.testing.assert_array_equal(pieces.served.prompt, whole.served.prompt)
    assert pieces.arrivals == whole.arrivals
    assert (pieces.first_seconds, pieces.last_seconds) == (whole.first_seconds, whole.last_seconds)
    assert pieces.latency is not None
    assert whole.latency is not None
    assert pieces.latency.counts.sum() == whole.latency.counts.sum() == 2_000
    for name in ("concurrency", "in_flight"):
        # 2,000 requests x 180 s / (10,800 s x 2 replicas) = 16.7 run at a time; both ways of reading agree to 1 %.
        at_once, in_pieces = (np.average(getattr(s, name), weights=s.counts) for s in (whole.latency, pieces.latency))
        assert at_once == pytest.approx(16.7, abs=1.0)
        assert in_pieces == pytest.approx(at_once, rel=0.01)


def test_deployments_that_have_a_log_are_named(store: Store) -> None:
    commit(store, ("code", T0, hour(T0, 1)), ("chat", T0, hour(T0, 1)), ("chat", T0 + 3600, hour(T0, 1)))
    assert sorted(store.logged_deployments()) == ["chat", "code"]


def lengths(start: float, client: str, requests: int) -> LengthHistory:
    """Requests of 1,024 tokens of one client, half in the first slot of an hour and half in its last."""
    slots, bins = np.array([start, start + 3300], np.int64), np.array([160, 160])
    counts = np.array([requests, requests]) // 2
    return LengthHistory(300, slots, np.ones(2, np.int64), bins, counts, ("", client))


def test_lengths_over_time_and_by_client_come_back_and_add_up(store: Store) -> None:
    first, second = (replace(hour(T0, 100), history=lengths(T0, name, 4)) for name in ("a1", "b2"))
    commit(store, ("chat", T0, first))
    commit(store, ("chat", T0, second), ("chat", T0 + 3600, hour(T0 + 3600, 7)))
    log = store.request_log("chat", Window(T0, T0 + 7200), T0)
    assert log is not None
    assert log.history is not None
    # what has none, as an earlier release wrote it, adds none
    assert (log.history.n, log.history.clients, log.history.seconds) == (8, ("", "a1", "b2"), 300)
    assert sorted(set(log.history.start.tolist())) == [T0, T0 + 3300]


def test_days_keep_lengths_by_the_hour(store: Store) -> None:
    commit(store, ("chat", T0, replace(hour(T0, 100), history=lengths(T0, "a1", 4))))
    store.prune(T0 + 16 * DAY, 400)
    log = store.request_log("chat", Window(T0 - DAY, T0 + DAY), T0)
    assert log is not None
    assert log.history is not None
    assert (log.history.seconds, log.history.counts.tolist()) == (3600, [4])
