"""Facts hour by hour: the same as those of the whole window, of an hour; and which hours are told at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.evidence import CounterWindows, EngineSeries, Evidence, Flag, Samples, Slo, Window, as_floats
from advisor.domain.hours import DEMAND, ENGINES, OUTPUT, PROMPT
from advisor.estimates import load
from advisor.estimates.hourly import hourly_facts
from tests.unit.estimates.evidence import sheet

HOUR = 3600.0
START = 1_795_910_400.0  # Sun 29 Nov 2026 00:00 UTC
EDGES = np.array([0.025, 0.04, 0.1])


def engine(
    *,
    first: float = 0.0,
    last: float = 3.0,
    step: float = 60.0,
    seed: int = 0,
    waiting: float = 0.0,
    epoch: float | None = None,
) -> EngineSeries:
    """An engine that is read from `first` to `last` (hours after START) every `step` seconds."""
    random = np.random.default_rng(seed)
    times = as_floats(START + np.arange(first * HOUR, last * HOUR + 1, step))
    n = times.size - 1
    samples = Samples(times, as_floats(random.integers(0, 17, n + 1)), np.full(n + 1, waiting), random.random(n + 1))
    deltas = {
        "finished": np.full(n, step / 2),
        "prompt_tokens": np.full(n, step / 2 * 900),
        "generation_tokens": np.full(n, step / 2 * 200),
        "preemptions": np.full(n, step / 20),
        "itl_sum": np.full(n, step / 2 * 200 * 0.02),
        "itl_count": np.full(n, step / 2 * 200),
    }
    tpot = np.tile(np.array([0.5, 0.4, 0.1, 0.0]) * step / 2, (n, 1))
    windows = CounterWindows(times[:-1], times[1:], deltas, EDGES, tpot, EDGES, tpot)
    return EngineSeries(f"host-{seed}", "0", START + first * HOUR if epoch is None else epoch, samples, windows, {}, {})


def evidence(*engines: EngineSeries, slo: Slo | None = None) -> Evidence:
    flags = {"max_num_seqs": Flag(16, "server_info"), "max_num_batched_tokens": Flag(2048, "default")}
    window = Window(START - 4 * HOUR, START + 4 * HOUR)
    return Evidence("chat", window, engine_version="0.32.0", flags=flags, engines=engines, slo=slo or Slo())


def test_counters_of_an_hour() -> None:
    told = hourly_facts(evidence(engine(), engine(seed=1), slo=Slo(tpot_seconds=0.04)))
    assert [(h.start - START) / HOUR for h in told] == [0, 1, 2]
    hour = told[1]
    assert (hour.epoch, hour.settings) == (START, {"max_num_seqs": 16, "version": "0.32.0"})
    figures = hour.figures
    assert (figures[ENGINES], figures[PROMPT], figures[OUTPUT]) == pytest.approx((2, 900, 200))
    assert (figures["itl_mean"], figures["preempted_share"]) == pytest.approx((0.02, 0.1))
    # 50 % up to 25 ms and 40 % up to 40 ms; the p99 lies nine tenths into the last bucket: 40 + 0.9 x 60 ms.
    assert (figures["slo_attainment_tpot"], figures["slo_attainment"]) == pytest.approx((0.9, 0.9))
    assert figures["ttft_p99"] == pytest.approx(0.094)
    assert "queue_share_of_ttft" not in figures


@pytest.mark.parametrize("target", [0.03, 0.2, 0.01])
def test_attainment_is_not_told_between_edges_that_are_far_apart(target: float) -> None:
    (hour, *_) = hourly_facts(evidence(engine(), slo=Slo(tpot_seconds=target)))
    # 30 ms: between 50 and 90 %. 200 ms is beyond the last edge, with everything below it: all of them.
    assert hour.figures.get("slo_attainment_tpot") == (pytest.approx(1.0) if target == 0.2 else None)


def test_demand_is_what_arrived_not_what_was_served() -> None:
    growing = engine()
    # 0.1 requests a second more than are finished wait: 360 more an hour.
    queue = (growing.samples.time - START) * 0.1
    growing = replace(growing, samples=replace(growing.samples, running=0 * queue, waiting=queue))
    assert [h.figures[DEMAND] for h in hourly_facts(evidence(growing))] == pytest.approx([0.6, 0.6, 0.6])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 2))
def test_gauges_of_an_hour_are_the_facts_of_that_hour(seed: int, place: int) -> None:
    both = [engine(seed=seed, waiting=2.0), engine(seed=seed + 1)]
    hour = hourly_facts(evidence(*both))[place]
    cut = []
    for one in both:
        s = one.samples
        mine = (s.time >= hour.start) & (s.time < hour.start + HOUR)
        assert s.kv_usage is not None
        cut.append(replace(one, samples=Samples(s.time[mine], s.running[mine], s.waiting[mine], s.kv_usage[mine])))
    facts = load.facts(evidence(*cut), sheet())
    for name in ("waiting_share", "time_at_sequence_cap", "running_p95", "waiting_p95", "kv_usage_p95"):
        assert hour.figures[name] == pytest.approx(facts[name].number), name


@pytest.mark.parametrize(
    ("engines", "told"),
    [
        ([engine(), engine(seed=1, first=1.2)], [2]),  # before 1.2 h it may have served in another epoch
        ([engine(), engine(seed=1, last=1.5)], [0, 2]),  # it left in the second hour
        ([engine(last=2.8)], [0, 1]),  # the third hour has not ended
        ([engine(last=2.96)], [0, 1, 2]),  # or its last scrape is a little late
        ([engine(epoch=START + 0.5 * HOUR)], [1, 2]),
        ([replace(engine(), lifetime=True)], []),
        ([], []),
    ],
)
def test_only_hours_in_which_every_engine_was_read_are_told(engines: list[EngineSeries], told: list[int]) -> None:
    assert [(h.start - START) / HOUR for h in hourly_facts(evidence(*engines))] == told


def test_a_hole_in_the_readings_is_no_hour() -> None:
    whole = engine(last=5.0)
    kept = (whole.windows.start < START + HOUR) | (whole.windows.start >= START + 3 * HOUR)
    w = whole.windows
    start = np.append(w.start[kept][:60], [START + HOUR])
    end = np.append(w.end[kept][:60], [START + 3 * HOUR])
    start, end = np.append(start, w.start[kept][60:]), np.append(end, w.end[kept][60:])
    deltas = {"finished": np.append(np.append(w.deltas["finished"][:60], 3_600.0), w.deltas["finished"][180:])}
    holed = replace(whole, windows=CounterWindows(start, end, deltas))
    told = hourly_facts(evidence(holed))
    assert [(h.start - START) / HOUR for h in told] == [0, 3, 4]
    assert all(h.figures[PROMPT] is None for h in told if PROMPT in h.figures)


def test_windows_longer_than_an_hour_tell_no_hours_and_coarse_ones_are_spread() -> None:
    assert hourly_facts(evidence(engine(step=7_200.0, last=4.0))) == ()
    coarse = hourly_facts(evidence(engine(step=1_800.0)))
    assert [h.figures["itl_mean"] for h in coarse] == pytest.approx([0.02] * 3)
    assert "waiting_share" not in coarse[0].figures, "two scrapes are no share"


def test_only_what_is_not_known_yet_is_told() -> None:
    both = evidence(engine(), engine(seed=1))
    assert [h.start for h in hourly_facts(both, START + HOUR)] == [START + HOUR, START + 2 * HOUR]
    for all_of_them, late in zip(hourly_facts(both)[1:], hourly_facts(both, START + HOUR), strict=True):
        assert all_of_them.figures == pytest.approx(late.figures)
