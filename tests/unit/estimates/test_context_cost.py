"""What a cached token costs per step, found again on engines whose steps cost what is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import EngineSeries, Evidence, Samples, as_floats
from advisor.domain.fact import Fact, unknown
from advisor.domain.histogram import Floats
from advisor.estimates import context_cost, step_windows
from tests.unit.estimates.evidence import NOTHING, engine, flags, sheet, windows

BASE, PER_SEQUENCE, PER_PROMPT, PER_CACHED = 0.010, 20e-6, 50e-6, 64e-9
POOL = 400_000.0
SHORT, LONG = 1_000.0, 3_000.0
BY_TURNS = np.where(np.arange(240) // 60 % 2 == 0, SHORT, LONG)
"""An hour of short requests, an hour of long ones, and so on."""


def serving(held: Floats, *, noise: float = 0.0, prompts: float = 5.0, pool: float = POOL) -> EngineSeries:
    """Minutes in which each sequence holds so many tokens; four scrapes in each, and gaps of the known cost."""
    random = np.random.default_rng(7)
    batch = random.uniform(4, 24, held.size)
    prompt = prompts * batch * random.uniform(0.5, 1.5, held.size)
    itl = BASE + PER_SEQUENCE * batch + PER_PROMPT * prompt + PER_CACHED * held * batch
    itl = itl * (1 + noise * random.standard_normal(held.size))
    counted = {"steps": np.full(held.size, 1000.0), "itl_count": 1000 * batch, "itl_sum": 1000 * batch * itl}
    counted["prompt_tokens_computed"] = 1000 * prompt
    running = np.repeat(np.round(batch), 4)
    usage = running * np.repeat(held, 4) / pool
    scrapes = Samples(as_floats(15.0 * np.arange(1, running.size + 1)), running, np.zeros(running.size), usage)
    return engine(scrapes, windows({name: values.tolist() for name, values in counted.items()}))


def cost(read: EngineSeries, pool: float | Fact = POOL, evidence: Evidence = NOTHING) -> Fact:
    seen = replace(evidence, engines=(read,))
    return context_cost.facts(seen, sheet(kv_pool_tokens=pool))["itl_per_kv_token_seconds"]


def test_where_lengths_differ_the_cost_is_found_again() -> None:
    found = cost(serving(BY_TURNS))
    # each length lasts an hour and ten scrapes are two minutes and a half, so the two blur at four places only
    assert found.number == pytest.approx(PER_CACHED, rel=0.1)
    assert found.n == 240
    assert (found.low or 0.0) <= PER_CACHED <= (found.high or 0.0)


def test_the_interval_widens_with_noise() -> None:
    quiet, noisy = cost(serving(BY_TURNS)), cost(serving(BY_TURNS, noise=0.02))
    assert (noisy.low or 0.0) <= PER_CACHED <= (noisy.high or 0.0)
    assert (noisy.high or 0.0) - (noisy.low or 0.0) > (quiet.high or 0.0) - (quiet.low or 0.0)


def test_alike_at_all_times_batch_and_cache_move_together() -> None:
    assert cost(serving(np.full(240, 2_000.0))).unknown == (
        "batch and cache move together: contexts of one tenth of the time are at most 1.00 times those of another; "
        "1.5 times would tell"
    )


def test_scatter_of_contexts_within_the_hour_is_none_that_tells() -> None:
    """Whatever single windows hold, it is half scatter of the scrapes, and the cost would come out too low."""
    scattered = np.random.default_rng(5).uniform(1_000, 3_000, 240)
    assert "batch and cache move together" in (cost(serving(scattered)).unknown or "")


def test_lengths_that_follow_the_batch_are_not_told_apart() -> None:
    read = serving(np.linspace(1_000, 3_000, 240))
    batch = np.linspace(4, 24, 240)
    deltas = {**read.windows.deltas, "itl_count": 1000 * batch, "itl_sum": 1000 * batch * 0.02}
    deltas["prompt_tokens_computed"] = 5000 * batch * np.random.default_rng(5).uniform(0.99, 1.01, 240)
    rising = replace(read, windows=replace(read.windows, deltas=deltas))
    assert "batch, prompts and cache move together (variance inflation" in (cost(rising).unknown or "")


def test_windows_from_before_a_change_of_lengths_tell_it() -> None:
    """The time of a step is that of the windows since; what the cache costs is seen where both are compared."""
    read = serving(np.repeat([SHORT, LONG], 120))
    lengths = {
        "finished": np.full(240, 20.0),
        "prompt_tokens": np.repeat([18_000.0, 56_000.0], 120),
        "generation_tokens": np.full(240, 4_000.0),
    }
    changed = replace(read, windows=replace(read.windows, deltas={**read.windows.deltas, **lengths}))
    since = step_windows.gather(replace(NOTHING, engines=(changed,)))
    assert since is not None
    assert since.batch.size == 120
    assert since.cache * POOL == pytest.approx(np.full(120, LONG))
    assert cost(changed).number == pytest.approx(PER_CACHED, rel=0.1)


def test_several_tokens_a_gap_change_nothing() -> None:
    read = serving(BY_TURNS)
    drafted = {"ttft_count": np.full(240, 50.0)}
    drafted["generation_tokens"] = 2.5 * (read.windows.deltas["itl_count"] + 50)
    both = replace(read, windows=replace(read.windows, deltas={**read.windows.deltas, **drafted}))
    assert cost(both).number == cost(read).number


@pytest.mark.parametrize("times", [0.01, 3.0, 100.0])
def test_a_larger_pool_at_the_same_usage_is_cheaper_by_the_token(times: float) -> None:
    read = serving(BY_TURNS)
    one, other = cost(read).number, cost(read, POOL * times).number
    assert one is not None
    assert other == pytest.approx(one / times, rel=1e-6)


def test_what_explains_little_is_no_cost() -> None:
    assert "90% are needed" in (cost(serving(BY_TURNS, noise=0.5)).unknown or "")


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (serving(BY_TURNS, prompts=0.0), "prompt work or cache did not vary"),
        (serving(BY_TURNS[:29]), "29 usable windows with cache usage; 30 are needed"),
        (replace(serving(BY_TURNS), samples=engine().samples), "0 usable windows with cache usage"),
        (engine(), "needs the size of the cache, and counters and gauges"),
    ],
)
def test_what_is_missing_is_named(read: EngineSeries, reason: str) -> None:
    assert reason in (cost(read).unknown or "")


def test_without_the_pool_or_over_several_stages_nothing_is_told() -> None:
    assert "the size of the cache" in (cost(serving(BY_TURNS), unknown("not told")).unknown or "")
    staged = replace(NOTHING, flags=flags(pipeline_parallel_size=2))
    assert "2 pipeline stages" in (cost(serving(BY_TURNS), evidence=staged).unknown or "")
