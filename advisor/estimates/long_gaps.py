"""What the longest gaps between tokens say where nothing else tells the time of a step: prompts, not concurrency.

One gap in a thousand that takes several times the time per token promised is a step full of prompts, and an answer of
some hundred tokens meets it often. Such steps break the promise at any concurrency: a ceiling of one or two is then no
ceiling, and what helps is a budget whose full step fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.numbers import seconds

from .kv.drafts import drafted_tokens
from .latency import merged

LONG, LONGEST, LEAST_GAPS = 0.99, 0.999, 10_000
FEW, SEVERAL = 3, 3.0
LEAST_BUDGET = 64


def by_prompts(evidence: Evidence, tpot_seconds: float, ceiling: Fact) -> str | None:
    """Why a ceiling is no matter of concurrency; None where it may be one."""
    gap = None if drafted_tokens(evidence) else gap_bounds(evidence, LONGEST)
    if gap is None or ceiling.ceiling is None or ceiling.ceiling > FEW or gap[0] < SEVERAL * tpot_seconds:
        return None
    told = f"{seconds(tpot_seconds)} hold only up to {ceiling.ceiling:,.0f} at once, and one gap in a thousand takes"
    return f"{told} {seconds(gap[0])} or more: steps full of prompts, not a matter of concurrency"


def budget_within_tpot(evidence: Evidence, known: Mapping[str, Fact]) -> Fact:
    """The token budget with which one gap in a hundred takes the time per token; a sequence gets one token a gap."""
    target, budget = evidence.slo.tpot_seconds, evidence.count_flag("max_num_batched_tokens")
    if target is None or budget is None:
        return unknown("needs a TPOT objective and max_num_batched_tokens")
    if drafted_tokens(evidence):
        return unknown("with drafts a gap carries several tokens: it may take longer than the time per token")
    return budget_within_gap(evidence, known, budget, target, LONG)


def budget_within_gap(evidence: Evidence, known: Mapping[str, Fact], budget: int, objective: float, q: float) -> Fact:
    """The budget with which the q-quantile of gaps takes `objective` seconds, where prompts are what stretches it.

    What the mean gap takes stays whatever the budget is: C' = C (T - m) / (g - m), rounded down to 64 tokens. Worked:
    C = 2,048, gaps of 50 ms at most, 10 ms in the mean, T = 25 ms: 2,048 x 15 / 40 = 768.
    """
    gap, mean = gap_bounds(evidence, q), known["itl_mean"].number
    if gap is None or mean is None or not math.isfinite(gap[1]) or mean >= gap[0]:
        return unknown(f"needs the time of a full step, or a histogram with edges around {q:.4g} of the gaps")
    if gap[1] <= objective:
        return unknown(f"{q:.4g} of the gaps take {seconds(gap[1])} at most: no step is too long")
    if mean > objective / 2:
        return unknown(f"a gap takes {seconds(mean)} in the mean, more than half of the objective: not prompts alone")
    value = math.floor(budget * (objective - mean) / (gap[1] - mean) / LEAST_BUDGET) * LEAST_BUDGET
    return computed(max(value, LEAST_BUDGET), source=f"{q:.4g} of the gaps take {seconds(gap[1])} at most")


def gap_bounds(evidence: Evidence, q: float) -> tuple[float, float] | None:
    """Between which bounds, in seconds, this quantile of the gaps lies; None where too few were counted."""
    gaps = merged(evidence, "itl")
    return None if gaps is None or gaps.n < LEAST_GAPS else gaps.quantile_bounds(q)
