"""Room and turnover of the prefix cache, late reuses and lost hits: by hand, and against a simulated LRU cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import EngineSeries, Samples, as_floats
from advisor.domain.fact import Fact
from advisor.domain.histogram import Buckets
from advisor.estimates.prefix_cache import facts
from tests.unit.estimates.evidence import NOTHING, buckets, engine, flags, sheet, windows

POOL = 400_000
MINUTES = 15


def quarters(
    usage: Sequence[float],
    written: Sequence[float],
    *,
    hits: Sequence[float] | float = 0.0,
    prompt: Sequence[float] | float = 1_000.0,
    preempted: Sequence[float] | float = 0.0,
    latencies: dict[str, Buckets] | None = None,
) -> EngineSeries:
    """An engine by quarters of an hour: usage, tokens written a second, share of lookups hit; 100 output a request."""
    number = len(written)
    rate, hit, length, preemptions = (
        np.repeat(np.broadcast_to(as_floats(v), (number,)), MINUTES) for v in (written, hits, prompt, preempted)
    )
    finished = 60 * rate / (length * (1 - hit) + 100)
    counted = {
        "prompt_tokens_computed": finished * length * (1 - hit),
        "generation_tokens": finished * 100,
        "prefix_queries": finished * length,
        "prefix_hits": finished * length * hit,
        "prompt_tokens": finished * length,
        "finished": finished,
        "preemptions": preemptions,
    }
    time = as_floats(60.0 * np.arange(number * MINUTES) + 30)
    samples = Samples(time, np.ones(time.size), np.zeros(time.size), np.repeat(as_floats(usage), MINUTES))
    return replace(engine(samples, windows({n: v.tolist() for n, v in counted.items()})), latencies=latencies or {})


def told(*engines: EngineSeries, name: str = "prefix_turnover_seconds", **more: Any) -> Fact:
    case = replace(NOTHING, engines=engines, **more)
    return facts(case, sheet(kv_pool_tokens=POOL))[name]


def test_what_running_requests_leave() -> None:
    assert told(quarters([0.25] * 8, [500] * 8), name="prefix_cache_room_tokens").number == pytest.approx(300_000)


def test_a_block_survives_until_the_room_is_written_once() -> None:
    # 300,000 / 500; in the busy hours 200,000 / 2,000, where two thirds of the tokens are written
    case = quarters([0.25] * 16 + [0.5] * 8, [500] * 16 + [2_000] * 8)
    assert told(case).number == pytest.approx(100)
    assert told(quarters([0.25] * 20 + [0.5], [500] * 20 + [2_000])).number == pytest.approx(600)
    assert told(quarters([0.25] * 20 + [0.5], [500] * 20 + [2_000]), name="prefix_turnover_busy_seconds").number == (
        pytest.approx(100)
    )


def test_what_is_found_is_not_written() -> None:
    # half of the lookups hit: as many tokens are computed, so the turnover is the same
    assert told(quarters([0.25] * 8, [500] * 8, hits=0.5)).number == pytest.approx(600)


def test_the_engines_own_measurement_is_believed_and_the_other_one_kept() -> None:
    idle = buckets([60, 300, 600], [10, 20, 170, 0])
    fact = told(quarters([0.25] * 8, [500] * 8, latencies={"block_idle_before_evict": idle}))
    assert (fact.number, fact.low, fact.high) == (None, 300, 600)
    assert [rival.number for rival in fact.rivals] == [pytest.approx(600)]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"engine": "tgi"}, "is not known to hold prefixes"),
        ({"flags": flags(enable_prefix_caching=False)}, "off"),
        ({"flags": flags(disable_radix_cache=True), "engine": "sglang"}, "off"),
    ],
)
def test_engines_whose_free_cache_holds_nothing(more: dict[str, Any], why: str) -> None:
    assert why in (told(quarters([0.25] * 8, [500] * 8), **more).unknown or "")


def test_without_pool_usage_or_time_nothing_follows() -> None:
    one = quarters([0.25] * 8, [500] * 8)
    blind = replace(one, samples=replace(one.samples, kv_usage=None))
    assert "--prometheus" in (told(blind).unknown or "")
    assert "--prometheus" in (told(quarters([0.25] * 7, [500] * 7)).unknown or "")
    assert "--prometheus" in (told(replace(one, lifetime=True)).unknown or "")
    assert "pool" in (facts(replace(NOTHING, engines=(one,)), sheet())["prefix_turnover_seconds"].unknown or "")
    uncounted = replace(one, windows=windows({"generation_tokens": [60.0] * 200}))
    assert told(uncounted).is_unknown


def test_reuses_later_than_blocks_survive_in_busy_times() -> None:
    # 100 s in the busy tenth; 30 of 200 gaps are over 120 s, 20 more lie between 60 and 120
    gaps = buckets([30, 60, 120, 300], [100, 50, 20, 30, 0])
    case = quarters([0.25] * 16 + [0.5] * 8, [500] * 16 + [2_000] * 8, latencies={"block_reuse_gap": gaps})
    late = told(case, name="prefix_late_reuse_share")
    assert late.number is None
    assert [late.low, late.high] == pytest.approx([0.15, 0.25])
    gap = told(case, name="prefix_reuse_gap_p90_seconds")
    assert (gap.number, gap.low, gap.high) == (None, 120, 300)
    beyond = buckets([30, 60], [0, 0, 200])
    case = quarters([0.25] * 8, [500] * 8, latencies={"block_reuse_gap": beyond})
    assert told(case, name="prefix_reuse_gap_p90_seconds").high is None


def test_few_sampled_blocks_tell_nothing() -> None:
    few = buckets([30, 60], [50, 49, 0])
    case = quarters([0.25] * 8, [500] * 8, latencies={"block_reuse_gap": few})
    for name in ("prefix_reuse_gap_p90_seconds", "prefix_late_reuse_share"):
        assert "--kv-cache-metrics" in (told(case, name=name).unknown or "")


QUIET, BUSY = [0.1] * 48, [0.6] * 24
RATES = [300.0] * 48 + [1_500.0] * 24
MIXED = [0.6, 0.62, 0.58] * 16


def lost(**changed: Any) -> Fact:
    given_ = {"usage": [*QUIET, *BUSY], "written": RATES, "hits": [*MIXED, *[0.1] * 24]} | changed
    return told(quarters(**given_), name="prefix_hit_rate_lost")


def test_fewer_hits_although_more_is_looked_up_are_lost() -> None:
    # 360,000 / 300 = 1,200 s: 0.6 requests a second, 360 of 600 tokens hit; 160,000 / 1,500 = 107 s: 150 of 1,500
    fact = lost()
    assert fact.number == pytest.approx(0.14, abs=0.02)
    assert fact.low is not None
    assert fact.high is not None
    assert fact.low <= 0.14 <= fact.high


def test_a_rate_that_falls_because_others_come_on_top_is_no_loss() -> None:
    # at 21.3 % 360 tokens hit a second as in quiet times, of more that are looked up
    fact = lost(hits=[*MIXED, *[0.213] * 24])
    assert fact.low == 0.0
    assert fact.high is not None
    assert fact.high < 0.05


def test_more_hits_in_busy_times_are_no_negative_loss() -> None:
    assert lost(hits=[*MIXED, *[0.6] * 24]).unknown == (
        "no fewer tokens hit a second while blocks survive briefly: no loss is seen"
    )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"prompt": [1_000.0] * 48 + [1_300.0] * 24}, "other lengths"),
        ({"usage": [0.5] * 72, "written": [500.0] * 72}, "nothing tells them apart"),
        ({"usage": [0.1] * 48 + [0.9] * 24, "written": [300.0] * 48 + [100.0] * 24}, "fewer tokens are looked up"),
        ({"preempted": [1.0] * 72}, "without preemptions"),
    ],
)
def test_where_other_causes_are_possible_nothing_is_said(changed: dict[str, Any], why: str) -> None:
    assert why in (lost(**changed).unknown or "")


def test_lookups_beyond_the_engine() -> None:
    far = windows({"external_prefix_queries": [600.0, 400.0], "external_prefix_hits": [300.0, 100.0]})
    assert told(engine(None, far), name="external_prefix_cache_hit_rate").number == pytest.approx(0.4)
    assert told(engine(), name="external_prefix_cache_hit_rate").is_unknown


def test_a_cache_kept_full_on_purpose_has_no_room_to_speak_of() -> None:
    one = quarters([0.99] * 16, [500] * 16)
    varied = replace(one.samples, running=np.resize([4.0, 12.0], one.samples.time.size))
    assert "as offload keeps it" in (told(replace(one, samples=varied)).unknown or "")
    other = quarters([0.25] * 8, [500] * 8)
    assert told(replace(one, samples=varied), other).number == pytest.approx(600)


@given(
    usage=st.lists(st.floats(0, 1), min_size=8, max_size=20),
    rate=st.floats(1, 1e5),
    more=st.floats(1.01, 10),
)
def test_faster_writing_never_lets_a_block_survive_longer(usage: list[float], rate: float, more: float) -> None:
    slow, fast = (told(quarters(usage, [r] * len(usage))) for r in (rate, rate * more))
    assert slow.number is not None
    assert fast.number is not None
    assert 0 <= fast.number <= slow.number * (1 + 1e-9)
    room = told(quarters(usage, [rate] * len(usage)), name="prefix_cache_room_tokens").number
    assert room is not None
    assert 0 <= room <= POOL


def test_a_simulated_least_recently_used_cache_survives_as_computed() -> None:
    """20,000 blocks of room, 25 written a second at random among sessions that seldom come back: 800 s."""
    random = np.random.default_rng(3)
    cache: OrderedDict[int, float] = OrderedDict()
    survived = []
    for step, block in enumerate(random.integers(0, 10**9, 60_000)):
        now = step / 25
        cache[int(block)] = now
        if len(cache) > 20_000:
            survived.append(now - cache.popitem(last=False)[1])
    # 16 tokens a block: 320,000 of 400,000 tokens, 400 written a second
    assert np.median(survived) == pytest.approx(told(quarters([0.2] * 8, [400] * 8)).number, rel=0.01)
