"""What a sequence holds, from gauges: against known mean, spread and a shared prefix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.estimates.gauge_occupancy import from_gauges, kept_full
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


def test_where_the_cache_decides_how_many_run_they_tell_no_spread() -> None:
    # A full cache of 400,000 tokens holds 20 to 68 sequences while others wait: 1,232 each is the mean of all scrapes.
    running, tokens = in_flight(1232, 715, 2_000)
    full = np.tile(np.arange(257.0, 393.0), 20)
    n = np.concatenate([running, full])
    usage = np.concatenate([np.array(tokens) / 400_000, np.full(full.size, 1.0)])
    waiting = np.concatenate([np.zeros(len(running)), np.ones(full.size)])
    scraped = engine(gauges(n, waiting, usage=usage))
    found = from_gauges(replace(NOTHING, engines=(scraped,)), sheet(kv_pool_tokens=400_000)["kv_pool_tokens"])
    assert found is not None
    assert found.mean == pytest.approx(1232, rel=0.02)
    assert found.sd == pytest.approx(715, rel=0.03)


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


def test_a_cache_that_offload_keeps_full_tells_nothing_of_sequences() -> None:
    pool = sheet(kv_pool_tokens=400_000)["kv_pool_tokens"]
    running, _ = in_flight(1232, 715, 5_000)
    on_purpose = engine(gauges(running, usage=0.999))
    assert kept_full(on_purpose)
    assert from_gauges(replace(NOTHING, engines=(on_purpose,)), pool) is None
    # the replica beside it offloads nothing, and is read alone
    other = engine(gauges(running, usage=1_000 * np.array(running) / 400_000))
    found = from_gauges(replace(NOTHING, engines=(on_purpose, other)), pool)
    assert found is not None
    assert found.mean == pytest.approx(1_000)


def test_a_cache_that_is_full_because_requests_wait_is_of_sequences() -> None:
    running, _ = in_flight(1232, 715, 5_000)
    assert not kept_full(engine(gauges(running, waiting=4.0, usage=0.999)))
    # at the same concurrency all the time nobody can tell
    assert not kept_full(engine(gauges([20.0] * 5_000, usage=0.999)))
    assert not kept_full(engine(gauges(running, usage=np.array(running) / 39)))
    assert not kept_full(engine(gauges(running)))
    assert not kept_full(engine(gauges(running[:90], usage=0.999)))
    # nothing runs most of the time: a leak
    assert not kept_full(engine(gauges([*running, *[0.0] * 6_000], usage=0.999)))


def test_blocks_that_are_only_cached_are_not_held() -> None:
    """Usage falls to 0 between requests however much is cached: with 5 running at 10 % a sequence holds 2 %."""
    pool = sheet(kv_pool_tokens=400_000)["kv_pool_tokens"]
    counted = windows({"prefix_hits": [900.0], "prefix_queries": [1_000.0]})
    bursts = engine(gauges([0.0, 5.0] * 2_000, usage=[0.0, 0.1] * 2_000), counted)
    found = from_gauges(replace(NOTHING, engines=(bursts,)), pool)
    assert found is not None
    assert found.mean == pytest.approx(8_000)
    assert found.shared == 0
