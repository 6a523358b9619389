"""Steps full of prompts, told by the longest gaps."""

from __future__ import annotations

from dataclasses import replace

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


def test_a_budget_in_proportion_to_the_longest_gaps() -> None:
    # 4,096 x 0.1 / 0.5 = 819 and 4,096 x 0.1 / 0.4 = 1,024, in whole 64 tokens
    told = budget_within_tpot(seen())
    assert (told.value, told.low, told.high) == (None, 768, 1024)


def test_what_the_mean_gap_takes_stays() -> None:
    # 4,096 x (0.2 - 0.02) / (0.5 - 0.02) = 1,536
    told = budget_within_gap(seen(), {"itl_mean": measured(0.02, source="test")}, 4096, 0.2)
    assert told.value == 1536
    assert told.source == "one gap in a hundred takes up to 0.5 s"


def test_where_the_mean_gap_takes_half_of_the_objective_it_is_concurrency() -> None:
    told = budget_within_gap(seen(), {"itl_mean": measured(0.12, source="test")}, 4096, 0.2)
    assert told.unknown == "a gap takes 120 ms in the mean, more than half of the objective: not prompts alone"


@pytest.mark.parametrize("known", [{"itl_mean": unknown("no histogram")}, {"itl_mean": measured(0.02, source="test")}])
def test_without_gaps_no_budget_is_told(known: dict[str, Fact]) -> None:
    assert budget_within_gap(NOTHING, known, 4096, 0.2).is_unknown


@pytest.mark.parametrize("evidence", [seen(budget=None), seen(tpot=None), NOTHING])
def test_what_is_missing_leaves_it_unknown(evidence: Evidence) -> None:
    assert budget_within_tpot(evidence).is_unknown


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
