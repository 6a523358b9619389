"""What the longest gaps between tokens say where nothing else tells the time of a step: prompts, not concurrency.

One gap in a thousand that takes several times the time per token promised is a step full of prompts, and an answer of
some hundred tokens meets it often. Such steps break the promise at any concurrency: a ceiling of one or two is then no
ceiling, and what helps is a budget whose full step fits. Worked: 4,096 tokens take 0.4 to 0.5 s; 100 ms are 819 to
1,024 tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.numbers import seconds

from .latency import merged

LONG, LONGEST, LEAST_GAPS = 0.99, 0.999, 10_000
FEW, SEVERAL = 3, 3.0
LEAST_BUDGET = 64


def by_prompts(evidence: Evidence, tpot_seconds: float, ceiling: Fact) -> str | None:
    """Why a ceiling is no matter of concurrency; None where it may be one."""
    gap = gap_bounds(evidence, LONGEST)
    if gap is None or ceiling.ceiling is None or ceiling.ceiling > FEW or gap[0] < SEVERAL * tpot_seconds:
        return None
    told = f"{seconds(tpot_seconds)} hold only up to {ceiling.ceiling:,.0f} at once, and one gap in a thousand takes"
    return f"{told} {seconds(gap[0])} or more: steps full of prompts, not a matter of concurrency"


def budget_within_tpot(evidence: Evidence) -> Fact:
    """The token budget whose full step would take the time per token, in proportion to the longest gaps; bounds."""
    gap, target, budget = (
        gap_bounds(evidence, LONG),
        evidence.slo.tpot_seconds,
        evidence.count_flag("max_num_batched_tokens"),
    )
    if gap is None or target is None or budget is None or gap[0] <= 0:
        return unknown("needs a TPOT objective, max_num_batched_tokens and the histogram of gaps between tokens")
    low, high = (max(math.floor(budget * target / bound / LEAST_BUDGET), 1) * LEAST_BUDGET for bound in reversed(gap))
    told = f"{budget:,} tokens in the {seconds(gap[0])} or more of one gap in a hundred"
    return computed(None, low=low, high=high, source=told)


def budget_within_gap(evidence: Evidence, known: Mapping[str, Fact], budget: int, objective: float) -> Fact:
    """The budget with which one gap in a hundred takes `objective` seconds, where prompts are what stretches it.

    What the mean gap takes stays whatever the budget is: C' = C (T - m) / (g - m), rounded down to 64 tokens. Worked:
    C = 2,048, gaps of 50 ms at most, 10 ms in the mean, T = 25 ms: 2,048 x 15 / 40 = 768.
    """
    gap, mean = gap_bounds(evidence, LONG), known["itl_mean"].number
    if gap is None or mean is None or not math.isfinite(gap[1]):
        return unknown("needs the time of a full step, or a histogram with an edge above 99 % of the gaps")
    if mean > objective / 2:
        return unknown(f"a gap takes {seconds(mean)} in the mean, more than half of the objective: not prompts alone")
    value = math.floor(budget * (objective - mean) / (gap[1] - mean) / LEAST_BUDGET) * LEAST_BUDGET
    return computed(max(value, LEAST_BUDGET), source=f"one gap in a hundred takes up to {seconds(gap[1])}")


def gap_bounds(evidence: Evidence, q: float) -> tuple[float, float] | None:
    """Between which bounds, in seconds, this quantile of the gaps lies; None where too few were counted."""
    gaps = merged(evidence, "itl")
    return None if gaps is None or gaps.n < LEAST_GAPS else gaps.quantile_bounds(q)
