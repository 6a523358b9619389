"""What max_num_seqs should be: the target, the step towards it that is advised now, and what binds it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.policy import Policy

from .length_sample import TELL_PAIRS
from .load import sequence_cap
from .memory_ceiling import accepted_risk
from .objectives import ALL, surely_met, surely_missed
from .saturation import MOST_PREEMPTED
from .sweep_ceiling import on_one_engine
from .sweep_lengths import on_other_lengths

DEMAND_SHARE = 0.8
NO_CEILING = "neither a memory ceiling nor a latency ceiling is known"
BETWEEN = "between {:,.0f} and {:,.0f} sequences fit the cache: " + f"{TELL_PAIRS} would tell"
ROOMY = 0.6
BATCH_STEP = 4.0
"""Batch work promises no latency: what a step beyond the observed could break is only throughput."""


def facts(evidence: Evidence, policy: Policy, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Target, next step and binding ceiling. An objective whose ceiling is unknown yields no raise."""
    target = _target(known)
    return {
        "recommended_max_num_seqs": target,
        "next_max_num_seqs": _next(evidence, policy, known, target),
        "binding_ceiling": _binding(known),
    }


def _memory(known: Mapping[str, Fact]) -> Fact:
    """The expected ceiling. Known only to be at most so many it is at least what is guaranteed; unknown, it is that."""
    expected, guaranteed = known["memory_ceiling_expected"], known["memory_ceiling_guaranteed"]
    if expected.number is not None:
        return expected
    if expected.high is None:
        return guaranteed
    return replace(expected, low=min(guaranteed.floor or 0.0, expected.high))


def _target(known: Mapping[str, Fact]) -> Fact:
    """The least of the known ceilings; bounds where one that is known only by bounds may be the least."""
    ceilings = {"memory": _memory(known), "latency": known["latency_ceiling"]}
    numbers = {n: f.number for n, f in ceilings.items() if f.number is not None}
    least = min(numbers.values(), default=math.inf)
    highs = {n: f.high for n, f in ceilings.items() if f.number is None and f.high is not None and f.high < least}
    if highs:
        name = min(highs, key=lambda n: highs[n])
        low, high = min(ceilings[n].low or 0 for n in highs), max(int(highs[name]), 1)
        story = f"{name} between {low:,.0f} and {highs[name]:,.0f} is the least"
        return computed(None, low=min(max(int(low), 1), high), high=high, source=story)
    if not numbers:
        return unknown(NO_CEILING)
    told = ", ".join(f"{n} {numbers[n]:,.0f}" for n in numbers)
    latency = ceilings["latency"]
    if latency.number is None and latency.low is not None:
        told += f", latency at least {latency.low:,.0f}"
    return computed(max(int(least), 1), source=f"the least of {told}")


def _next(evidence: Evidence, policy: Policy, known: Mapping[str, Fact], target: Fact) -> Fact:
    cap, seen = sequence_cap(evidence), _seen(evidence, known)
    if target.ceiling is None:
        return _roomy_step(evidence, policy, known, seen) or unknown(target.unknown or NO_CEILING)
    goal = int(target.ceiling)
    if blind := _blind(known, cap, seen):
        return unknown(blind)
    step = max(policy.step_limit, BATCH_STEP) if evidence.workload == "batch" else policy.step_limit
    value = goal if seen is None else min(goal, _beyond(step, seen))
    if cap is not None and seen is not None and value < cap:
        return _lowered(known, cap, value, goal, accepted_risk(evidence, policy))
    if value != cap and (
        held := _held(evidence, known, target, value) or _doubted(known, value) or _cramped(known, value, seen)
    ):
        return unknown(held)
    if seen is None:
        return computed(goal, source="the highest that fits; nothing runs yet")
    return computed(value, source=f"towards {goal:,}, at most {step:g} x {seen:,.0f} observed")


def _beyond(step: float, seen: float) -> int:
    """So many times what was seen, and one more at least: half more than one would be none."""
    return max(math.floor(step * seen), math.floor(seen) + 1)


def _roomy_step(evidence: Evidence, policy: Policy, known: Mapping[str, Fact], seen: float | None) -> Fact | None:
    """One step without any ceiling, where the cache says that it has room: 8 running at 6 % are 12 at 9 %."""
    usage = known["kv_usage_p95"].number
    if seen is None or usage is None or usage * policy.step_limit > ROOMY:
        return None
    value = _beyond(policy.step_limit, seen)
    if _held(evidence, known, unknown(NO_CEILING), value):
        return None
    story = f"{policy.step_limit:g} x {seen:,.0f} observed; no ceiling is known, the cache was {usage:.0%} full"
    return computed(value, source=story)


def _blind(known: Mapping[str, Fact], cap: int | None, seen: float | None) -> str | None:
    """Why what was observed is nothing to step from."""
    if seen is None and not known["observed_seconds"].is_unknown:
        return "a server runs, but how many it served at once was not observed (--prometheus)"
    if cap is None and seen is not None and seen < 1:
        return "nothing ran while it was observed, and the present cap is not known (--set max_num_seqs=N)"
    return None


def _held(evidence: Evidence, known: Mapping[str, Fact], target: Fact, value: int) -> str | None:
    """Why the cap may not be raised: a time per token is promised, and nothing says that it would hold."""
    if evidence.workload != "interactive" or evidence.slo.tpot_seconds is None:
        return None
    if known["latency_ceiling"].floor is None:
        return "latency at that concurrency was never measured: run a sweep first (--sweep)"
    if target.number is None and _slow(known) and value > (known["latency_ceiling"].low or 0):
        return "the time per token is missed now, and where it would hold is not measured: run a sweep first (--sweep)"
    return None


def _cramped(known: Mapping[str, Fact], value: int, seen: float | None) -> str | None:
    """Why nobody knows that so many fit: the ceiling is no number, and the cache does not show room for the step."""
    memory, usage = _memory(known), known["kv_usage_p95"].number
    if memory.number is not None or memory.high is None or value <= (memory.low or 0):
        return None
    if seen is not None and usage is not None and usage * value <= ROOMY * seen:
        return None
    return BETWEEN.format(memory.low or 0, memory.high)


def _doubted(known: Mapping[str, Fact], value: int) -> str | None:
    """Why nobody knows that so many meet the time per token: it was seen failing, somewhere between bounds."""
    latency = known["latency_ceiling"]
    if latency.number is not None or latency.high is None or value <= (latency.low or 0):
        return None
    return (
        f"between {latency.low or 0:,.0f} and {latency.high:,.0f} sequences meet the time per token: a sweep would tell"
    )


def _lowered(known: Mapping[str, Fact], cap: int, value: int, goal: int, accepted: float) -> Fact:
    """Below the present cap: only ceilings lower it, and never under the most that ran unless objectives are missed.

    Where nobody can tell whether they are met nothing is lowered either: a cap under what runs makes requests queue.
    Where they are not surely met and more is preempted than accepted, the most that ran did not fit: then never under
    the p95. Where a fifth is preempted, work is done twice and fewer at once serve more: then down to the ceiling.
    """
    if goal >= cap:
        return computed(cap, source="the present cap: far more than was ever needed, and no ceiling below it")
    preempted = known["preempted_share"].floor or 0.0
    crowded = preempted > accepted and not surely_met(known)
    name = "running_p95" if crowded or known["running_max"].number is None else "running_max"
    busy = known[name].number
    if busy is not None and not surely_missed(known) and preempted < MOST_PREEMPTED and goal < busy:
        kept = min(cap, math.ceil(busy))
        return computed(kept, source=f"{name.replace('_', ' ')}; {_standing(known)}, so not down to {goal:,}")
    fits = "the highest that fits"
    return computed(goal, source=fits if goal == value else f"down to {fits}, {goal:,}")


def _standing(known: Mapping[str, Fact]) -> str:
    """What is known of objectives that are not surely missed."""
    if known["slo_target"].number is None:
        return "no objective is given that could be missed"
    return "the objectives are met" if surely_met(known) else "whether the objectives are met cannot be told"


def _slow(known: Mapping[str, Fact]) -> bool:
    """Whether the time per token is missed, all that a higher cap endangers; where nobody can tell, any objective."""
    untold = known["slo_attainment_tpot"].is_unknown
    return surely_missed(known, ALL if untold else "slo_attainment_tpot")


def _seen(evidence: Evidence, known: Mapping[str, Fact]) -> float | None:
    seen = [known["running_max"].number, evidence.max_concurrency_seen]
    if (sweep := on_one_engine(evidence)) is not None and on_other_lengths(sweep, evidence) is None:
        seen += [p.concurrency for p in sweep.points]
    numbers = [float(s) for s in seen if s is not None]
    if not numbers and known["running_p95"].number is not None:
        numbers = [known["running_p95"].number]
    return max(numbers, default=None)


def _binding(known: Mapping[str, Fact]) -> Fact:
    budget = known["budget_ceiling"].number
    both = {"memory": _memory(known), "latency": known["latency_ceiling"]}
    ceilings = {n: f.ceiling for n, f in both.items() if f.ceiling is not None}
    if not ceilings:
        return unknown("neither a memory ceiling nor a latency ceiling is known")
    least = min(ceilings, key=lambda n: ceilings[n])
    running, waiting = known["running_p95"].number, known["waiting_p95"].number
    every = [*ceilings.values(), *(n for n in (budget, known["max_num_seqs"].number) if n is not None)]
    if running is not None and waiting is not None and running < DEMAND_SHARE * min(every) and waiting < 1:
        return computed("demand", source=f"{running:,.0f} running at p95, nothing waits")
    if budget is not None and budget < min(ceilings.values()):
        return computed("budget", source=f"token budget {budget:,.0f}, below {least} {ceilings[least]:,.0f}")
    return computed(least, source=", ".join(f"{n} {v:,.0f}" for n, v in ceilings.items()))
