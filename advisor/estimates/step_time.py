"""How long an engine step takes, from production counters alone: ITL = a + b D + p P, per deployment.

D = decoding sequences per step (gaps / steps), P = prompt tokens computed per step, both means over a short window; ITL
the mean gap in it. In steady state prompts arrive as outputs leave, P / D = I / O, so with the same traffic the gap
grows along the mix line ITL(D) = a + (b + p I / O) D. That is the slope for "what if more run at once", not for "what
if the budget changes". Windows with a preemption, a restart or few steps say nothing about it and are left out, and so
are those before the lengths of requests changed (`length_change`): where prompts had doubled on three simulated
engines a line over all windows lay 16 to 31 % too low, over those since then between 8 % too low and 10 % too high.

With speculative decoding a gap carries m tokens, m = generated / (gaps + first tokens), so TPOT = ITL / m. Engines are
fitted together only where each alone says the same.

Worked: a = 10 ms, b = 0.02 ms, p = 0.05 ms, I = 1,160, O = 211: slope 0.295 ms, so 24 sequences take 17.1 ms a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.histogram import Floats

from .length_change import length_change
from .step_windows import LEAST_WINDOWS, Points, gather, points_of, prompt_tokens_per_gap

NEAR = 0.2
LEAST_SPREAD = 1.5
LEAST_R2 = 0.6
MOST_VIF = 10.0
REACH = 2.0
MOST_APART = 1.3
"""Two engines whose gap at the same concurrency differs by more are no one line: other hardware, or other work."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """The fitted step time in seconds: `base`, and `per_sequence` along the mix line.

    `per_prompt_token` and `per_decoding_sequence`: its two parts, where they are identified. `widest` is the largest
    mean decode batch in the fit; beyond twice that the line says nothing. `tokens_per_gap` is 1 without speculation.
    """

    base: float
    per_sequence: float
    per_prompt_token: float | None
    per_decoding_sequence: float | None
    r2: float
    residual_seconds: float
    windows: int
    widest: float
    tokens_per_gap: float = 1.0

    def itl(self, sequences: float) -> float:
        """Mean gap between tokens in seconds while this many sequences decode, same traffic."""
        return self.base + self.per_sequence * sequences

    def sequences_within(self, tpot_seconds: float) -> float:
        """How many sequences decode at a mean time per token of `tpot_seconds`, several tokens a gap or one."""
        return (tpot_seconds * self.tokens_per_gap - self.base) / self.per_sequence


def fit(evidence: Evidence) -> StepTime | str:
    """The step time of a deployment, or the reason why its windows do not tell it."""
    points = gather(evidence)
    if points is None:
        return "no windows of engine counters (needs --prometheus, and inter-token latency and iteration metrics)"
    if refused := _staged(evidence) or _too_little(evidence, points) or _differing(evidence, points):
        return refused
    ratio = prompt_tokens_per_gap(evidence)
    ones = np.ones_like(points.batch)
    full, full_r2 = solve(np.column_stack([ones, points.batch, points.prompt]), points)
    line, line_r2 = solve(np.column_stack([ones, points.batch]), points)
    # A coefficient of exactly 0 is the bound of the fit, not a finding.
    split = bool((full > 0).all()) and full_r2 >= LEAST_R2 and _vif(points) <= MOST_VIF
    base, slope, r2 = (full[0], full[1] + full[2] * ratio, full_r2) if split else (line[0], line[1], line_r2)
    if r2 < LEAST_R2:
        return f"the line explains {max(r2, 0):.0%} of the variance; {LEAST_R2:.0%} are needed"
    if slope <= 0 or base <= 0:
        grows = "in proportion to" if slope > 0 else "not at all with"
        return f"the gap between tokens grows {grows} concurrency: no line of a step time in the range observed"
    residual = float(np.median(np.abs(points.itl - base - slope * points.batch)))
    widest = float(points.batch.max())
    decoding, prompts = (float(full[1]), float(full[2])) if split else (None, None)
    accepted = float(np.average(points.tokens, weights=points.weight))
    return StepTime(float(base), float(slope), prompts, decoding, r2, residual, points.batch.size, widest, accepted)


def facts(step: StepTime | str) -> dict[str, Fact]:
    """The mix line: the gap of an empty batch, and what each sequence adds."""
    if isinstance(step, str):
        return dict.fromkeys(("itl_base", "itl_per_sequence"), unknown(f"the step time is not identified: {step}"))
    story = f"mean gap over decode batch, same traffic; R2 {step.r2:.2f}, at most {step.widest:.1f} observed"
    values = {"itl_base": step.base, "itl_per_sequence": step.per_sequence}
    return {name: computed(value, n=step.windows, source=story) for name, value in values.items()}


def _staged(evidence: Evidence) -> str | None:
    stages = evidence.count_flag("pipeline_parallel_size") or 1
    return f"{stages} pipeline stages: a gap spans the steps of all of them" if stages > 1 else None


def _too_little(evidence: Evidence, points: Points) -> str | None:
    if points.batch.size < LEAST_WINDOWS:
        change = length_change(evidence)
        since = f" since {change.told}" if change else ""
        return f"{points.batch.size} usable windows{since}; {LEAST_WINDOWS} are needed"
    p5, p95 = np.quantile(points.batch, [0.05, 0.95])
    if p95 < LEAST_SPREAD * p5:
        return f"concurrency hardly varied ({p5:.1f} to {p95:.1f}): the slope cannot be told"
    return None


def predicted_gap(step: StepTime | str, known: Mapping[str, Fact]) -> Fact:
    """The mean gap with every seat of next_max_num_seqs decoding; refused beyond twice what was observed."""
    seats = known["next_max_num_seqs"].number
    if isinstance(step, str):
        return unknown(f"the step time is not identified: {step}")
    if seats is None:
        return unknown("no next cap is known")
    if seats > REACH * step.widest:
        return unknown(f"{seats:.0f} sequences lie beyond {REACH:g}x the {step.widest:.1f} observed")
    value = step.itl(seats)
    story = f"{step.base * 1e3:.2f} ms + {step.per_sequence * 1e3:.3f} ms x {seats:.0f}, R2 {step.r2:.2f}"
    spread = 2 * step.residual_seconds
    return computed(value, low=max(value - spread, 0.0), high=value + spread, n=step.windows, source=story)


def _differing(evidence: Evidence, points: Points) -> str | None:
    """Why the engines cannot be fitted together: alone each has another gap at the middle batch of all."""
    parts = [(e, points_of(e)) for e in evidence.engines if not e.lifetime]
    middle, gaps = float(np.median(points.batch)), {}
    for engine, own in parts:
        if own is None or own.batch.size < LEAST_WINDOWS:
            continue
        near = np.abs(own.batch - middle) <= NEAR * middle
        if int(near.sum()) >= LEAST_WINDOWS:
            gaps[f"{engine.instance} {engine.engine}"] = float(np.average(own.itl[near], weights=own.weight[near]))
    if len(gaps) < 2:
        return None
    slow, fast = max(gaps, key=lambda n: gaps[n]), min(gaps, key=lambda n: gaps[n])
    if gaps[slow] <= MOST_APART * gaps[fast]:
        return None
    told = f"{gaps[slow] * 1e3:.1f} ms on {slow}, {gaps[fast] * 1e3:.1f} ms on {fast}"
    return f"engines differ at {middle:.0f} sequences ({told}): other hardware or other work, no common line"


def solve(columns: Floats, points: Points) -> tuple[Floats, float]:
    """Coefficients of a weighted least-squares fit that are not negative, and its R2."""
    root = np.sqrt(points.weight)
    coefficients, _ = nnls(columns * root[:, None], points.itl * root)
    mean = np.average(points.itl, weights=points.weight)
    left = np.average((points.itl - columns @ coefficients) ** 2, weights=points.weight)
    spread = np.average((points.itl - mean) ** 2, weights=points.weight)
    # Equal gaps differ in their last bits, and a line may explain those.
    return coefficients, float(1 - left / spread) if spread > 1e-18 * mean**2 else 0.0


def _vif(points: Points) -> float:
    """Variance inflation of D by P: how much of one the other already tells."""
    if points.prompt.std() == 0 or points.batch.std() == 0:
        return float("inf")
    r = float(np.corrcoef(points.batch, points.prompt)[0, 1])
    return float("inf") if abs(r) >= 1 else 1 / (1 - r * r)
