"""A canary against its siblings on the same hours: what differs, what does not, and what nobody can tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.canary import Canary, Difference, Reading
from advisor.domain.evidence import EngineSeries, Evidence, Slo, Window, as_floats
from advisor.domain.histogram import Floats
from advisor.outcomes.canary import compare
from advisor.outcomes.sides import divide
from tests.unit.outcomes.fleets import DAY, HOUR, NOW, replica


def evidence(*engines: EngineSeries, tpot: float | None = None) -> Evidence:
    found = divide(engines)
    return Evidence(
        name="chat",
        window=Window(NOW - 7 * DAY, NOW),
        slo=Slo(tpot_seconds=tpot),
        engines=found.engines,
        apart=found.apart,
        rollout=found.rollout,
    )


def compared(*engines: EngineSeries, tpot: float | None = None) -> Canary:
    (found,) = compare(evidence(*engines, tpot=tpot))
    return found


def reading(canary: Canary, metric: str) -> Reading:
    return next(r for r in canary.readings if r.metric == metric)


def wave(hours: int, mean: float, swing: float) -> Floats:
    """Day and night: what moves both sides alike."""
    return as_floats(mean + swing * np.sin(2 * np.pi * np.arange(hours) / 24))


def test_nobody_apart_is_nothing_to_compare() -> None:
    assert compare(evidence(replica("a", max_num_seqs=16), replica("b", max_num_seqs=16))) == ()


def test_who_what_and_since_when() -> None:
    found = compared(
        *(replica(name, hours=72, max_num_seqs=16) for name in "abc"), replica("d", hours=24.5, max_num_seqs=24)
    )
    assert found.instances == ("d",)
    assert found.differences == (Difference("max_num_seqs", 24, 16),)
    assert found.since == NOW - 24.5 * HOUR
    assert found.hours == 24  # the half hour in which it began is warming up


def test_the_day_cancels_out_and_a_small_difference_stands_out() -> None:
    """Both sides swing by 5 ms over the day; the canary is 1 ms slower all the time."""
    siblings = [replica(name, hours=48, itl=wave(48, 0.020, 0.005), max_num_seqs=16) for name in "abc"]
    found = reading(
        compared(*siblings, replica("d", hours=48, itl=wave(48, 0.021, 0.005), max_num_seqs=24)), "itl_mean"
    )
    assert found.outcome == "higher"
    assert found.canary == pytest.approx(0.021)
    assert found.siblings == pytest.approx(0.020)
    assert found.noise == pytest.approx(0.0004)  # 2 % of 20 ms, as nothing else is noisy


def test_within_the_spread_of_the_siblings_nothing_differs() -> None:
    """One sibling is 1.5 ms slower than the mean of the other two: so much is no news of a canary."""
    siblings = [replica(n, itl=gap, max_num_seqs=16) for n, gap in (("a", 0.020), ("b", 0.020), ("c", 0.0215))]
    found = reading(compared(*siblings, replica("d", itl=0.0215, max_num_seqs=24)), "itl_mean")
    assert found.outcome == "same"
    assert found.noise == pytest.approx(0.0015)
    assert found.siblings == pytest.approx(0.0205)


def test_hours_that_differ_wildly_tell_nothing() -> None:
    """Differences of +10, -8, +10, ... ms over 24 hours: mean 1 ms, s = 9.19 ms, t(23) = 2.069: 3.88 ms of noise."""
    noisy = 0.020 + np.tile([0.010, -0.008], 12)
    found = reading(
        compared(replica("a", hours=48, itl=0.020, max_num_seqs=16), replica("d", itl=noisy, max_num_seqs=24)),
        "itl_mean",
    )
    assert found.outcome == "same"
    assert found.noise == pytest.approx(2.0687 * 0.0091935 / np.sqrt(24), rel=1e-3)


def test_hours_that_hang_together_count_for_less() -> None:
    """Half a day 4 ms above, half a day 2 ms below: two events, not 24. Lag-1 autocorrelation 0.958 - 1/24 or so."""
    halves = 0.020 + np.repeat([0.004, -0.002], 12)
    found = reading(
        compared(replica("a", hours=48, itl=0.020, max_num_seqs=16), replica("d", itl=halves, max_num_seqs=24)),
        "itl_mean",
    )
    # r = (22 - 1) / 24 = 0.875, n' = 24 x 0.125 / 1.875 = 1.6, taken as 2: t(1) = 12.706, s = 3.064 ms
    assert found.noise == pytest.approx(12.706 * 0.0030645 / np.sqrt(2), rel=1e-3)
    assert found.outcome == "same"


def test_a_few_hours_are_too_few() -> None:
    found = compared(
        replica("a", max_num_seqs=16), replica("b", max_num_seqs=16), replica("d", hours=5, max_num_seqs=24)
    )
    assert found.hours == 5
    assert {r.outcome for r in found.readings} == {"unknown"}
    assert reading(found, "itl_mean").why == "5 common hours tell it, 6 are needed"


def test_every_figure_of_the_comparison() -> None:
    """By hand: 1 and 1.5 requests/s; 75 % within 25 ms, the edge under the target of 30 ms; a fifth of scrapes wait."""
    siblings = [replica(name, max_num_seqs=16, waiting=1.0) for name in "ab"]
    found = compared(*siblings, replica("d", rate=1.5, max_num_seqs=24), tpot=0.030)
    sides = {r.metric: [r.canary, r.siblings] for r in found.readings}
    outcomes = {r.metric: r.outcome for r in found.readings}
    assert sides == {
        "requests_per_second_per_replica": pytest.approx([1.5, 1.0]),
        "running_mean": pytest.approx([10.0, 10.0]),
        "waiting_share": pytest.approx([0.0, 1.0]),
        "ttft_mean": pytest.approx([0.2, 0.2]),
        "preempted_share": pytest.approx([0.0, 0.0]),
        "slo_attainment_tpot": pytest.approx([0.75, 0.75]),
        "itl_mean": pytest.approx([0.01, 0.01]),
    }
    assert {n: o for n, o in outcomes.items() if o != "same"} == {
        "requests_per_second_per_replica": "higher",
        "waiting_share": "lower",
    }
    assert "slo_attainment_tpot" not in {r.metric for r in compared(*siblings, replica("d", max_num_seqs=24)).readings}


def test_ranks_of_a_replica_add_up() -> None:
    """Two ranks of 1 request/s each are 2 requests/s of one replica; their gaps are averaged, not added."""
    siblings = [replica("a", rank=rank, max_num_seqs=16) for rank in "01"]
    found = compared(*siblings, *(replica("d", hours=9, rank=rank, max_num_seqs=24) for rank in "01"))
    assert reading(found, "requests_per_second_per_replica").canary == pytest.approx(2.0)
    assert reading(found, "itl_mean").canary == pytest.approx(0.010)


def test_what_one_side_does_not_expose_is_said() -> None:
    bare = replica("d", hours=20, max_num_seqs=24)
    bare = replace(bare, windows=replace(bare.windows, deltas={"finished": bare.windows.deltas["finished"]}))
    found = compared(replica("a", max_num_seqs=16), replica("b", max_num_seqs=16), bare)
    assert reading(found, "itl_mean").why == "no metric of the canary tells it"
    assert reading(found, "requests_per_second_per_replica").outcome == "same"


def test_windows_longer_than_an_hour_belong_to_no_hour() -> None:
    coarse = replica("d", max_num_seqs=24)
    every = slice(None, None, 24)  # two hours
    windows = replace(
        coarse.windows,
        start=coarse.windows.start[every],
        end=coarse.windows.start[every] + 7_200,
        deltas={name: 24 * values[every] for name, values in coarse.windows.deltas.items()},
    )
    found = compared(replica("a", hours=48, max_num_seqs=16), replace(coarse, windows=windows))
    assert reading(found, "itl_mean").why == "0 common hours tell it, 6 are needed"


def test_a_rollout_is_no_canary() -> None:
    assert compare(evidence(replica("a", max_num_seqs=16), replica("d", hours=0.5, max_num_seqs=24))) == ()


def test_two_canaries_are_two_comparisons() -> None:
    found = compare(
        evidence(
            *(replica(name, hours=48, max_num_seqs=16) for name in "abc"),
            replica("d", max_num_seqs=24),
            replica("e", max_num_seqs=32),
        )
    )
    assert [c.differences[0].canary for c in found] == [24, 32]


def test_equal_settings_are_seldom_called_different() -> None:
    """50 fleets of equal replicas whose gaps scatter from hour to hour: about 5 % may differ by accident."""
    random, false = np.random.default_rng(7), 0
    for _ in range(50):
        siblings = [replica(n, itl=0.020 + random.normal(0, 0.004, 24), max_num_seqs=16) for n in "abc"]
        apart = replica("d", itl=0.020 + random.normal(0, 0.004, 24), max_num_seqs=24)
        false += reading(compared(*siblings, apart), "itl_mean").outcome != "same"
    assert false <= 7  # P(more than 7 of 50 at 5 %) is under 1 %; the siblings' spread makes it rarer
