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
from advisor.engines import flags_of

from . import lengths, long_gaps
from .flag_sources import missing
from .full_step import FullStep
from .step_windows import computed_prompt_tokens


def facts(evidence: Evidence, work: FullStep | str, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """The budget ceiling and how much of the budget prompts use while requests wait."""
    budget = step_budget(evidence)
    if budget is None:
        return dict.fromkeys(("budget_ceiling", "prefill_share_of_budget"), unknown(no_budget(evidence)))
    return {
        "budget_ceiling": _ceiling(evidence, budget, known),
        "prefill_share_of_budget": _prefill_share(evidence, budget, work),
    }


def step_budget(evidence: Evidence) -> int | None:
    """max_num_batched_tokens, where it is known and limits anything; None for engines that have no such budget."""
    flags = flags_of(evidence.engine)
    if flags is not None and flags.lacks("max_num_batched_tokens"):
        return None
    budget = evidence.count_flag("max_num_batched_tokens")
    return budget if budget is not None and budget > 0 else None


def no_budget(evidence: Evidence) -> str:
    """Why nothing that depends on the budget can be told, and what would tell it."""
    return missing(evidence, "max_num_batched_tokens")


def left_for_prompts(evidence: Evidence, seats: Fact) -> Fact:
    """Prompt tokens a step can still take when every recommended seat decodes: 2,048 - 40 = 2,008."""
    budget = step_budget(evidence)
    if budget is None:
        return unknown(no_budget(evidence))
    if seats.number is None:
        return unknown("recommended_max_num_seqs is unknown")
    return computed(budget - seats.number, source=f"{budget:,} - {seats.number:,.0f} decoding sequences")


def prompt_pass(evidence: Evidence) -> Fact:
    """Prompt tokens of one pass: SGLang's chunk of prefill alone, else the budget that decoding shares."""
    chunk = evidence.count_flag("chunked_prefill_size") or evidence.count_flag("max_num_batched_tokens")
    if chunk is None:
        return unknown("needs max_num_batched_tokens, or chunked_prefill_size of SGLang")
    return computed(chunk, source="as set")


def budget_within_itl(evidence: Evidence, known: Mapping[str, Fact]) -> Fact:
    """The budget whose full step would take the ITL objective, in whole 64 tokens and in proportion.

    8,192 tokens in 3.5 s are at most 702 in 300 ms, so 640. The part of a step that does not depend on its prompts
    makes it somewhat longer than that: a start, to be measured. Without the time of a full step, the longest gaps tell.
    """
    objective, seconds = evidence.slo.itl_seconds, known["full_step_seconds"].number
    budget = evidence.count_flag("max_num_batched_tokens")
    if objective is None or budget is None:
        return unknown("needs an ITL objective and max_num_batched_tokens")
    if not seconds:
        return long_gaps.budget_within_gap(evidence, known, budget, objective, evidence.slo.share)
    value = math.floor(budget * objective / seconds / 64) * 64
    return computed(max(value, 64), source=f"{budget:,} tokens in {seconds:.3g} s")


def prompts_at_cap(known: Mapping[str, Fact]) -> Fact:
    """How much of one step's budget the prompts of a full batch would take: 16 of 512 tokens are half of 16,384."""
    seats, prompt, budget = (known[n].number for n in ("max_num_seqs", "prompt_tokens_p50", "max_num_batched_tokens"))
    if seats is None or prompt is None or not budget:
        return unknown("needs max_num_seqs, max_num_batched_tokens and the lengths of prompts")
    return computed(seats * prompt / budget, source=f"{seats:,.0f} x {prompt:,.0f} / {budget:,.0f}")


def mean_lengths(evidence: Evidence) -> tuple[float, float] | None:
    """Mean prompt and output tokens of served requests, from the best source that has them."""
    joint = evidence.best_joint
    if joint is not None and joint.n:
        return joint.prompts().mean, joint.outputs().mean
    prompt, output = lengths.marginals(evidence)
    if prompt is None or output is None or prompt.mean is None or output.mean is None:
        return None
    return prompt.mean, output.mean


def mean_work(evidence: Evidence, known: Mapping[str, Fact]) -> tuple[float, float] | None:
    """Mean prompt tokens to compute, prefix hits taken off, and mean output tokens of a request."""
    means, hits = mean_lengths(evidence), known["prefix_cache_hit_rate"].number
    return None if means is None else (means[0] * (1 - min(max(hits or 0.0, 0.0), 1.0)), means[1])


def admitted(budget: float, prompt: float, output: float) -> float:
    """Decoding sequences that a full budget admits beside the prompts: C O / (I + O)."""
    return budget * output / (prompt + output)


def _ceiling(evidence: Evidence, budget: int, known: Mapping[str, Fact]) -> Fact:
    means = mean_work(evidence, known)
    if means is None:
        return unknown(lengths.NO_LENGTHS)
    prompt, output = means
    if output <= 0:
        return unknown("requests have no output tokens: none of them decodes")
    story = f"{budget:,} x {output:,.0f} / ({prompt:,.0f} computed prompt tokens + {output:,.0f} output tokens)"
    story += "; prefix hits are not known, none assumed" if known["prefix_cache_hit_rate"].number is None else ""
    return computed(max(math.floor(admitted(budget, prompt, output)), 1), source=story)


def _prefill_share(evidence: Evidence, budget: int, work: FullStep | str) -> Fact:
    if isinstance(work, str):
        return unknown(work)
    shares = np.concatenate([_shares(e, budget, work) for e in evidence.engines] or [np.empty(0)])
    if shares.size == 0:
        return unknown("requests never waited in a window with enough steps")
    story = "prompt tokens per second / what full steps would compute, windows in which requests wait"
    return computed(float(shares.mean()), n=int(shares.size), source=story)


def _shares(engine: EngineSeries, budget: int, work: FullStep) -> Floats:
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
    most = np.array([work.prompt_rate(min(b, budget - 1.0), budget) for b in batch])
    shares: Floats = np.minimum(rate / most, 1.0)
    return shares
