"""How long a step takes whose token budget is full: what max_num_batched_tokens does to everybody who decodes in it.

A step decodes D sequences in d(D) = a + b D seconds and computes P prompt tokens at p seconds each. On a GPU the two
overlap: reading weights and cache waits on memory, prompts keep the arithmetic busy. The parts add up where nothing
overlaps and the longer one hides the other where everything does, so a step takes between max(d, p P) and d + p P.

Worked: d = 13 ms, p = 0.11 ms, C = 512 with 26 decoding: 486 x 0.11 = 53.5 ms, so between 53.5 and 66.5, middle 60 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import Evidence

from .step_time import LEAST_R2, LEAST_SPREAD, StepTime, solve
from .step_windows import LEAST_WINDOWS, Points, gather

FULL = 0.9


@dataclass(frozen=True, slots=True)
class FullStep:
    """Seconds: `base` of a step, `per_sequence` for each that decodes, `per_prompt_token` for each prompt token.

    `tokens_per_gap`: how many tokens a sequence gets in a step, 1 without speculative decoding.
    """

    base: float
    per_sequence: float
    per_prompt_token: float
    windows: int
    tokens_per_gap: float = 1.0

    def decoding(self, sequences: float) -> float:
        """Seconds of a step that only decodes."""
        return self.base + self.per_sequence * sequences

    def bounds(self, sequences: float, budget: float) -> tuple[float, float]:
        """Seconds of a step of `budget` tokens in which `sequences` decode: all overlap, none."""
        decoding, prompts = self.decoding(sequences), self.per_prompt_token * max(budget - sequences, 0.0)
        return max(decoding, prompts), decoding + prompts

    def middle(self, sequences: float, budget: float) -> float:
        """The middle of the bounds."""
        return sum(self.bounds(sequences, budget)) / 2

    def prompt_rate(self, sequences: float, budget: float) -> float:
        """Prompt tokens per second of full steps without overlap; 0 where decoding takes the whole budget."""
        prompts = max(budget - sequences, 0.0)
        return prompts / (self.decoding(sequences) + self.per_prompt_token * prompts)

    def efficiency(self, sequences: float, budget: float) -> float:
        """Share of a full step that computes prompts: p P / (d + p P)."""
        return self.prompt_rate(sequences, budget) * self.per_prompt_token


def identify(evidence: Evidence, step: StepTime | str) -> FullStep | str:
    """The parts of a step, or the reason why they cannot be told apart.

    From the split of the step time; where concurrency hardly varied (a pinned cap) from how the gap follows the prompt
    tokens alone, which holds at the concurrency observed.
    """
    stages = evidence.count_flag("pipeline_parallel_size") or 1
    if stages > 1:
        return f"{stages} pipeline stages: a gap spans several steps"
    if isinstance(step, StepTime):
        if step.per_prompt_token is None or step.per_decoding_sequence is None:
            return "prompt work and decoding moved together: what a full step takes is not identified"
        parts = (step.base, step.per_decoding_sequence, step.per_prompt_token)
        return FullStep(*parts, step.windows, step.tokens_per_gap)
    points = gather(evidence)
    pinned = _pinned(points) if points is not None else None
    return pinned or f"the step time is not identified: {step}"


def observed(evidence: Evidence, budget: int) -> tuple[float, int] | None:
    """Mean seconds of a step over the windows whose steps were all full, and how many windows; None with too few.

    Where nothing but full steps was seen their parts cannot be told, but twice the budget takes at most twice as long.
    """
    points = gather(evidence)
    if points is None:
        return None
    full = points.batch + points.prompt >= FULL * budget
    if int(full.sum()) < LEAST_WINDOWS:
        return None
    return float(np.average(points.itl[full], weights=points.weight[full])), int(full.sum())


def _pinned(points: Points) -> FullStep | None:
    if points.batch.size < LEAST_WINDOWS:
        return None
    low, high = np.quantile(points.prompt, [0.05, 0.95])
    few, many = np.quantile(points.batch, [0.05, 0.95])
    if many >= LEAST_SPREAD * few or high < LEAST_SPREAD * low:
        return None
    (base, per_token), r2 = solve(np.column_stack([np.ones_like(points.prompt), points.prompt]), points)
    if r2 < LEAST_R2 or base <= 0 or per_token <= 0:
        return None
    accepted = float(np.average(points.tokens, weights=points.weight))
    return FullStep(float(base), 0.0, float(per_token), int(points.batch.size), accepted)
