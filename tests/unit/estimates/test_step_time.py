from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import Evidence
from advisor.domain.histogram import Floats
from advisor.estimates import step_time, step_windows
from advisor.estimates.step_time import StepTime
from tests.unit.estimates.evidence import NOTHING, bounded, engine, flags, sheet, windows

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


def test_noise_leaves_the_mix_line() -> None:
    fit = step_time.fit(of(counters(noise=0.05)))
    assert isinstance(fit, StepTime)
    assert fit.itl(20) == pytest.approx(A + (B + P * RATIO) * 20, rel=0.05)
    assert fit.residual_seconds > 0


def test_the_mix_is_that_of_all_windows() -> None:
    """Windows full of long prompts have too few steps to fit, and the prompts are there all the same."""
    deltas = counters(prompts_vary=0.5)
    few = {name: np.full(20, value) for name, value in {"steps": 40.0, "itl_count": 400.0, "preemptions": 0.0}.items()}
    few |= {"itl_sum": np.full(20, 400 * 0.5), "prompt_tokens_computed": np.full(20, 40 * 9_800.0)}
    both = {name: np.concatenate([values, few[name]]) for name, values in deltas.items()}
    fit = step_time.fit(of(both))
    assert isinstance(fit, StepTime)
    assert fit.windows == 200
    mix = both["prompt_tokens_computed"].sum() / both["itl_count"].sum()
    assert mix > 1.2 * RATIO
    assert fit.per_sequence == pytest.approx(B + P * mix, rel=1e-2)


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


def test_the_mix_line_as_facts() -> None:
    facts = step_time.facts(LINE)
    assert (facts["itl_base"].value, facts["itl_per_sequence"].value, facts["itl_base"].n) == (0.010, 0.3e-3, 100)
    assert "few windows" in (step_time.facts("few windows")["itl_base"].unknown or "")


def test_a_gap_over_pipeline_stages_is_no_step() -> None:
    staged = replace(of(counters()), flags=flags(pipeline_parallel_size=2))
    assert "2 pipeline stages" in str(step_time.fit(staged))


@pytest.mark.parametrize(("slower", "alike"), [(1.2, True), (1.5, False)])
def test_engines_of_unequal_speed_are_not_one_line(slower: float, alike: bool) -> None:
    one, other = counters(), counters()
    other["itl_sum"] = slower * other["itl_sum"]
    both = replace(NOTHING, engines=(*of(one).engines, replace(of(other).engines[0], instance="b:8000")))
    fit = step_time.fit(both)
    assert isinstance(fit, StepTime) == alike
    if not alike:
        assert "engines differ at" in str(fit)
        assert "on b:8000 0" in str(fit)


def speculating(accepted: float, *, jump: float = 1.0) -> dict[str, Floats]:
    """Gaps that carry so many tokens, and so many times that in the last tenth of the windows."""
    deltas = counters()
    times = np.where(np.arange(200) < 180, 1.0, jump)
    return deltas | {
        "ttft_count": np.full(200, 50.0),
        "generation_tokens": accepted * times * (deltas["itl_count"] + 50),
    }


def test_several_tokens_a_gap_make_a_token_faster() -> None:
    fit = step_time.fit(of(speculating(2.5)))
    assert isinstance(fit, StepTime)
    assert fit.tokens_per_gap == pytest.approx(2.5)
    # 17.1 ms a gap at 24 sequences are 6.84 ms a token
    assert fit.sequences_within(fit.itl(24) / 2.5) == pytest.approx(24)


def test_windows_of_another_acceptance_are_left_out() -> None:
    fit = step_time.fit(of(speculating(2.5, jump=1.5)))
    assert isinstance(fit, StepTime)
    assert (fit.windows, fit.tokens_per_gap) == pytest.approx((180, 2.5))


def test_only_windows_with_requests_as_long_as_now() -> None:
    deltas = counters()
    late = np.arange(200) >= 150
    # the last quarter has contexts ten times as long and steps 3 ms longer
    deltas["itl_sum"] = deltas["itl_sum"] + np.where(late, 0.003 * deltas["itl_count"], 0.0)
    deltas |= {"finished": np.full(200, 20.0), "generation_tokens": np.full(200, 4000.0)}
    deltas["prompt_tokens"] = np.where(late, 200_000.0, 20_000.0)
    fit = step_time.fit(of(deltas))
    assert isinstance(fit, StepTime)
    assert (fit.windows, fit.base) == pytest.approx((50, A + 0.003), rel=1e-3)


def lengthened(place: int, *, by: float = 2.0) -> dict[str, Floats]:
    """200 windows whose last so many hold requests with longer prompts, and so more prompt work beside each token."""
    deltas = counters(prompts_vary=0.0)
    longer = np.where(np.arange(200) >= 200 - place, by, 1.0)
    batch = deltas["itl_count"] / deltas["steps"]
    prompt = RATIO * longer * batch
    itl = A + B * batch + P * prompt
    return deltas | {
        "itl_sum": itl * deltas["itl_count"],
        "prompt_tokens_computed": prompt * deltas["steps"],
        "finished": np.full(200, 20.0),
        "prompt_tokens": 20 * 1160 * longer,
        "generation_tokens": np.full(200, 20 * 211.0),
    }


def test_the_line_is_that_of_the_last_hour_where_prompts_doubled_in_it() -> None:
    """The mean of an eighth of the time, 25 windows, would be 1.8 times as long."""
    fit = step_time.fit(of(lengthened(40)))
    assert isinstance(fit, StepTime)
    # 0.02 + 2 x 0.05 x 1,160 / 211 = 0.570 ms a sequence
    assert (fit.windows, fit.per_sequence) == pytest.approx((40, 0.57e-3), rel=1e-2)
    assert step_windows.prompt_tokens_per_gap(of(lengthened(40))) == pytest.approx(2 * RATIO)


def test_a_change_that_leaves_too_few_windows_is_named() -> None:
    assert refusal(lengthened(20)) == (
        "20 usable windows since requests changed 20 min ago (2,320 + 211 tokens now, 1,276 + 211 over all); "
        "30 are needed"
    )


def test_windows_are_joined_until_they_hold_ten_requests() -> None:
    # forty loads that last five windows of two requests each
    lasting = {name: np.repeat(values, 5) for name, values in counters(40).items()}
    fit = step_time.fit(of(lasting | {"finished": np.full(200, 2.0)}))
    assert isinstance(fit, StepTime)
    assert (fit.windows, fit.base) == pytest.approx((40, A), rel=1e-3)
    # one in each: ten joined would leave 20 windows, six leave 33
    points = step_windows.gather(of(lasting | {"finished": np.full(200, 1.0)}))
    assert points is not None
    assert points.batch.size == 33


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
