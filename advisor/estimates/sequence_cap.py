"""What max_num_seqs should be: the target, the step towards it that is advised now, and what binds it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.policy import Policy

from .load import sequence_cap

DEMAND_SHARE = 0.8


def facts(evidence: Evidence, policy: Policy, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Target, next step and binding ceiling. An objective whose ceiling is unknown yields no raise."""
    target = _target(known)
    return {
        "recommended_max_num_seqs": target,
        "next_max_num_seqs": _next(evidence, policy, known, target),
        "binding_ceiling": _binding(known),
    }


def _memory(known: Mapping[str, Fact]) -> Fact:
    expected = known["memory_ceiling_expected"]
    return expected if expected.number is not None else known["memory_ceiling_guaranteed"]


def _target(known: Mapping[str, Fact]) -> Fact:
    memory, latency = _memory(known), known["latency_ceiling"]
    numbers = {n: f.number for n, f in (("memory", memory), ("latency", latency)) if f.number is not None}
    if not numbers:
        return unknown("neither a memory ceiling nor a latency ceiling is known")
    name = min(numbers, key=lambda n: numbers[n])
    value = max(int(numbers[name]), 1)
    told = ", ".join(f"{n} {numbers[n]:,.0f}" for n in numbers)
    if latency.number is None and latency.low is not None and latency.high is None:
        told += f", latency at least {latency.low:,.0f}"
    return computed(value, source=f"the least of {told}")


def _next(evidence: Evidence, policy: Policy, known: Mapping[str, Fact], target: Fact) -> Fact:
    if target.number is None:
        return unknown(target.unknown or "no target is known")
    cap, latency = sequence_cap(evidence), known["latency_ceiling"]
    goal, seen = int(target.number), _seen(evidence, known)
    if latency.number is None and latency.high is not None:
        goal = min(goal, int(latency.high))
    if seen is None:
        asked = evidence.workload == "interactive" and evidence.slo.tpot_seconds is not None
        if asked and latency.floor is None:
            return unknown("latency at that concurrency was never measured: run a sweep first (--sweep)")
        if not known["observed_seconds"].is_unknown:
            return unknown("a server runs, but how many it served at once was not observed (--prometheus)")
        return computed(goal, source="the target; nothing runs yet")
    reach = math.floor(policy.step_limit * seen)
    value = min(goal, max(reach, 1))
    if cap is not None and value < cap:
        return _lowered(known, cap, value, goal)
    story = f"towards {goal:,}, at most {policy.step_limit:g} x {seen:,.0f} observed"
    return computed(value, source=story)


def _lowered(known: Mapping[str, Fact], cap: int, value: int, goal: int) -> Fact:
    """Below the present cap: only ceilings lower it, and never under the running p95 while objectives are met."""
    if goal >= cap:
        return computed(cap, source="the present cap: far more than was ever needed, and no ceiling below it")
    busy = known["running_p95"].number
    failing = _failing(known)
    if busy is not None and not failing and goal < busy:
        value_kept = min(cap, math.ceil(busy))
        return computed(value_kept, source=f"running p95; the objectives are met, so not down to {goal:,}")
    return computed(goal, source=f"down to the target, {goal:,}" if goal != value else "the target")


def _failing(known: Mapping[str, Fact]) -> bool:
    attainment, asked = known["slo_attainment"], known["slo_target"].number
    most = attainment.ceiling
    return asked is not None and most is not None and most < asked


def _seen(evidence: Evidence, known: Mapping[str, Fact]) -> float | None:
    seen = [known["running_max"].number, evidence.max_concurrency_seen]
    if evidence.sweep is not None:
        seen.append(max(p.concurrency for p in evidence.sweep.points))
    numbers = [float(s) for s in seen if s is not None]
    if not numbers and known["running_p95"].number is not None:
        numbers = [known["running_p95"].number]
    return max(numbers, default=None)


def _binding(known: Mapping[str, Fact]) -> Fact:
    memory, latency, budget = _memory(known).number, known["latency_ceiling"].number, known["budget_ceiling"].number
    ceilings = {n: v for n, v in (("memory", memory), ("latency", latency)) if v is not None}
    if not ceilings:
        return unknown("neither a memory ceiling nor a latency ceiling is known")
    least = min(ceilings, key=lambda n: ceilings[n])
    running, waiting = known["running_p95"].number, known["waiting_p95"].number
    every = [*ceilings.values(), *([budget] if budget is not None else [])]
    if running is not None and waiting is not None and running < DEMAND_SHARE * min(every) and waiting < 1:
        return computed("demand", source=f"{running:,.0f} running at p95, nothing waits")
    if budget is not None and budget < min(ceilings.values()):
        return computed("budget", source=f"token budget {budget:,.0f}, below {least} {ceilings[least]:,.0f}")
    return computed(least, source=", ".join(f"{n} {v:,.0f}" for n, v in ceilings.items()))
