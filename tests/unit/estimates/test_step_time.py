from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import Evidence
from advisor.domain.histogram import Floats
from advisor.estimates import step_time
from advisor.estimates.step_time import StepTime
from tests.unit.estimates.evidence import NOTHING, bounded, engine, sheet, windows

A, B, P = 0.010, 20e-6, 50e-6
RATIO = 1160 / 211


def counters(n: int = 200, *, prompts_vary: float = 0.5, noise: float = 0.0, steps: float = 1e3) -> dict[str, Floats]:
    """Windows of an engine whose step takes A + B x decoding + P x prompt tokens computed."""
    random = np.random.default_rng(7)
    batch = random.uniform(4, 24, n)
    prompt = RATIO * batch * np.maximum(1 + prompts_vary * random.standard_normal(n), 0)
    itl = (A + B * batch + P * prompt) * (1 + noise * random.standard_normal(n))
    return {
        "steps": np.full(n, steps),
        "itl_count": batch * steps,
        "itl_sum": itl * batch * steps,
        "prompt_tokens_computed": prompt * steps,
        "preemptions": np.zeros(n),
    }


def of(deltas: Mapping[str, Floats], *, lifetime: bool = False) -> Evidence:
    read = windows({name: values.tolist() for name, values in deltas.items()})
    return replace(NOTHING, engines=(engine(counters=read, lifetime=lifetime),))


def test_known_coefficients_are_found_again() -> None:
    fit = step_time.fit(of(counters()))
    assert isinstance(fit, StepTime)
    assert fit.base == pytest.approx(A, rel=1e-3)
    assert fit.per_prompt_token == pytest.approx(P, rel=1e-3)
    assert fit.per_decoding_sequence == pytest.approx(B, rel=1e-2)
    # the mix line: 0.02 + 0.05 x 1,160 / 211 = 0.295 ms a sequence, so 24 take 17.1 ms
    assert fit.per_sequence == pytest.approx(0.295e-3, rel=0.05)
    assert fit.itl(24) == pytest.approx(0.0171, rel=0.03)
    assert fit.sequences_within(fit.itl(24)) == pytest.approx(24)
    assert (fit.windows, fit.r2) == pytest.approx((200, 1.0))


def test_a_full_step_decodes_and_fills_up_with_prompts() -> None:
    fit = step_time.fit(of(counters()))
    assert isinstance(fit, StepTime)
    # 10 + 24 x 0.02 + (2,048 - 24) x 0.05 = 111.68 ms
    assert fit.full_step(24, 2_048) == pytest.approx(0.11168, rel=1e-3)
    assert fit.full_step(24, 16) == pytest.approx(A + 24 * B, rel=1e-2)


def test_noise_leaves_the_mix_line() -> None:
    fit = step_time.fit(of(counters(noise=0.05)))
    assert isinstance(fit, StepTime)
    assert fit.itl(20) == pytest.approx(A + (B + P * RATIO) * 20, rel=0.05)
    assert fit.residual_seconds > 0


def test_prompts_in_step_with_decoding_leave_only_the_line() -> None:
    fit = step_time.fit(of(counters(prompts_vary=0.0)))
    assert isinstance(fit, StepTime)
    assert fit.per_prompt_token is None
    assert fit.per_decoding_sequence is None
    assert fit.per_sequence == pytest.approx(B + P * RATIO, rel=1e-3)


def test_windows_with_a_preemption_are_left_out() -> None:
    deltas = counters()
    slow = np.arange(200) % 2 == 0
    deltas["itl_sum"] = np.where(slow, 3 * deltas["itl_sum"], deltas["itl_sum"])
    deltas["preemptions"] = slow.astype(float)
    fit = step_time.fit(of(deltas))
    assert isinstance(fit, StepTime)
    assert (fit.windows, fit.base) == pytest.approx((100, A), rel=1e-3)


def test_windows_without_a_reading_are_left_out() -> None:
    deltas = counters()
    deltas["itl_sum"] = np.where(np.arange(200) < 150, deltas["itl_sum"], np.nan)
    fit = step_time.fit(of(deltas))
    assert isinstance(fit, StepTime)
    assert fit.windows == 150


def test_a_stall_is_no_step() -> None:
    deltas = counters()
    deltas["itl_sum"] = np.where(np.arange(200) < 5, 50 * deltas["itl_sum"], deltas["itl_sum"])
    fit = step_time.fit(of(deltas))
    assert isinstance(fit, StepTime)
    assert (fit.windows, fit.base) == pytest.approx((195, A), rel=1e-3)


def refusal(deltas: Mapping[str, Floats], *, lifetime: bool = False) -> str:
    fit = step_time.fit(of(deltas, lifetime=lifetime))
    assert isinstance(fit, str)
    return fit


def test_too_few_windows() -> None:
    assert refusal(counters(29)) == "29 usable windows; 30 are needed"
    assert refusal(counters(steps=49.0)) == "0 usable windows; 30 are needed"


def test_no_spread() -> None:
    deltas = counters()
    deltas["itl_count"] = np.full(200, 16_000.0)
    assert "concurrency hardly varied (16.0 to 16.0)" in refusal(deltas)


def test_noise_alone() -> None:
    deltas = counters(prompts_vary=0.0)
    random = np.random.default_rng(3)
    deltas["itl_sum"] = deltas["itl_count"] * random.uniform(0.01, 0.04, 200)
    assert "of the variance; 60% are needed" in refusal(deltas)


def test_equal_gaps() -> None:
    deltas = counters(prompts_vary=0.0)
    deltas["itl_sum"] = deltas["itl_count"] * 0.02
    assert "explains 0% of the variance" in refusal(deltas)


def test_a_gap_that_shrinks_with_concurrency_is_no_step_time() -> None:
    deltas = counters(prompts_vary=0.0)
    batch = deltas["itl_count"] / deltas["steps"]
    deltas["itl_sum"] = deltas["itl_count"] * (0.05 - 0.001 * batch)
    assert isinstance(step_time.fit(of(deltas)), str)


def test_a_line_through_the_origin_is_a_bent_curve() -> None:
    deltas = counters(prompts_vary=0.0)
    batch = deltas["itl_count"] / deltas["steps"]
    deltas["itl_sum"] = deltas["itl_count"] * 5e-5 * batch**2
    assert "in proportion to concurrency" in refusal(deltas)


@pytest.mark.parametrize("missing", ["itl_sum", "itl_count", "steps"])
def test_a_counter_that_is_missing(missing: str) -> None:
    deltas = counters()
    del deltas[missing]
    assert refusal(deltas).startswith("no windows of engine counters")


def test_one_scrape_since_the_start_is_no_window() -> None:
    assert refusal(counters(), lifetime=True).startswith("no windows of engine counters")


def test_an_engine_that_left_adds_nothing() -> None:
    both = replace(NOTHING, engines=(*of(counters()).engines, engine(name="1")))
    assert step_time.fit(both) == step_time.fit(of(counters()))
    assert isinstance(step_time.fit(NOTHING), str)


LINE = StepTime(0.010, 0.3e-3, None, None, 0.9, 0.001, 100, 24.0)


def test_the_gap_with_every_seat_taken() -> None:
    gap = step_time.predicted_gap(LINE, sheet(next_max_num_seqs=36))
    # 10 + 0.3 x 36 = 20.8 ms, twice the residual on either side
    assert (gap.value, gap.low, gap.high) == pytest.approx((0.0208, 0.0188, 0.0228))


def test_no_gap_is_predicted_beyond_twice_what_was_seen() -> None:
    assert "beyond 2x the 24.0 observed" in (step_time.predicted_gap(LINE, sheet(next_max_num_seqs=49)).unknown or "")
    assert not step_time.predicted_gap(LINE, sheet(next_max_num_seqs=48)).is_unknown
    assert step_time.predicted_gap(LINE, sheet(next_max_num_seqs=bounded(1, None))).is_unknown
    assert step_time.predicted_gap("few windows", sheet(next_max_num_seqs=8)).is_unknown
