"""Windows of engine counters that say something about the time of a step: which are used, and what each one yields.

Left out are windows with a preemption, with few steps, with a stall, with another acceptance of drafted tokens, and all
before the lengths of requests changed. A window holds enough finished requests that prompts do not come in lumps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advisor.domain.evidence import EngineSeries, Evidence
from advisor.domain.histogram import Floats

from .length_change import first_alike

LEAST_WINDOWS = 30
LEAST_PER_WINDOW = 10
LEAST_STEPS = 50
LEAST_SCRAPES = 10
SAME_ACCEPTANCE = 1.2


@dataclass(frozen=True, eq=False, slots=True)
class Points:
    """Usable windows: decoding sequences and prompt tokens per step, mean gap (seconds), and gaps as weight.

    `tokens`: generated per gap, 1 where the engine does not tell. `cache`: the share of it that one running sequence
    holds, over the ten scrapes around as a single one says little; NaN where the gauges do not tell.
    """

    batch: Floats
    prompt: Floats
    itl: Floats
    weight: Floats
    tokens: Floats
    cache: Floats


def gather(evidence: Evidence, *, of_epoch: bool = False) -> Points | None:
    """The usable windows of all engines, or None where no engine counts gaps and steps.

    of_epoch: also those from before the lengths of requests changed.
    """
    engines = [e for e in evidence.engines if not e.lifetime]
    parts = [p for e in engines if (p := _points(e, 0 if of_epoch else first_alike(e))) is not None]
    if not parts:
        return None
    fields = ("batch", "prompt", "itl", "weight", "tokens", "cache")
    return Points(*(np.concatenate([getattr(p, f) for p in parts]) for f in fields))


def prompt_tokens_per_gap(evidence: Evidence) -> float:
    """Prompt tokens computed for each gap, over all windows since the lengths of requests changed.

    Of all windows, not only of usable ones: what holds many prompts has few steps, and the mix must not lose it.
    """
    engines = [e for e in evidence.engines if not e.lifetime and _counts_steps(e)]
    parts = [_from(e.windows.deltas, first_alike(e)) for e in engines]
    prompts = sum(float(np.nansum(computed_prompt_tokens(deltas))) for deltas in parts)
    gaps = sum(float(np.nansum(deltas["itl_count"])) for deltas in parts)
    return prompts / gaps if gaps else 0.0


def points_of(engine: EngineSeries) -> Points | None:
    """The usable windows of one engine, or None where it does not count gaps and steps."""
    return _points(engine, first_alike(engine))


def _points(engine: EngineSeries, first: int) -> Points | None:
    if not _counts_steps(engine):
        return None
    d = _joined(_from({**engine.windows.deltas, **_sampled(engine)}, first))
    steps, gaps = d["steps"], d["itl_count"]
    with np.errstate(divide="ignore", invalid="ignore"):
        prompt = computed_prompt_tokens(d) / steps
        batch, itl = gaps / steps, d["itl_sum"] / gaps
    use = (steps >= LEAST_STEPS) & (gaps > 0) & np.isfinite(prompt) & np.isfinite(itl)
    if "preemptions" in d:
        use &= d["preemptions"] == 0
    use &= itl <= 5 * np.median(itl[use]) if use.any() else False
    tokens = _tokens_per_gap(d)
    middle = float(np.median(tokens[use])) if use.any() else 1.0
    use &= (tokens <= middle * SAME_ACCEPTANCE) & (tokens * SAME_ACCEPTANCE >= middle)
    return Points(batch[use], np.maximum(prompt[use], 0.0), itl[use], gaps[use], tokens[use], _cache(d)[use])


def _counts_steps(engine: EngineSeries) -> bool:
    return {"itl_sum", "itl_count", "steps"} <= engine.windows.deltas.keys()


def _from(deltas: Mapping[str, Floats], first: int) -> Mapping[str, Floats]:
    return {name: values[first:] for name, values in deltas.items()}


def _sampled(engine: EngineSeries) -> Mapping[str, Floats]:
    """Gauges of running sequences and of the cache in use, added up by window as counters are, and how many scrapes."""
    samples, windows = engine.samples, engine.windows
    usage = np.full(samples.time.size, np.nan) if samples.kv_usage is None else samples.kv_usage
    seen = np.isfinite(samples.running) & np.isfinite(usage)
    before, until = (np.searchsorted(samples.time, edge, side="right") for edge in (windows.start, windows.end))
    sums = {}
    for name, gauge in (("sampled_running", samples.running), ("sampled_usage", usage), ("scrapes", seen)):
        total = np.concatenate([[0.0], np.cumsum(np.where(seen, gauge, 0.0))])
        sums[name] = total[until] - total[before]
    return sums


def _cache(deltas: Mapping[str, Floats]) -> Floats:
    usage, running, scrapes = (deltas[name] for name in ("sampled_usage", "sampled_running", "scrapes"))
    if not scrapes.any():
        return np.full(scrapes.size, np.nan)
    around = np.ones(min(math.ceil(LEAST_SCRAPES / float(scrapes.mean())), scrapes.size))
    held, ran = (np.convolve(gauge, around, "same") for gauge in (usage, running))
    share: Floats = np.divide(held, ran, out=np.full(held.size, np.nan), where=ran > 0)
    return share


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


def computed_prompt_tokens(deltas: Mapping[str, Floats]) -> Floats:
    """Prompt tokens computed per window; zeros (a line in D alone) where the engine does not tell them."""
    if "prompt_tokens_computed" in deltas:
        return deltas["prompt_tokens_computed"]
    return deltas.get("prompt_tokens", np.zeros_like(deltas["steps"]))
