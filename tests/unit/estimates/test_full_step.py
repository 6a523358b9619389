from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence
from advisor.estimates import full_step
from advisor.estimates.full_step import FullStep
from advisor.estimates.step_time import StepTime
from tests.unit.estimates.evidence import NOTHING, engine, flags, windows

LINE = StepTime(0.010, 0.3e-3, 50e-6, 20e-6, 0.9, 0.001, 100, 24.0)
WORK = FullStep(base=0.013, per_sequence=0.0, per_prompt_token=0.11e-3, windows=100)


def test_a_full_step_lies_between_all_overlap_and_none() -> None:
    # 486 prompt tokens x 0.11 ms = 53.46 ms; with 13 ms of decoding 66.46 ms, the middle is 59.96 ms
    assert WORK.bounds(26, 512) == pytest.approx((0.05346, 0.06646))
    assert WORK.middle(26, 512) == pytest.approx(0.05996)
    # with nothing left for prompts a step decodes
    assert WORK.bounds(26, 16) == (0.013, 0.013)


def test_what_a_full_step_is_spent_on() -> None:
    # 53.46 of 66.46 ms; 486 tokens in 66.46 ms are 7,313 a second
    assert WORK.efficiency(26, 512) == pytest.approx(0.804, abs=5e-4)
    assert WORK.prompt_rate(26, 512) == pytest.approx(7313, abs=1)
    assert WORK.prompt_rate(26, 26) == 0


def test_the_parts_come_from_the_split_of_the_step_time() -> None:
    assert full_step.identify(NOTHING, LINE) == FullStep(0.010, 20e-6, 50e-6, 100)


def test_parts_that_moved_together_are_not_told_apart() -> None:
    merged = replace(LINE, per_prompt_token=None, per_decoding_sequence=None)
    assert "moved together" in str(full_step.identify(NOTHING, merged))


def test_a_gap_over_pipeline_stages_is_no_step() -> None:
    staged = replace(NOTHING, flags=flags(pipeline_parallel_size=4))
    assert "4 pipeline stages" in str(full_step.identify(staged, LINE))


def pinned(*, prompts_vary: bool = True, batch: float = 16.0) -> Evidence:
    """An engine at its cap: 22 ms to decode, 0.2 ms a prompt token, 60 to 140 of them a step."""
    prompt = np.linspace(60, 140, 80) if prompts_vary else np.full(80, 90.0)
    itl = 0.022 + 0.2e-3 * prompt
    counters = {"steps": np.full(80, 400.0), "itl_count": np.full(80, 400 * batch), "itl_sum": itl * 400 * batch}
    counters["prompt_tokens_computed"] = 400 * prompt
    read = windows({name: values.tolist() for name, values in counters.items()})
    return replace(NOTHING, engines=(engine(counters=read),))


def test_a_pinned_cap_still_tells_what_a_prompt_token_costs() -> None:
    work = full_step.identify(pinned(), "concurrency hardly varied (16.0 to 16.0)")
    assert isinstance(work, FullStep)
    assert (work.base, work.per_prompt_token, work.windows) == pytest.approx((0.022, 0.2e-3, 80))


def test_nothing_moved_at_all() -> None:
    assert "hardly varied" in str(full_step.identify(pinned(prompts_vary=False), "concurrency hardly varied"))
    assert "too little" in str(full_step.identify(NOTHING, "too little"))


@given(
    base=st.floats(1e-4, 1.0),
    per_token=st.floats(1e-7, 1e-2),
    sequences=st.floats(0, 512),
    budgets=st.tuples(st.integers(1, 10**5), st.integers(1, 10**5)),
)
def test_a_larger_budget_never_takes_less_time(
    base: float, per_token: float, sequences: float, budgets: tuple[int, int]
) -> None:
    work, (small, large) = FullStep(base, 1e-5, per_token, 50), sorted(budgets)
    assert work.middle(sequences, small) <= work.middle(sequences, large)
    assert work.efficiency(sequences, small) <= work.efficiency(sequences, large) * (1 + 1e-12)
    low, high = work.bounds(sequences, large)
    assert 0 < low <= high <= 2 * low * (1 + 1e-12)
