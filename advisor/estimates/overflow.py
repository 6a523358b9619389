"""How many sequences a pool holds so that the share of requests preempted keeps a promise.

A slot that is looked at in a random step holds a request with a probability proportional to its residence R, the steps
it needs: s = ceil(I / C) for its prompt, through which its cache grows from 0 to I, and O for its output, through which
it grows to I + O. That mixture of even spreads, folded N times with itself, gives the probability p that N sequences
overflow the pool M, and the density f at M. `Growth` says what share of requests that preempts.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc

from advisor.domain.evidence import as_floats
from advisor.domain.histogram import Floats, JointCounts, TokenCounts

BINS = 1024
EDGE = 8
"""Widths below the pool in which its density there is taken."""
MOST_FOLDED = 256
LEAST_RISK = 1e-9
LEAST_SPREAD = 1e-6
MOST_OVERFULL = 0.5
"""However few are preempted: where the cache is overfull half of the time, more seats stay empty as often as taken."""


@dataclass(frozen=True, eq=False, slots=True)
class Growth:
    """Mean prompt tokens to compute and output tokens of a request, from which follows what an overflow costs.

    chunk: tokens of a first chunk, of an engine that admits a prompt by it; 0 of one that waits until all of it fits.
    prompts: the lengths behind the mean, where they are known.
    """

    prompt: float
    output: float
    chunk: int = 0
    prompts: TokenCounts | None = None

    def share(self, overflow: float, density: float, sequences: float) -> float:
        """Preempted / finished where N sequences overflow with probability p and hold just the pool with density f.

        An overfull cache goes on growing: by N tokens a step, E[O] for each request that finishes. V tokens of growth
        cost a victim, the latest admitted, with its prompt and what it wrote before the next one came, V = E[I] +
        E[O] / N. By the conservation of rates, growth crosses M, M + V, M + 2 V, ... upwards E[O] f(level) times a
        finished request; the sum over levels is, by the trapezoidal rule,

            preempted / finished = E[O] (p / V + f / 2)

        What overflows by admission counts in p as well: the engine then waits, with a pool that is full to the brim.
        Where a first chunk is enough, a victim that needs more than one (a share q) is back in the next step and the
        cache grows by C tokens a step more, until it fails again: (1 + q C / N) times as many.

        Worked: 1,000 in and 200 out, N = 10, p = 5 %, f = 1e-5 a token: V = 1,020 and 200 x (0.05 / 1,020 + 0.5e-5) =
        1.08 %; by chunks of 2,048 with q = 10 % (1 + 20.48) times that, 23.2 %. Simulated: a chat trace of 1,155 in and
        211 out in a pool of 23,312 with N = 13 preempts 0.20 % (0.24 % by this) and 5.3 % (6.1 %).
        """
        written = self.output / sequences
        crossings = self.output * (overflow / (self.prompt + written) + density / 2)
        return crossings * (1 + self._in_pieces(written) * self.chunk / sequences)

    def _in_pieces(self, written: float) -> float:
        """Share of victims that one chunk does not hold, those that find the step begun by other prompts included.

        Longer than C tokens with what they wrote, exponential of that mean; mean / C at most where only that is known.
        Of the others I / C end beyond a step of which prompts take N I / O.
        """
        if not self.chunk or not written:
            return 0.0
        begun = min(self.prompt / self.chunk, 1.0) * min(self.prompt / (written * self.chunk), 1.0)
        if self.prompts is None:
            longer = min((self.prompt + written) / self.chunk, 1.0)
        else:
            missing = np.maximum(self.chunk - self.prompts.lengths, 0)
            longer = float(np.average(np.exp(-missing / written), weights=self.prompts.counts))
        return longer + (1 - longer) * begun


@dataclass(frozen=True, slots=True)
class Promise:
    """The share of requests that may be preempted, what an overflow costs, and how often the cache may be overfull.

    Without `growth` it is the overflow itself that may have such a probability.
    """

    share: float
    growth: Growth | None = None
    overfull: float = MOST_OVERFULL

    def keeps(self, overflow: float, density: float, sequences: int) -> bool:
        """Whether N sequences keep it that overflow with this probability and hold just the pool with this density."""
        share = overflow if self.growth is None else self.growth.share(overflow, density, sequences)
        return share <= max(self.share, LEAST_RISK) and overflow <= max(self.overfull, LEAST_RISK)


def gamma_ceiling(mean: float, sd: float, pool: float, promise: Promise) -> int:
    """The largest N that promises such a preempted share, from the mean and spread of one occupancy.

    The sum of N is taken as a gamma distribution of the same mean and variance: occupancies are not negative and have a
    long tail, which a normal sum of few of them would not have. Worked: mean 1,232, sd 715, pool 400,000 and an
    overflow of 1 % give 300, where a normal sum gives 301.
    """
    most = math.floor(max(pool, 0.0) / mean)
    if sd < LEAST_SPREAD * mean:
        return most
    shape, scale = (mean / sd) ** 2, sd * sd / mean
    edge = pool * EDGE / BINS

    def broken(sequences: int) -> int:
        above = float(gammaincc(sequences * shape, (pool - edge) / scale))
        overflow = float(gammaincc(sequences * shape, pool / scale))
        return 0 if promise.keeps(overflow, max(above - overflow, 0.0) / edge, sequences) else 1

    return bisect_left(range(1, most + 1), 1, key=broken)


def folded_ceiling(joint: JointCounts, budget: int, pool: float, promise: Promise, *, block: int = 1) -> int:
    """The same from the whole distribution: for few or very unequal sequences, where the gamma form fails.

    At most MOST_FOLDED sequences are looked at.
    """
    if pool <= 0:
        return 0
    width = pool / BINS
    one = np.fft.rfft(_held(joint, budget, width, (block - 1) / 2), 2 * BINS + 2)
    within = np.zeros(BINS + 1)
    within[0] = 1.0
    for sequences in range(1, MOST_FOLDED + 1):
        within = np.maximum(np.fft.irfft(np.fft.rfft(within, 2 * BINS + 2) * one, 2 * BINS + 2)[: BINS + 1], 0.0)
        overflow = max(1.0 - float(within.sum()), 0.0)
        density = float(within[-EDGE:].sum()) / (EDGE * width)
        if not promise.keeps(overflow, density, sequences):
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
