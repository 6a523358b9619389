"""What is counted, what is kept of it, and what a crash leaves, over real files and a real store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from advisor.domain.errors import StoreError
from advisor.domain.exported import EDGES, OTHER_MODELS, LengthCounts
from advisor.exporter.follower import Follower
from advisor.sources.request_log import LogOptions
from advisor.store import Store
from tests.unit.exporter.logs import T0, failed, refused, row, silent

NOW = T0 + 3600


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "exporter.db")
    store.counting_since(T0)
    yield store
    store.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.touch()
    return path


def follower(store: Store, log: Path, most_models: int = 20) -> Follower:
    return Follower(LogOptions(paths=(str(log),)), store, most_models, NOW)


def append(log: Path, *lines: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.writelines(lines)


def bucket(counts: LengthCounts, tokens: int) -> float:
    """Requests in the bucket that holds this length of total tokens."""
    return float(counts.histograms["total"].counts[np.searchsorted(EDGES, tokens)])


def test_lengths_and_outcomes(store: Store, log: Path) -> None:
    append(
        log,
        row(1000, 24, max_tokens=500, finish_reason="stop"),
        row(8000, 192, finish_reason="length"),
        row(8000, 193),
        refused(9000),
        failed(),
        silent(),
    )
    follower_ = follower(store, log)
    assert follower_.step(NOW) is False
    counts = follower_.shown.counts["m"]
    assert counts.outcomes == {"served": 2, "cut": 1, "refused_length": 1, "failed": 1, "without_usage": 1}
    # 1,024 and 8,192 are edges: 8,193 is in the next bucket.
    assert (bucket(counts, 1024), bucket(counts, 8192), bucket(counts, 8193)) == (1, 1, 1)
    sums = {quantity: histogram.total for quantity, histogram in counts.histograms.items()}
    assert sums == {"prompt": 17_000, "output": 409, "total": 17_409, "declared": 1500, "refused": 9000}
    assert [histogram.n for histogram in counts.histograms.values()] == [3, 3, 3, 1, 1]


def test_a_length_beyond_the_last_bucket_is_counted(store: Store, log: Path) -> None:
    append(log, row(2_000_000, 1))
    follower_ = follower(store, log)
    follower_.step(NOW)
    total = follower_.shown.counts["m"].histograms["total"]
    assert (total.n, total.counts[-1], total.total) == (1, 1, 2_000_001)


def test_counters_go_on_after_a_restart(store: Store, log: Path) -> None:
    append(log, row(100, 10))
    follower(store, log).step(NOW)
    again = follower(store, log)
    assert again.shown.counts["m"].outcomes["served"] == 1
    append(log, row(100, 10))
    again.step(NOW)
    assert again.shown.counts["m"].outcomes["served"] == 2
    assert again.shown.read_at == NOW
    assert again.shown.summary == "2 requests of 1 models counted"


def test_what_ended_before_counting_began_is_not_counted(tmp_path: Path, log: Path) -> None:
    """Or a new agent would tell Prometheus that weeks of requests came at once."""
    append(log, row(100, 10, at=-60), row(200, 20, at=60))
    store = Store.open(tmp_path / "new.db")
    new = Follower(LogOptions(paths=(str(log),)), store, 20, T0)
    new.step(NOW)
    assert new.shown.counts["m"].histograms["prompt"].total == 200
    # Nor is it after a restart, when other files may still be unread.
    append(log, row(300, 30, at=-30))
    Follower(LogOptions(paths=(str(log),)), store, 20, NOW).step(NOW)
    assert store.exported()["m"].histograms["prompt"].total == 200
    store.close()


def test_what_cannot_be_committed_is_not_shown_and_counts_once(store: Store, log: Path) -> None:
    follower_ = follower(store, log)
    append(log, row(100, 10))
    store.close()
    with pytest.raises(StoreError):
        follower_.step(NOW)
    assert follower_.shown.counts == {}
    again = Store.open(log.with_name("exporter.db"))
    after = follower(again, log)
    after.step(NOW)
    assert after.shown.counts["m"].outcomes["served"] == 1
    again.close()


def test_the_place_is_kept_though_nothing_was_counted(store: Store, log: Path) -> None:
    append(log, row(100, 10, at=-60))
    follower(store, log).step(NOW)
    (cursor,) = store.cursors().files
    assert cursor.offset == log.stat().st_size


def test_models_beyond_the_most_are_counted_together(store: Store, log: Path) -> None:
    append(log, *(row(100, 10, model=f"m{number}") for number in range(4)))
    follower_ = follower(store, log, most_models=2)
    follower_.step(NOW)
    assert sorted(follower_.shown.counts) == [OTHER_MODELS, "m0", "m1"]
    assert follower_.shown.counts[OTHER_MODELS].outcomes["served"] == 2


def test_names_that_nobody_serves_take_no_room(store: Store, log: Path) -> None:
    """Anybody can ask for a model that does not exist."""
    append(log, *(failed(model=f"guess-{number}") for number in range(50)), row(100, 10))
    follower_ = follower(store, log, most_models=1)
    follower_.step(NOW)
    assert sorted(follower_.shown.counts) == [OTHER_MODELS, "m"]
    assert follower_.shown.counts[OTHER_MODELS].outcomes["failed"] == 50


def test_names_that_look_alike_are_one(store: Store, log: Path) -> None:
    append(log, row(100, 10, model="a\nb"), row(100, 10, model="a  b"), row(1, 1, model="\x1b[2J" * 200))
    follower_ = follower(store, log)
    follower_.step(NOW)
    names = sorted(follower_.shown.counts)
    assert "a b" in names
    assert follower_.shown.counts["a b"].outcomes["served"] == 2
    assert all(name.isprintable() and len(name) <= 200 for name in names)


def test_an_alias_is_counted_as_what_it_stands_for(store: Store, log: Path) -> None:
    append(log, row(100, 10, model="gpt-4o"))
    options = LogOptions(paths=(str(log),), aliases={"gpt-4o": "chat-70b"})
    follower_ = Follower(options, store, 20, NOW)
    follower_.step(NOW)
    assert list(follower_.shown.counts) == ["chat-70b"]
