"""What a sequence holds, from gauges: against known mean, spread and a shared prefix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.estimates.gauge_occupancy import from_gauges
from tests.unit.estimates.evidence import NOTHING, engine, gauges, sheet, windows


def in_flight(mean: float, sd: float, n: int) -> tuple[list[float], list[float]]:
    """Running 3..40 and the cache use in tokens of so many independent sequences."""
    random = np.random.default_rng(1)
    running = random.integers(3, 40, n).astype(float)
    return running.tolist(), (mean * running + sd * np.sqrt(running) * random.standard_normal(n)).tolist()


def test_gauges_tell_the_same_without_any_length() -> None:
    running, tokens = in_flight(1232, 715, 20_000)
    scraped = engine(gauges(running, usage=np.array(tokens) / 400_000))
    pool = sheet(kv_pool_tokens=400_000)["kv_pool_tokens"]
    found = from_gauges(replace(NOTHING, engines=(scraped,)), pool)
    assert found is not None
    assert found.mean == pytest.approx(1232, rel=0.01)
    assert found.sd == pytest.approx(715, rel=0.02)


def test_too_few_scrapes_with_anything_running_are_not_used() -> None:
    pool = sheet(kv_pool_tokens=400_000)["kv_pool_tokens"]
    few = engine(gauges([5.0] * 499, usage=0.1))
    idle = engine(gauges([2.0] * 5_000, usage=0.1))
    blind = engine(gauges([5.0] * 5_000, usage=float("nan")))
    for scraped in (few, idle, blind, engine()):
        assert from_gauges(replace(NOTHING, engines=(scraped,)), pool) is None


@pytest.mark.parametrize(
    ("hits", "shared", "each"),
    # 40,000 tokens held once and 500 each by 3 to 39 sequences, 21 on average: (40,000 + 21 x 500) / 21 = 2,405
    [(600.0, 40_000, 500), (0.0, 0, 2_405)],
)
def test_a_prefix_held_once_is_an_intercept_where_the_cache_is_hit_at_all(
    hits: float, shared: float, each: float
) -> None:
    running, tokens = in_flight(500, 100, 10_000)
    counted = windows({"prefix_hits": [hits], "prefix_queries": [1_000.0]})
    scraped = engine(gauges(running, usage=(np.array(tokens) + 40_000) / 400_000), counted)
    found = from_gauges(replace(NOTHING, engines=(scraped,)), sheet(kv_pool_tokens=400_000)["kv_pool_tokens"])
    assert found is not None
    assert found.shared == pytest.approx(shared, rel=0.02)
    assert found.mean == pytest.approx(each, rel=0.02)


@pytest.mark.parametrize(("least", "most"), [(20, 21), (19, 24)])
def test_concurrency_that_hardly_varied_tells_no_intercept(least: int, most: int) -> None:
    running = np.random.default_rng(2).integers(least, most, 5_000).astype(float)
    counted = windows({"prefix_hits": [600.0], "prefix_queries": [1_000.0]})
    scraped = engine(gauges(running, usage=(40_000 + 500 * running) / 400_000), counted)
    found = from_gauges(replace(NOTHING, engines=(scraped,)), sheet(kv_pool_tokens=400_000)["kv_pool_tokens"])
    assert found is not None
    assert found.shared == 0
