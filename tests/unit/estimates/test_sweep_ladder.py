from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, FactSheet, measured
from advisor.domain.histogram import Buckets, JointCounts
from advisor.estimates.sweep_ladder import Ladder, ladder
from tests.unit.estimates.evidence import NOTHING, engine, flags

JOINT = JointCounts.of([100, 400, 3000], [50, 200, 900], [900, 90, 10])
KNOWN = replace(NOTHING, joint=JOINT)


def planned(evidence: Evidence = KNOWN, **facts: Fact) -> Ladder:
    steps = ladder(evidence, FactSheet(facts))
    assert isinstance(steps, Ladder)
    return steps


def levels(steps: Ladder) -> list[int]:
    return [level.concurrency for level in steps.levels]


def at(value: float) -> Fact:
    return measured(value, source="")


@pytest.mark.parametrize(
    ("ceiling", "expected"),
    [
        # from half of what passes to half beyond what fails, at equal ratios: 12 to 72, each 1.43 times the one before
        (measured(24, low=24, high=48, source=""), [12, 17, 25, 35, 50, 72]),
        # never seen failing: on to four times
        (measured(None, low=30, source=""), [20, 29, 41, 59, 84, 120]),
    ],
)
def test_the_levels_bracket_the_ceiling(ceiling: Fact, expected: list[int]) -> None:
    assert levels(planned(latency_ceiling=ceiling)) == expected


def test_what_fails_from_the_start_is_measured_downwards() -> None:
    assert levels(planned(latency_ceiling=measured(None, low=0, high=32, source=""))) == [2, 3, 6, 11, 18, 32]


def test_without_a_ceiling_the_levels_surround_what_runs() -> None:
    found = levels(planned(running_p95=at(16)))
    assert (found[0], found[-1]) == (4, 64)
    assert levels(planned(running_p95=at(16), memory_ceiling_expected=at(40)))[-1] == 40


def test_nothing_observed_starts_from_the_cap() -> None:
    steps = planned(replace(KNOWN, flags=flags(max_num_seqs=64)))
    assert (levels(steps)[0], levels(steps)[-1], steps.seats) == (4, 128, 128)


def test_engines_behind_one_address_are_all_kept_busy() -> None:
    one = planned(running_p95=at(16))
    four = planned(replace(KNOWN, flags=flags(data_parallel_size=4)), running_p95=at(16))
    assert levels(four) == [4 * level for level in levels(one)]


def test_every_level_has_the_tail_and_enough_requests() -> None:
    for level in planned(running_p95=at(16)).levels:
        assert level.prompt.size == max(200, 10 * level.concurrency)
        # 1 % of requests are 3,000 tokens long: two of 200
        assert (level.prompt == 3000).sum() == pytest.approx(0.01 * level.prompt.size, abs=1)
        # prompt and output stay together
        assert {*zip(level.prompt.tolist(), level.output.tolist(), strict=True)} <= {(100, 50), (400, 200), (3000, 900)}


def test_lengths_stay_within_the_limit() -> None:
    steps = planned(replace(KNOWN, flags=flags(max_model_len=2048)), running_p95=at(16))
    assert all((level.prompt + level.output <= 2048 - 8).all() for level in steps.levels)


def test_histograms_will_do_where_there_is_no_log() -> None:
    lengths = {
        "prompt_tokens": Buckets(np.array([100.0, 1000.0]), np.array([500.0, 500.0, 0.0])),
        "output_tokens": Buckets(np.array([50.0]), np.array([900.0, 100.0])),
    }
    steps = planned(replace(NOTHING, engines=(replace(engine(), lengths=lengths),)), running_p95=at(16))
    prompts = steps.levels[-1].prompt
    assert "drawn apart" in steps.lengths
    # half of them below 100, the mean of the others (100 + 1,000) / 2
    assert (prompts <= 100).mean() == pytest.approx(0.5, abs=0.02)
    assert prompts[prompts > 100].mean() == pytest.approx(550, rel=0.1)
    assert steps.levels[-1].output.max() == 50


def test_without_lengths_it_says_what_is_missing() -> None:
    assert "--logs" in str(ladder(NOTHING, FactSheet({})))


@given(
    st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 50_000), st.integers(1, 50)), min_size=1, max_size=5),
    st.fixed_dictionaries(
        {}, optional={"max_num_seqs": st.integers(1, 2000), "max_model_len": st.integers(16, 200_000)}
    ),
    st.none() | st.floats(0, 5000),
    st.none() | st.floats(0, 5000),
)
def test_any_deployment_has_a_sweep(
    rows: list[tuple[int, int, int]], known: dict[str, Any], low: float | None, high: float | None
) -> None:
    joint = JointCounts.of(*zip(*rows, strict=True))
    bounds = [bound for bound in (low, high) if bound is not None]
    facts = {"latency_ceiling": measured(None, low=min(bounds), high=high and max(bounds), source="")} if bounds else {}
    for level in planned(replace(NOTHING, joint=joint, flags=flags(**known)), **facts).levels:
        assert level.concurrency >= 1
        assert level.prompt.size >= level.concurrency
        assert level.prompt.min() >= 1
        assert level.output.min() >= 1
        assert "max_model_len" not in known or (level.prompt + level.output).max() < known["max_model_len"]
