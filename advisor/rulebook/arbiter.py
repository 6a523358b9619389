"""One change at a time: which advice is open, which waits behind it, and what that makes of the deployment.

The order, first to last:
1. severity: critical, warning, opportunity, info. What hurts users now goes before what saves money.
2. verdict: replicas and sharding before flags (a flag cannot replace a missing GPU), flags before measurements,
   measurements before better instruments, those before investigations.
3. knob: max_model_len before max_num_seqs before max_num_batched_tokens: a limit that refuses traffic hides the rest.
4. the rule's id, so that the order never depends on the file system.
A rule may name others that it comes `after` all the same: what a limit turned away comes back as load, so first seats.

One knob gets one value: the first in this order. A deployment that is only being planned (nothing runs) gets all its
flags at once, all open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from advisor.domain.advice import SEVERITIES, Advice, Finding, Judgement, NotFired, Status, Undetermined, Verdict
from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact

from . import wording
from .composer import Refusal, compose
from .condition import parse
from .judge import evidence_lines, judge
from .schema import Rule

VERDICT_ORDER: tuple[Verdict, ...] = (
    "add_replicas",
    "reshard",
    "remove_replicas",
    "split_workload",
    "change_flag",
    "run_sweep",
    "fix_instrumentation",
    "investigate",
)
KNOB_ORDER = (
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "replicas",
    None,
)
MISSED = parse("slo_attainment < slo_target")
CANNOT_TELL: tuple[Verdict, ...] = ("run_sweep", "fix_instrumentation")
SIZED = (
    "recommended_max_model_len",
    "memory_ceiling_guaranteed",
    "latency_ceiling",
    "kv_pool_tokens",
    "kv_copies",
    "throughput_knee",
)
RUNS = (
    "observed_seconds",
    "running_p95",
    "running_max",
    "waiting_p95",
    "waiting_share",
    "ttft_p99",
    "kv_usage_p95",
    "preempted_share",
    "time_at_sequence_cap",
    "refused_share_now",
    "slo_attainment",
    "slo_attainment_tpot",
    "slo_attainment_ttft",
    "slo_attainment_itl",
    "demand_requests_per_second_mean",
)
Options = Sequence[Mapping[str, object]]


def advise(rules: Iterable[Rule], evidence: Evidence, facts: Mapping[str, Fact], options: Options) -> Judgement:
    """Judge all rules and arbitrate what they ask for."""
    planned = is_planned(evidence, facts)
    verdicts = judge((r for r in rules if planned or not r.plans), evidence, facts)
    wanted = [(r, compose(r, evidence, facts, options)) for r in verdicts.fired if r.advise is not None]
    composed, stated = _explained(wanted, [r for r, _ in verdicts.undetermined])
    after = {rule.id: rule.after for rule, _ in composed}
    advice = arbitrate([c for _, c in composed if isinstance(c, Advice)], after, planned=planned)
    advice = _with_misses(advice, {rule.id: rule.reason for rule, _ in composed}, facts)
    refused = [NotFired(c.rule.id, c.reason, None, None) for _, c in composed if isinstance(c, Refusal)]
    undecided = [*verdicts.undetermined, *((r, c) for r, c in composed if isinstance(c, Undetermined))]
    findings = tuple(
        Finding(r.id, wording.fill(r.title, facts), evidence_lines(r.condition, facts))
        for r in verdicts.fired
        if r.advise is None or r in stated
    )
    nothing = planned and not findings and all(facts[name].is_unknown for name in SIZED)
    return Judgement(
        status=_status(advice, [r for r, _ in undecided], nothing_known=nothing),
        advice=advice,
        findings=findings,
        undetermined=tuple(u for _, u in undecided),
        not_fired=(*verdicts.not_fired, *refused),
    )


def _with_misses(
    advice: tuple[Advice, ...], reasons: Mapping[str, str], facts: Mapping[str, Fact]
) -> tuple[Advice, ...]:
    """The first of them says before all else that users are being failed, unless its own reason does so."""
    if not advice or not MISSED.holds(facts):
        return advice
    first, *others = advice
    if any(name.startswith("slo_attainment") for name in wording.names(reasons[first.rule])):
        return advice
    missed = wording.fill("{slo_attainment} of requests meet their targets, {slo_target} should", facts)
    return replace(first, reason=f"{missed}; {first.reason}"), *others


Composed = tuple[Rule, Advice | Refusal | Undetermined]


def _explained(composed: Sequence[Composed], waiting: Sequence[Rule]) -> tuple[list[Composed], list[Rule]]:
    """Rules of last resort step back where another one knows what to do, and only state while others wait for facts."""
    last = [rule for rule, _ in composed if rule.last_resort]
    others = [(rule, told) for rule, told in composed if not rule.last_resort]
    if any(isinstance(told, Advice) and told.severity != "info" for _, told in others):
        return [*others, *((rule, Refusal(rule, "another rule advises what to do")) for rule in last)], []
    open_ = [*waiting, *(rule for rule, told in others if isinstance(told, Undetermined))]
    return (others, last) if any(rule.matters for rule in open_) else (list(composed), [])


def arbitrate(
    advice: Sequence[Advice], after: Mapping[str, Sequence[str]] | None = None, *, planned: bool
) -> tuple[Advice, ...]:
    """In the order above, one per knob; the first open, and if it is a flag every flag of a deployment only planned."""
    ordered = _in_turn(sorted(advice, key=order), after or {})
    kept: list[Advice] = []
    for one in ordered:
        if one.knob is None or all(one.knob != other.knob for other in kept):
            kept.append(one)
    at_once = planned and bool(kept) and kept[0].verdict == "change_flag"
    return tuple(
        replace(one, state="open") if place == 0 or (at_once and one.verdict == "change_flag") else one
        for place, one in enumerate(kept)
    )


def _in_turn(ordered: Sequence[Advice], after: Mapping[str, Sequence[str]]) -> list[Advice]:
    """Each piece of advice behind those that its rule comes after."""
    turn = list(ordered)
    for one in ordered:
        before = [place for place, other in enumerate(turn) if other.rule in after.get(one.rule, ())]
        if before and max(before) > turn.index(one):
            turn.insert(max(before), turn.pop(turn.index(one)))
    return turn


def order(advice: Advice) -> tuple[int, int, int, str]:
    """The sort key of the order above."""
    return (
        SEVERITIES.index(advice.severity),
        VERDICT_ORDER.index(advice.verdict),
        KNOB_ORDER.index(advice.knob),
        advice.rule,
    )


def is_planned(evidence: Evidence, facts: Mapping[str, Fact]) -> bool:
    """Whether nothing runs yet: neither metrics nor logged requests, nor anything stated of a running server."""
    if evidence.engines or evidence.log is not None or evidence.exported is not None:
        return False
    return all(facts[name].is_unknown for name in RUNS)


def _status(advice: tuple[Advice, ...], undecided: Iterable[Rule], *, nothing_known: bool) -> Status:
    if advice:
        return "cannot_tell" if advice[0].verdict in CANNOT_TELL else "advice"
    if nothing_known:
        return "no_data"
    return "cannot_tell" if any(rule.matters for rule in undecided) else "ok"
