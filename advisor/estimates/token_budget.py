"""What max_num_batched_tokens leaves for prompts, and how many decoding sequences it admits.

With a full budget every step, decoding sequences D and prompt tokens P share it, D + P = C, and in steady state prompts
arrive as outputs leave, P / D = I / O. Hence N_bud = C O / (I + O): above it the sequence cap is inert.
Worked: C = 2,048, I = 2,048 computed prompt tokens, O = 28: 2,048 x 28 / 2,076 = 27.6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from advisor.domain.evidence import EngineSeries, Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.histogram import Floats

from . import lengths
from .step_time import StepTime, computed_prompt_tokens

NO_BUDGET = (
    "max_num_batched_tokens is in no metric: give a start-up log (--startup-log) or --set max_num_batched_tokens=N"
)


def facts(evidence: Evidence, step: StepTime | str, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """The budget ceiling and how much of the budget prompts use while requests wait."""
    budget = step_budget(evidence)
    if budget is None:
        return {"budget_ceiling": unknown(NO_BUDGET), "prefill_share_of_budget": unknown(NO_BUDGET)}
    return {
        "budget_ceiling": _ceiling(evidence, budget, known),
        "prefill_share_of_budget": _prefill_share(evidence, budget, step),
    }


def step_budget(evidence: Evidence) -> int | None:
    """max_num_batched_tokens, where it is known and limits anything."""
    budget = evidence.count_flag("max_num_batched_tokens")
    return budget if budget is not None and budget > 0 else None


def left_for_prompts(evidence: Evidence, seats: Fact) -> Fact:
    """Prompt tokens a step can still take when every recommended seat decodes: 2,048 - 40 = 2,008."""
    budget = step_budget(evidence)
    if budget is None:
        return unknown(NO_BUDGET)
    if seats.number is None:
        return unknown("recommended_max_num_seqs is unknown")
    return computed(budget - seats.number, source=f"{budget:,} - {seats.number:,.0f} decoding sequences")


def mean_lengths(evidence: Evidence) -> tuple[float, float] | None:
    """Mean prompt and output tokens of served requests, from the best source that has them."""
    joint = evidence.best_joint
    if joint is not None and joint.n:
        return joint.prompts().mean, joint.outputs().mean
    prompt, output = lengths.marginals(evidence)
    if prompt is None or output is None or prompt.mean is None or output.mean is None:
        return None
    return prompt.mean, output.mean


def _ceiling(evidence: Evidence, budget: int, known: Mapping[str, Fact]) -> Fact:
    means = mean_lengths(evidence)
    if means is None:
        return unknown(lengths.NO_LENGTHS)
    if means[1] <= 0:
        return unknown("requests have no output tokens: none of them decodes")
    hits = known["prefix_cache_hit_rate"].number
    prompt, output = means[0] * (1 - min(max(hits or 0.0, 0.0), 1.0)), means[1]
    story = f"{budget:,} x {output:,.0f} / ({prompt:,.0f} computed prompt tokens + {output:,.0f} output tokens)"
    story += "; prefix hits are not known, none assumed" if hits is None else ""
    return computed(max(math.floor(budget * output / (prompt + output)), 1), source=story)


def _prefill_share(evidence: Evidence, budget: int, step: StepTime | str) -> Fact:
    if isinstance(step, str):
        return unknown(f"the step time is not identified: {step}")
    if step.per_prompt_token is None:
        return unknown("prompt work and decoding moved together: what a full step takes is not identified")
    shares = np.concatenate([_shares(e, budget, step) for e in evidence.engines] or [np.empty(0)])
    if shares.size == 0:
        return unknown("requests never waited in a window with enough steps")
    story = "prompt tokens per second / what full steps would compute, windows in which requests wait"
    return computed(float(shares.mean()), n=int(shares.size), source=story)


def _shares(engine: EngineSeries, budget: int, step: StepTime) -> Floats:
    w, samples = engine.windows, engine.samples
    if engine.lifetime or not {"prompt_tokens", "itl_count", "steps"} <= w.deltas.keys() or not samples.time.size:
        return np.empty(0)
    prompt = computed_prompt_tokens(w.deltas)
    waited = np.add.accumulate(samples.waiting > 0)
    before = np.searchsorted(samples.time, w.start, side="right")
    until = np.searchsorted(samples.time, w.end, side="right")
    counts = np.concatenate([[0], waited])
    waiting = counts[until] - counts[before] > 0
    steps = w.deltas["steps"]
    use = waiting & (steps > 0) & np.isfinite(prompt) & np.isfinite(w.deltas["itl_count"]) & (w.end > w.start)
    batch = w.deltas["itl_count"][use] / steps[use]
    rate = prompt[use] / (w.end[use] - w.start[use])
    room = np.maximum(budget - batch, 1.0)
    most = room / np.array([step.full_step(b, budget) for b in batch])
    shares: Floats = np.minimum(rate / most, 1.0)
    return shares
