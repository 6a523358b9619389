from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.length_history import (
    BIN_RATIO,
    MOST_CLIENTS,
    NOBODY,
    LengthHistory,
    bin_of,
    upper_edge,
)


def history(
    rows: list[tuple[int, int, int, int]], clients: tuple[str, ...] = (NOBODY,), seconds: int = 300
) -> LengthHistory:
    """Rows of start, client, bin, count."""
    start, client, bins, counts = (np.array([row[i] for row in rows], np.int64) for i in range(4))
    return LengthHistory(seconds, start, client, bins, counts, clients)


def test_bins_by_hand() -> None:
    # sixteen an octave: 1 = 2^0, 2 = 2^(16/16), 1,024 = 2^(160/16); 1,025 is the first of the next
    assert bin_of(np.array([0, 1, 2, 1_024, 1_025, 131_072])).tolist() == [0, 0, 16, 160, 161, 272]
    assert upper_edge(np.array([0, 16, 160, 272])).tolist() == [1, 2, 1_024, 131_072]


@given(st.integers(1, 200_000_000))
def test_a_bin_never_shortens_and_lengthens_by_less_than_its_width(length: int) -> None:
    edge = upper_edge(bin_of(np.array([length])))[0]
    assert length <= edge <= length * BIN_RATIO


def test_wider_slots_keep_every_request() -> None:
    fine = history([(0, 0, 160, 2), (300, 0, 160, 3), (3_600, 0, 160, 1)])
    hours = fine.coarser(3600)
    assert (hours.start.tolist(), hours.counts.tolist(), hours.seconds) == ([0, 3_600], [5, 1], 3600)
    assert hours.coarser(300) is hours


def test_parts_are_merged_by_the_names_of_clients() -> None:
    one = history([(0, 1, 160, 2), (0, 2, 160, 5)], ("", "a", "b"))
    two = history([(0, 1, 160, 4), (300, 0, 16, 1)], ("", "b"))
    merged = LengthHistory.merge([one, two])
    assert merged is not None
    asked = {merged.clients[c]: n for c, n in zip(merged.client.tolist(), merged.counts.tolist(), strict=True)}
    assert asked == {"a": 2, "b": 9, "": 1}
    assert merged.totals().lengths.tolist() == [2, 1_024]


def test_nothing_merges_to_nothing() -> None:
    assert LengthHistory.merge([]) is None


def test_only_those_who_ask_most_keep_their_names() -> None:
    names = (NOBODY, *(f"c{k}" for k in range(40)))
    merged = LengthHistory.merge([history([(0, k, 160, k) for k in range(1, 41)], names)])
    assert merged is not None
    # c39 asked 40 times, c24 25 times; c0 to c23 asked 1 + ... + 24 = 300 times together
    assert set(merged.clients) == {NOBODY, *(f"c{k}" for k in range(24, 40))}
    assert len(merged.clients) == MOST_CLIENTS + 1
    assert int(merged.counts[merged.client == 0].sum()) == 300


def test_too_many_rows_widen_the_slots() -> None:
    many = history([(300 * k, 0, 160, 1) for k in range(288)])
    assert many.bounded(most_rows=100).seconds == 900
    day = many.bounded(most_rows=1)
    assert (day.seconds, day.counts.tolist()) == (86_400, [288])


@pytest.mark.parametrize("most", [1, 10, 1000])
def test_bounding_loses_nobody(most: int) -> None:
    many = history([(300 * k, 0, 100 + k % 7, 2) for k in range(288)])
    assert many.bounded(most).n == 576
