"""Whether a sweep ran with requests like those of the traffic; on others its ceiling is not the traffic's.

Two figures of a mean request decide what a step takes at equal concurrency: the context that it holds, prompt and half
of the output, and the prompt tokens beside each token of its answer. Where the sweep's fall short of either by more
than a quarter, its concurrency is more than the traffic can have. Where they exceed one and fall short of none, what
held there holds for the traffic, too, and what failed there says nothing.

Worked: a sweep of 1,000 + 1,000 tokens holds 1,500 and computes one prompt token a token; traffic of 6,000 + 300 holds
6,150 and computes 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor.domain import numbers
from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, measured, unknown
from advisor.domain.sweep import Sweep

from .length_change import HEAVIER, mean_lengths_now
from .token_budget import mean_lengths

Lengths = tuple[float, float]
"""Mean prompt and output tokens."""


@dataclass(frozen=True, slots=True)
class OtherLengths:
    """A sweep of other requests: `lighter` where they ask less of a step than the traffic does, and both in words."""

    lighter: bool
    told: str


def on_other_lengths(sweep: Sweep, evidence: Evidence) -> OtherLengths | None:
    """How a sweep's requests differ from the traffic's, None where they do not or one of both is not known."""
    swept, traffic = _of(sweep), mean_lengths_now(evidence) or mean_lengths(evidence)
    if swept is None or traffic is None or traffic[0] <= 0 or traffic[1] <= 0:
        return None
    ratios = [one / other for one, other in zip(_work(swept), _work(traffic), strict=True)]
    if not any(ratio * HEAVIER < 1 or ratio > HEAVIER for ratio in ratios):
        return None
    told = f"the sweep's requests have {_words(swept)} tokens and the traffic's {_words(traffic)}"
    return OtherLengths(any(ratio * HEAVIER < 1 for ratio in ratios), told)


def for_traffic(ceiling: Fact, other: OtherLengths | None) -> Fact:
    """What a sweep's ceiling says of the traffic: all, at least so much, or nothing."""
    if other is None or ceiling.is_unknown:
        return ceiling
    if other.lighter or not ceiling.floor:
        return unknown(f"{other.told}: give a sweep with the deployment's own lengths (advisor sweep plan)")
    return measured(None, low=ceiling.floor, n=ceiling.n, source=f"{ceiling.source}; at least, as {other.told}")


def _of(sweep: Sweep) -> Lengths | None:
    known = [(p.prompt_tokens, p.output_tokens) for p in sweep.points if p.prompt_tokens and p.output_tokens]
    return None if not known else (_mean([prompt for prompt, _ in known]), _mean([output for _, output in known]))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _work(lengths: Lengths) -> Lengths:
    prompt, output = lengths
    return prompt + output / 2, prompt / output


def _words(lengths: Lengths) -> str:
    return " + ".join(map(numbers.tokens, lengths))
