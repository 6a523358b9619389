from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.evidence import Window
from advisor.sources.request_log.concurrency import SpanGrid

WINDOW = Window(1000.0, 1064.0)


def means(grid: SpanGrid, spans: list[tuple[float, float]], replica: int = 0) -> list[float]:
    start, end = np.array(spans, float).T
    return [float(mean) for mean in grid.mean(replica, start, end)]


def test_it_averages_over_the_span() -> None:
    grid = SpanGrid(WINDOW, budget_cells=64)
    grid.add(np.array([0, 0]), np.array([1000.0, 1005.0]), np.array([1010.0, 1015.0]))
    # 0-10 s: one for 5 s, two for 5 s = 1.5; 5-15 s: two for 5 s, one for 5 s; 15-20 s: nobody.
    assert means(grid, [(1000, 1010), (1005, 1015), (1015, 1020), (1007, 1007)]) == pytest.approx([1.5, 1.5, 0, 2])


def test_replicas_do_not_see_each_other() -> None:
    grid = SpanGrid(WINDOW, budget_cells=1 << 12)
    grid.add(np.array([0, 2]), np.array([1000.0, 1000.0]), np.array([1010.0, 1020.0]))
    assert means(grid, [(1000, 1010)], 0) == pytest.approx([1])
    assert means(grid, [(1000, 1020)], 1) == [0]
    assert means(grid, [(1000, 1020)], 2) == pytest.approx([1])


def test_it_cuts_what_lies_outside_the_window() -> None:
    grid = SpanGrid(WINDOW, budget_cells=64)
    grid.add(np.array([0]), np.array([0.0]), np.array([9999.0]))
    assert means(grid, [(1000, 1060)]) == pytest.approx([1])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 511), st.integers(1, 128)), min_size=1, max_size=40))
def test_it_agrees_with_counting(raw: list[tuple[int, int]]) -> None:
    """Edges on eighths of a second are multiples of a cell here, so the grid must be exact."""
    spans = [(1000 + s / 8, min(1000 + (s + d) / 8, 1063.875)) for s, d in raw]
    spans = [(s, e) for s, e in spans if e > s] or [(1000.0, 1001.0)]
    grid = SpanGrid(WINDOW, budget_cells=512)
    start, end = np.array(spans).T
    grid.add(np.zeros(len(spans), int), start, end)
    overlap = [sum(max(0.0, min(e, f) - max(s, t)) for t, f in spans) / (e - s) for s, e in spans]
    assert means(grid, spans) == pytest.approx(overlap, abs=1e-6)


def test_memory_stays_bounded_and_coarser_cells_keep_the_mean() -> None:
    grid = SpanGrid(WINDOW, budget_cells=1 << 10)
    starts = np.arange(1000.0, 1040.0, 0.5)
    grid.add(np.zeros(starts.size, int), starts, starts + 8)
    fine = means(grid, [(1016, 1032)])
    grid.add(np.array([99]), np.array([1000.0]), np.array([1064.0]))
    assert grid.cells * 128 <= 1 << 10
    # A request of 8 s arrives each half second: 16 at a time.
    assert fine == pytest.approx([16], rel=0.01)
    assert means(grid, [(1016, 1032)]) == pytest.approx([16], rel=0.01)
