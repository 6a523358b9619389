"""The share of requests that others' prompts make miss their time per token, against sums done by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

from advisor.domain.evidence import as_floats
from advisor.estimates import shared_steps
from advisor.estimates.full_step import FullStep
from advisor.estimates.shared_steps import SharedSteps, exceeded
from tests.unit.estimates.evidence import NOTHING, buckets, engine, flags, joint, log, sheet, windows

WORK = FullStep(0.020, 0.0, 1e-4, 100)
BUDGET = 2048
# prompts of 1,000 tokens take 0.1 s; ten gaps of 40 ms leave 10 x 20 ms = 2,000 prompt tokens
ALIKE = SharedSteps(np.array([1000.0]), np.array([10.0]), np.array([1.0]), WORK, BUDGET)
TPOT = 0.040


def test_the_tail_of_a_compound_poisson_sum() -> None:
    found = exceeded(np.array([1000.0]), np.array([1.0]), np.array([1.0, 2.0, 1.0]), np.array([2000.0, 2000.0, 500.0]))
    # three or more of one and of two expected: 1 - 2.5 / e, 1 - 5 / e^2; one or more of one: 1 - 1 / e
    assert found == pytest.approx([0.0803014, 0.3233236, 0.6321206], abs=1e-6)


def test_sums_of_unequal_prompts() -> None:
    # half are 100 tokens, half 2,500: above 2,400 is one of the long ones, or 25 short ones, which 1 expected hardly is
    found = exceeded(np.array([100.0, 2500.0]), np.array([0.5, 0.5]), np.array([1.0]), np.array([2400.0]))
    assert found == pytest.approx([1 - np.exp(-0.5)], abs=1e-6)


def test_far_more_than_the_limit_is_sure_to_exceed_it() -> None:
    assert exceeded(np.array([1000.0]), np.array([1.0]), np.array([500.0]), np.array([2000.0])) == pytest.approx([1.0])


def test_short_prompts_against_a_long_limit_are_neither_none_nor_doubled() -> None:
    # 1,000 and 600 prompts of 500 tokens on average: Poisson tails beyond 800 and beyond 510 of them
    found = exceeded(np.array([500.0]), np.array([1.0]), np.array([1000.0, 450.0]), np.array([400_000.0, 255_000.0]))
    assert found == pytest.approx([poisson.sf(800, 1000), poisson.sf(510, 450)], abs=0.03)


def test_with_all_seats_taken_a_prompt_comes_as_an_answer_ends() -> None:
    # 11 seats: 10 decode (a prompt takes one step in eleven), one prompt a step. One decoding sequence would meet
    # 0.1 a step over 10 steps, its own prompt's and less half a step: 1.05; 1 - (1 + 1.05 + 0.55125) / e^1.05
    assert ALIKE.missed_beside(1.1, TPOT) == pytest.approx(0.08972, abs=1e-4)


def test_requests_at_random() -> None:
    # 1/s: 90 % of the time no prompt, so 10 x 0.02 / 0.9 = 0.22 decode. A full step takes 0.2248 s; prompts count that
    # come in 0.4 - 0.1124 s and the 0.12 s of the own one: 0.4076 expected, 1 - (1 + 0.4076 + 0.0831) / e^0.4076
    assert ALIKE.missed_at(1.0, TPOT) == pytest.approx(0.00836, abs=2e-4)


def test_overload_slows_everybody() -> None:
    # ten prompts of 0.1 s a second leave no time to decode
    assert ALIKE.missed_at(10.0, TPOT) == 1.0


def test_a_step_slower_than_the_objective_slows_everybody() -> None:
    assert ALIKE.missed_beside(4, 0.019) == 1.0


def test_a_full_step_within_the_objective_slows_nobody() -> None:
    # 20 ms and 200 tokens of 0.1 ms are 40 ms at the most
    small = replace(ALIKE, budget=200)
    assert small.missed_beside(8, 0.0401) == 0.0
    assert small.missed_at(2.0, 0.0401) == 0.0


def test_one_token_has_no_time_to_miss() -> None:
    assert replace(ALIKE, gaps=np.array([0.0])).missed_at(1.0, TPOT) == 0.0


def test_several_tokens_a_gap_leave_more_time() -> None:
    # 5 gaps of 2 tokens: 40 ms a token are 80 ms a gap, the same as 5 gaps at 80 ms
    drafted = replace(ALIKE, gaps=np.array([5.0]), work=replace(WORK, tokens_per_gap=2.0))
    plain = replace(ALIKE, gaps=np.array([5.0]))
    assert drafted.missed_at(1.0, 0.040) == pytest.approx(plain.missed_at(1.0, 0.080))


def test_the_most_seats_within_the_objective() -> None:
    most = ALIKE.sequences_within(TPOT, 0.9, 100)
    assert ALIKE.missed_beside(most, TPOT) <= 0.1 < ALIKE.missed_beside(most + 1, TPOT)
    assert ALIKE.sequences_within(0.019, 0.9, 100) == 0
    assert ALIKE.sequences_within(10.0, 0.9, 100) == 100


KINDS = st.lists(st.tuples(st.floats(1, 50_000), st.floats(0, 2_000), st.floats(0.01, 1)), min_size=1, max_size=12)


@given(KINDS, st.floats(1, 200), st.floats(0.001, 30), st.floats(0.005, 1))
def test_a_share_is_a_share(rows: list[tuple[float, float, float]], seats: float, rate: float, tpot: float) -> None:
    prompt, gaps, share = (as_floats([row[k] for row in rows]) for k in range(3))
    shared = SharedSteps(prompt, gaps, share / share.sum(), FullStep(0.01, 1e-4, 5e-5, 100), BUDGET)
    assert 0 <= shared.missed_beside(seats, tpot) <= 1 + 1e-9
    assert 0 <= shared.missed_at(rate, tpot) <= 1 + 1e-9


@given(st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0.021, 0.2), st.floats(0.021, 0.2))
def test_more_load_and_tighter_objectives_never_help(rate: float, other: float, tpot: float, looser: float) -> None:
    (few, many), (tight, loose) = sorted((rate, other)), sorted((tpot, looser))
    assert ALIKE.missed_at(few, tight) <= ALIKE.missed_at(many, tight) + 1e-9
    assert ALIKE.missed_beside(few, tight) <= ALIKE.missed_beside(many, tight) + 1e-9
    assert ALIKE.missed_beside(few, loose) <= ALIKE.missed_beside(few, tight) + 1e-9


def test_from_a_log() -> None:
    seen = replace(NOTHING, log=log(joint((1000, 11, 3), (200, 1, 1))), flags=flags(max_num_batched_tokens=BUDGET))
    shared = shared_steps.of(seen, WORK, sheet(prefix_cache_hit_rate=0.25))
    assert shared is not None
    assert sorted(zip(shared.prompt, shared.gaps, shared.share, strict=True)) == [(150, 0, 0.25), (750, 10, 0.75)]


def test_requests_are_as_long_as_they_are_now() -> None:
    prompts = [20_000.0] * 30 + [40_000.0] * 10
    counted = {"finished": [20.0] * 40, "prompt_tokens": prompts, "generation_tokens": [2020.0] * 40}
    seen = replace(
        NOTHING,
        log=log(joint((500, 101, 1), (1500, 101, 1))),
        engines=(engine(counters=windows(counted)),),
        flags=flags(max_num_batched_tokens=BUDGET),
    )
    shared = shared_steps.of(seen, WORK, sheet())
    assert shared is not None
    # logged over all the time they are 1,000 on average; the last 200 that the engine counted are 2,000
    assert sorted(zip(shared.prompt, shared.gaps, strict=True)) == [(1000, 100), (3000, 100)]


def test_from_histograms_alone() -> None:
    # prompts: 50 up to 100 tokens, 50 up to 200, 130 on average; between 50 and 150 on average by the edges: 4/5 of the
    # way up in each bucket, and so halves at 7/10 and 9/10
    prompts = buckets([100.0, 200.0], [50, 50, 0], 13_000.0)
    read = engine(lengths={"prompt_tokens": prompts, "output_tokens": buckets([11.0], [100, 0], 1_100.0)})
    shared = shared_steps.of(
        replace(NOTHING, engines=(read,), flags=flags(max_num_batched_tokens=BUDGET)), WORK, sheet()
    )
    assert shared is not None
    assert sorted(set(shared.prompt.tolist())) == pytest.approx([70, 90, 170, 190])
    assert float(shared.share @ shared.prompt) == pytest.approx(130)
    assert float(shared.share @ shared.gaps) == pytest.approx(10)


@pytest.mark.parametrize("missing", ["work", "budget", "lengths"])
def test_what_is_missing(missing: str) -> None:
    seen = replace(
        NOTHING,
        log=None if missing == "lengths" else log(joint((1000, 11, 3))),
        flags={} if missing == "budget" else flags(max_num_batched_tokens=BUDGET),
    )
    assert shared_steps.of(seen, "not identified" if missing == "work" else WORK, sheet()) is None
