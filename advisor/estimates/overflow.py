"""How many sequences a pool holds so that the share of requests preempted keeps a promise.

A slot that is looked at in a random step holds a request with a probability proportional to its residence R, the steps
it needs: s = ceil(I / C) for its prompt, through which its cache grows from 0 to I, and O for its output, through which
it grows to I + O. That mixture of even spreads, folded N times with itself, gives the probability p that N sequences
overflow the pool.

What p means depends on the engine. One that admits a prompt only when it fits whole preempts about once an overflow,
which lasts until somebody finishes: preempted / finished is about p. One that admits a prompt by its first chunk takes
the victim back at once and preempts it again, once every s steps, while N / E[R] requests finish a step:

    preempted / finished = p E[R] / (N s)

Worked: 6 answers of 5,000 tokens with p = 1 %: 0.01 x 5,001 / 6 = 8.3 preemptions a request, not 0.01.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from advisor.domain.evidence import as_floats
from advisor.domain.histogram import Floats, JointCounts

BINS = 1024
MOST_FOLDED = 256
LEAST_RISK = 1e-9


@dataclass(frozen=True, slots=True)
class Residence:
    """Steps that a request stays in service, E[R], and steps to compute the prompt of one that is in service, E[s]."""

    steps: float
    prompt_steps: float

    def share(self, overflow: float, sequences: float) -> float:
        """Preemptions per finished request of an engine that takes its victims back at once."""
        return overflow * max(self.steps / (sequences * max(self.prompt_steps, 1.0)), 1.0)


def residence(joint: JointCounts, budget: int) -> Residence | None:
    """How long requests stay; None where they have no tokens."""
    prompt_steps = np.ceil(joint.prompt / budget)
    steps = prompt_steps + joint.output
    total = float(np.sum(joint.counts * steps))
    if total <= 0:
        return None
    return Residence(total / joint.n, float(np.sum(joint.counts * steps * prompt_steps)) / total)


def normal_ceiling(mean: float, sd: float, pool: float, risk: float) -> int:
    """Largest N with P(sum of N occupancies > pool) <= risk, by the central limit theorem.

    [(-z sd + sqrt(z^2 sd^2 + 4 mean pool)) / (2 mean)]^2: mean 1,232, sd 715, pool 400,000, risk 1 % give 301.
    """
    z = float(ndtri(1 - min(max(risk, LEAST_RISK), 1 - LEAST_RISK)))
    root = (-z * sd + math.sqrt(z * z * sd * sd + 4 * mean * max(pool, 0.0))) / (2 * mean)
    return math.floor(root * root + 1e-9)


def normal_share_ceiling(mean: float, sd: float, pool: float, promise: float, stay: Residence | None) -> int:
    """The largest N that promises such a preempted share; `stay` where victims are taken back at once."""
    value = normal_ceiling(mean, sd, pool, promise)
    while stay is not None and value > 1:
        # Fewer sequences finish less a step, so the risk that N may take falls with N.
        lower = normal_ceiling(mean, sd, pool, promise / stay.share(1.0, value))
        if lower >= value:
            break
        value = lower
    return value


def folded_ceiling(
    joint: JointCounts, budget: int, pool: float, promise: float, *, block: int = 1, stay: Residence | None = None
) -> int:
    """The same from the whole distribution: for few or very unequal sequences, where the normal form fails.

    At most MOST_FOLDED sequences are looked at.
    """
    if pool <= 0:
        return 0
    one = np.fft.rfft(_held(joint, budget, pool / BINS, (block - 1) / 2), 2 * BINS + 2)
    within = np.zeros(BINS + 1)
    within[0] = 1.0
    for sequences in range(1, MOST_FOLDED + 1):
        within = np.maximum(np.fft.irfft(np.fft.rfft(within, 2 * BINS + 2) * one, 2 * BINS + 2)[: BINS + 1], 0.0)
        overflow = max(1.0 - float(within.sum()), 0.0)
        share = overflow if stay is None else stay.share(overflow, sequences)
        if share > promise:
            return sequences - 1
    return MOST_FOLDED


def _held(joint: JointCounts, budget: int, width: float, shift: float) -> Floats:
    """Probability of holding 0, 1, ... BINS widths of cache; what is more is left out, so the sum may be below 1.

    A value between two widths is split between them so that the mean stays: the second difference of E[(x - held)+],
    which for a spread from a to b is ((x - a)+^2 - (x - b)+^2) / 2 (b - a).
    """
    i, o = joint.prompt / width, joint.output / width
    steps = np.ceil(joint.prompt / budget)
    begin, end = np.concatenate([np.zeros(i.size), i]), np.concatenate([i, i + o])
    weight = np.concatenate([joint.counts * steps, joint.counts * joint.output])
    spread = end > begin
    begin, end, weight = begin[spread], end[spread], weight[spread] / weight[spread].sum()
    x = as_floats(np.arange(-1, BINS + 2) - shift / width)
    each = weight / (2 * (end - begin))
    below = _squares(x, begin, each) - _squares(x, end, each)
    return np.maximum(np.diff(below, 2), 0.0)


def _squares(x: Floats, start: Floats, weight: Floats) -> Floats:
    """The sum of weight (x - start)^2 over the starts below each x."""
    order = np.argsort(start)
    a, w = start[order], weight[order]
    place = np.searchsorted(a, x)
    w0, w1, w2 = (np.concatenate([[0.0], np.cumsum(part)])[place] for part in (w, w * a, w * a * a))
    return np.asarray(w0 * x * x - 2 * w1 * x + w2)
