from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact
from advisor.estimates import token_budget
from advisor.estimates.full_step import FullStep
from tests.unit.estimates.evidence import NOTHING, bounded, buckets, engine, flags, gauges, joint, log, sheet, windows

STEP = FullStep(base=0.010, per_sequence=20e-6, per_prompt_token=50e-6, windows=100)


def facts(evidence: Evidence, work: FullStep | str = "not fitted", **known: float) -> dict[str, Fact]:
    return token_budget.facts(evidence, work, sheet(**known))


def budgeted(prompt: int, output: int, budget: int = 2048) -> Evidence:
    return replace(NOTHING, joint=joint((prompt, output, 500)), flags=flags(max_num_batched_tokens=budget))


@pytest.mark.parametrize(
    ("prompt", "output", "hits", "ceiling"),
    [
        # code completion, measured in a simulated scheduler as 27.5: 2,048 x 28 / 2,076 = 27.6
        (2048, 28, 0.0, 27),
        # chat: 2,048 x 211 / 1,366 = 316.3
        (1155, 211, 0.0, 316),
        # nine of ten prompt tokens cached: 2,048 x 28 / (204.8 + 28) = 246.3
        (2048, 28, 0.9, 246),
        # a share above 1 is a miscount, not a negative prompt
        (2048, 28, 1.5, 2048),
        # less than one sequence on average is still one
        (200_000, 20, 0.0, 1),
    ],
)
def test_sequences_that_the_budget_admits(prompt: int, output: int, hits: float, ceiling: int) -> None:
    assert facts(budgeted(prompt, output), prefix_cache_hit_rate=hits)["budget_ceiling"].value == ceiling


def test_prefix_hits_that_are_not_known_are_said_to_be_assumed() -> None:
    assert (facts(budgeted(2048, 28))["budget_ceiling"].source or "").endswith("not known, none assumed")


def test_means_of_histograms_will_do() -> None:
    means = {"prompt_tokens": buckets([5000], [100, 0], 204_800.0), "output_tokens": buckets([50], [100, 0], 2_800.0)}
    seen = replace(NOTHING, engines=(engine(lengths=means),), flags=flags(max_num_batched_tokens=2048))
    assert facts(seen)["budget_ceiling"].value == 27


def test_what_never_decodes_has_no_such_ceiling() -> None:
    assert facts(budgeted(2048, 0))["budget_ceiling"].is_unknown


@pytest.mark.parametrize("unknown", [NOTHING, replace(NOTHING, flags=flags(max_num_batched_tokens=0))])
def test_without_a_budget(unknown: Evidence) -> None:
    out = facts(unknown, STEP)
    assert out["budget_ceiling"].unknown == out["prefill_share_of_budget"].unknown == token_budget.no_budget(NOTHING)
    assert token_budget.left_for_prompts(unknown, sheet(max_num_seqs=40)["max_num_seqs"]).is_unknown


def test_without_lengths() -> None:
    assert facts(replace(NOTHING, flags=flags(max_num_batched_tokens=2048)))["budget_ceiling"].is_unknown
    empty = replace(NOTHING, log=log(), flags=flags(max_num_batched_tokens=2048))
    assert facts(empty)["budget_ceiling"].is_unknown


@pytest.mark.parametrize(("seats", "left"), [(40, 2008), (60, 1988), (400, 1648)])
def test_what_is_left_for_prompts(seats: int, left: int) -> None:
    known = replace(NOTHING, flags=flags(max_num_batched_tokens=2048))
    assert token_budget.left_for_prompts(known, sheet(max_num_seqs=seats)["max_num_seqs"]).value == left


def test_seats_between_bounds_leave_nothing_known() -> None:
    known = replace(NOTHING, flags=flags(max_num_batched_tokens=2048))
    assert token_budget.left_for_prompts(known, bounded(10, 30)).is_unknown


def waiting(computed: float, *, queue: float = 1.0, admitted: float | None = None) -> Evidence:
    """Ten minutes at 24 decoding sequences; `computed` prompt tokens a second, `admitted` ones with cached ones."""
    one = {
        "itl_count": [24 * 500.0] * 10,
        "steps": [500.0] * 10,
        "prompt_tokens": [60 * (admitted or computed)] * 10,
        "prompt_tokens_computed": [60 * computed] * 10,
    }
    scraped = engine(gauges([24.0] * 40, queue), windows(one))
    return replace(NOTHING, engines=(scraped,), flags=flags(max_num_batched_tokens=2048))


# full steps: 2,024 prompt tokens in 10 + 24 x 0.02 + 2,024 x 0.05 = 111.68 ms are 18,123 a second
FULL = 2_024 / 0.11168


def test_the_share_of_the_budget_that_prompts_use() -> None:
    share = facts(waiting(FULL / 2), STEP)["prefill_share_of_budget"]
    assert (share.value, share.n) == pytest.approx((0.5, 10))
    assert facts(waiting(3 * FULL), STEP)["prefill_share_of_budget"].value == 1.0


def test_cached_prompt_tokens_take_no_budget() -> None:
    assert facts(waiting(FULL / 4, admitted=FULL), STEP)["prefill_share_of_budget"].value == pytest.approx(0.25)


def test_only_windows_in_which_requests_wait_count() -> None:
    assert facts(waiting(FULL, queue=0.0), STEP)["prefill_share_of_budget"].is_unknown
    assert facts(waiting(FULL, queue=float("nan")), STEP)["prefill_share_of_budget"].is_unknown


def test_the_share_needs_the_cost_of_a_prompt_token() -> None:
    assert facts(waiting(FULL))["prefill_share_of_budget"].unknown == "not fitted"


def test_an_empty_window_has_no_rate() -> None:
    seen = waiting(FULL / 2)
    w = seen.engines[0].windows
    squeezed = replace(w, end=np.where(np.arange(10) == 0, w.start, w.end))
    share = facts(replace(seen, engines=(replace(seen.engines[0], windows=squeezed),)), STEP)["prefill_share_of_budget"]
    assert (share.value, share.n) == pytest.approx((0.5, 9))
