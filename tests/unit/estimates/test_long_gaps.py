"""Steps full of prompts, told by the longest gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import Evidence, Slo
from advisor.domain.fact import Fact, measured, unknown
from advisor.estimates.long_gaps import budget_within_gap, budget_within_tpot, by_prompts
from tests.unit.estimates.evidence import NOTHING, bounded, buckets, engine, flags

# 97 % of the gaps within 25 ms, 3 % between 400 and 500 ms
GAPS = buckets([0.025, 0.4, 0.5], [97_000, 0, 3_000, 0])


def seen(budget: int | None = 4096, tpot: float | None = 0.1) -> Evidence:
    known = {} if budget is None else flags(max_num_batched_tokens=budget)
    return replace(NOTHING, engines=(engine(latencies={"itl": GAPS}),), flags=known, slo=Slo(tpot_seconds=tpot))


MEAN = {"itl_mean": measured(0.02, source="test")}


def test_what_the_mean_gap_takes_stays() -> None:
    # 4,096 x (0.1 - 0.02) / (0.5 - 0.02) = 682.7, in whole 64 tokens
    told = budget_within_tpot(seen(), MEAN)
    assert (told.value, told.source) == (640, "0.99 of the gaps take 0.5 s at most")


@pytest.mark.parametrize(
    ("base", "per_token", "budget", "objective"),
    [(0.012, 0.00011, 2048, 0.04), (0.012, 0.00005, 8192, 0.05), (0.02, 0.00002, 8192, 0.05)],
)
def test_a_full_step_of_the_budget_told_fits(base: float, per_token: float, budget: int, objective: float) -> None:
    edges = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0]
    full, counts = base + per_token * budget, [0.0] * 14
    counts[int(np.searchsorted(edges, base))], counts[int(np.searchsorted(edges, full))] = 97_000, 3_000
    evidence = replace(NOTHING, engines=(engine(latencies={"itl": buckets(edges, counts)}),))
    mean = {"itl_mean": measured(0.97 * base + 0.03 * full, source="test")}
    told = budget_within_gap(evidence, mean, budget, objective, 0.99)
    assert told.number is not None
    assert base + per_token * told.number <= objective


@pytest.mark.parametrize(
    ("mean", "objective", "why"),
    [
        (0.12, 0.2, "a gap takes 120 ms in the mean, more than half of the objective: not prompts alone"),
        (0.02, 0.5, "0.99 of the gaps take 0.5 s at most: no step is too long"),
        (0.45, 0.2, "needs the time of a full step, or a histogram with edges around 0.99 of the gaps"),
    ],
)
def test_where_no_budget_can_be_told(mean: float, objective: float, why: str) -> None:
    known = {"itl_mean": measured(mean, source="test")}
    assert budget_within_gap(seen(), known, 4096, objective, 0.99).unknown == why


@pytest.mark.parametrize("evidence", [seen(budget=None), seen(tpot=None), NOTHING])
def test_what_is_missing_leaves_it_unknown(evidence: Evidence) -> None:
    assert budget_within_tpot(evidence, MEAN).is_unknown
    assert budget_within_gap(NOTHING, MEAN, 4096, 0.2, 0.99).is_unknown


def test_a_gap_of_several_drafted_tokens_is_no_time_per_token() -> None:
    drafting = replace(
        seen(), flags=flags(max_num_batched_tokens=4096, speculative_config='{"num_speculative_tokens": 3}')
    )
    assert "several tokens" in (budget_within_tpot(drafting, MEAN).unknown or "")
    assert by_prompts(drafting, 0.1, bounded(1, 2)) is None


@pytest.mark.parametrize(
    ("ceiling", "tpot", "prompts"),
    [
        (bounded(1, 2), 0.1, True),  # 0.4 s are four times 100 ms
        (bounded(1, 2), 0.15, False),  # not three times 150 ms
        (bounded(16, 24), 0.1, False),  # a ceiling that concurrency makes
        (bounded(2, None), 0.1, False),  # never seen failing
        (unknown("not measured"), 0.1, False),
    ],
)
def test_a_ceiling_of_one_or_two_beside_long_gaps_is_no_ceiling(ceiling: Fact, tpot: float, prompts: bool) -> None:
    why = by_prompts(seen(), tpot, ceiling)
    assert (why is not None) is prompts
    if why:
        assert why == (
            "100 ms hold only up to 2 at once, and one gap in a thousand takes 400 ms or more: steps full of prompts, "
            "not a matter of concurrency"
        )
