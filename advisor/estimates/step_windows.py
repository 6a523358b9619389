"""Windows of engine counters that say something about the time of a step: which are used, and what each one yields.

Left out are windows with a preemption, with few steps, with a stall, with another acceptance of drafted tokens, and all
before the lengths of requests changed. A window holds enough finished requests that prompts do not come in lumps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.domain.evidence import EngineSeries, Evidence
from advisor.domain.histogram import Floats

Bools = npt.NDArray[np.bool_]

LEAST_WINDOWS = 30
LEAST_PER_WINDOW = 10
LEAST_STEPS = 50
PARTS = 8
LEAST_FINISHED = 100
SAME_LENGTHS = 1.25
SAME_ACCEPTANCE = 1.2


@dataclass(frozen=True, eq=False, slots=True)
class Points:
    """Usable windows: decoding sequences and prompt tokens per step, mean gap (seconds), and gaps as weight.

    `tokens`: generated per gap, 1 where the engine does not tell.
    """

    batch: Floats
    prompt: Floats
    itl: Floats
    weight: Floats
    tokens: Floats


def gather(evidence: Evidence) -> Points | None:
    """The usable windows of all engines, or None where no engine counts gaps and steps."""
    parts = [p for e in evidence.engines if not e.lifetime and (p := points_of(e)) is not None]
    if not parts:
        return None
    fields = ("batch", "prompt", "itl", "weight", "tokens")
    return Points(*(np.concatenate([getattr(p, f) for p in parts]) for f in fields))


def prompt_tokens_per_gap(evidence: Evidence) -> float:
    """Prompt tokens computed for each gap, over all windows since the lengths of requests changed.

    Of all windows, not only of usable ones: what holds many prompts has few steps, and the mix must not lose it.
    """
    parts = [_joined(e.windows.deltas) for e in evidence.engines if not e.lifetime and _counts_steps(e)]
    prompts = gaps = 0.0
    for deltas in parts:
        kept = _same_lengths(deltas)
        prompts += float(np.nansum(computed_prompt_tokens(deltas)[kept]))
        gaps += float(np.nansum(deltas["itl_count"][kept]))
    return prompts / gaps if gaps else 0.0


def points_of(engine: EngineSeries) -> Points | None:
    """The usable windows of one engine, or None where it does not count gaps and steps."""
    if not _counts_steps(engine):
        return None
    d = _joined(engine.windows.deltas)
    steps, gaps = d["steps"], d["itl_count"]
    with np.errstate(divide="ignore", invalid="ignore"):
        prompt = computed_prompt_tokens(d) / steps
        batch, itl = gaps / steps, d["itl_sum"] / gaps
    use = (steps >= LEAST_STEPS) & (gaps > 0) & np.isfinite(prompt) & np.isfinite(itl)
    if "preemptions" in d:
        use &= d["preemptions"] == 0
    use &= itl <= 5 * np.median(itl[use]) if use.any() else False
    use &= _same_lengths(d)
    tokens = _tokens_per_gap(d)
    middle = float(np.median(tokens[use])) if use.any() else 1.0
    use &= (tokens <= middle * SAME_ACCEPTANCE) & (tokens * SAME_ACCEPTANCE >= middle)
    return Points(batch[use], np.maximum(prompt[use], 0.0), itl[use], gaps[use], tokens[use])


def _counts_steps(engine: EngineSeries) -> bool:
    return {"itl_sum", "itl_count", "steps"} <= engine.windows.deltas.keys()


def _joined(deltas: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """Neighbouring windows added up until most hold ten finished requests: a prompt is booked whole, in its last step.

    With fewer, prompts come in lumps that the gaps of the same window know nothing of. Never below 30 windows.
    """
    finished = deltas.get("finished")
    if finished is None or not np.nansum(finished):
        return deltas
    wanted = math.ceil(LEAST_PER_WINDOW / float(np.nanmean(finished)))
    width = max(min(wanted, finished.size // LEAST_WINDOWS), 1)
    whole = finished.size // width * width
    return {name: values[:whole].reshape(-1, width).sum(axis=1) for name, values in deltas.items()}


def _tokens_per_gap(deltas: Mapping[str, Floats]) -> Floats:
    """Tokens generated per gap and window; a first token is none. Never below 1, as preempted tokens come twice."""
    ones = np.ones_like(deltas["steps"])
    if not {"generation_tokens", "ttft_count"} <= deltas.keys():
        return ones
    with np.errstate(divide="ignore", invalid="ignore"):
        tokens = deltas["generation_tokens"] / (deltas["itl_count"] + deltas["ttft_count"])
    return np.where(np.isfinite(tokens), np.maximum(tokens, 1.0), ones)


def _same_lengths(deltas: Mapping[str, Floats]) -> Bools:
    """The windows since which requests have been as long as now, told by eighths of the time that hold 100 requests."""
    everything = np.ones(deltas["steps"].size, bool)
    if not {"finished", "prompt_tokens", "generation_tokens"} <= deltas.keys():
        return everything
    places = np.array_split(np.arange(everything.size), PARTS)
    finished, prompt, output = (
        np.array([np.nansum(deltas[name][p]) for p in places])
        for name in ("finished", "prompt_tokens", "generation_tokens")
    )
    if finished[-1] < LEAST_FINISHED:
        return everything
    for place in reversed(range(PARTS)):
        if finished[place] < LEAST_FINISHED:
            continue
        means = [(total[place] / finished[place], total[-1] / finished[-1]) for total in (prompt, output)]
        if any(max(pair) > SAME_LENGTHS * min(pair) for pair in means):
            everything[: places[place][-1] + 1] = False
            break
    return everything


def computed_prompt_tokens(deltas: Mapping[str, Floats]) -> Floats:
    """Prompt tokens computed per window; zeros (a line in D alone) where the engine does not tell them."""
    if "prompt_tokens_computed" in deltas:
        return deltas["prompt_tokens_computed"]
    return deltas.get("prompt_tokens", np.zeros_like(deltas["steps"]))
