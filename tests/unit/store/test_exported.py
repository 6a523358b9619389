"""What the host agent counted, kept with its cursors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from advisor.domain.cursor import Cursor, Cursors, FileStamp
from advisor.domain.errors import StoreError
from advisor.domain.exported import EDGES, LengthCounts
from advisor.exporter.counting import counts_of
from advisor.store import Store
from advisor.store.database import Database
from tests.unit.estimates.evidence import joint, log

COUNTS = counts_of(log(joint((1000, 24, 5), (8000, 300, 2)), refused=3, refused_needs=[9000]))
CURSORS = Cursors((Cursor(FileStamp(1, 2, 3, 4), 3, ("a",), "t", 5.0),))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "exporter.db")
    yield store
    store.close()


def same(one: LengthCounts, other: LengthCounts) -> bool:
    return one.outcomes == other.outcomes and all(
        np.array_equal(h.counts, other.histograms[q].counts) and h.total == other.histograms[q].total
        for q, h in one.histograms.items()
    )


def test_counts_come_back_as_they_were(store: Store) -> None:
    store.commit_exported({"m": COUNTS, "": LengthCounts.nothing()}, CURSORS)
    known = store.exported()
    assert list(known) == ["", "m"]
    assert same(known["m"], COUNTS)
    assert same(known[""], LengthCounts.nothing())
    assert store.cursors() == CURSORS


def test_other_models_stay_as_they_were(store: Store) -> None:
    store.commit_exported({"a": COUNTS, "b": COUNTS}, CURSORS)
    store.commit_exported({"b": COUNTS.plus(COUNTS)}, Cursors())
    known = store.exported()
    assert same(known["a"], COUNTS)
    assert known["b"].histograms["total"].n == 14
    assert store.cursors() == Cursors()


def test_both_or_neither(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def torn(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("advisor.store.exported.write_cursors", torn)
    with pytest.raises(KeyboardInterrupt):
        store.commit_exported({"m": COUNTS}, CURSORS)
    assert store.exported() == {}


def test_counting_begins_once(store: Store) -> None:
    assert store.counting_since(100.0) == 100.0
    assert store.counting_since(200.0) == 100.0


@pytest.mark.parametrize("body", [b"", b"x"], ids=repr)
def test_what_is_damaged_is_told(store: Store, tmp_path: Path, body: bytes) -> None:
    store.commit_exported({"m": COUNTS}, CURSORS)
    database = Database(tmp_path / "exporter.db", readonly=False)
    database.change("UPDATE exported SET body = ?", body)
    database.close()
    with pytest.raises(StoreError, match="the counts are damaged: restore the store from a backup"):
        store.exported()


def test_counts_of_other_buckets_are_not_taken_for_these(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.commit_exported({"m": COUNTS}, CURSORS)
    monkeypatch.setattr("advisor.store.exported.EDGES", EDGES[:-1])
    with pytest.raises(StoreError, match="the counts are damaged"):
        store.exported()
