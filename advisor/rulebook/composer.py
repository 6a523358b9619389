"""A rule that held -> the piece of advice: the flag to copy, the reason, the prediction, and how sure it is."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.domain import numbers
from advisor.domain.advice import Advice, Need, Prediction, Undetermined
from advisor.domain.catalogue import CATALOGUE
from advisor.domain.evidence import Evidence, FlagValue
from advisor.domain.fact import Fact
from advisor.engines import flags_of

from . import wording
from .confidence import confidence
from .judge import between, evidence_lines
from .schema import Advise, Expect, Rule

NOISE = 0.10
SHARES = ("gpu_memory_utilization",)
NEARLY_NONE = 0.10
"""What `to_zero` promises at the least: more than a tenth of it left is not gone."""
BESIDE_OTHERS = "Restart one replica with it first and compare it with the others"
ALONE = "Restart it with that and compare the same hours before and after"
"""How a change is verified, by `verify` of its rule; and how where a single replica has no others."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a rule that held yields no advice after all."""

    rule: Rule
    reason: str


def compose(
    rule: Rule, evidence: Evidence, facts: Mapping[str, Fact], options: Sequence[Mapping[str, object]]
) -> Advice | Refusal | Undetermined:
    """The advice of one rule, queued.

    Refusal when it would change nothing, or what the engine refuses at start; Undetermined when the value to advise is
    not known as a number.
    """
    advise = rule.advise
    if advise is None:
        return Refusal(rule, "asks for no change")
    current, value = _values(advise, facts)
    if advise.to is not None and value is None:
        why = facts[advise.to].unknown or between(advise.to, facts[advise.to])
        return Undetermined(rule.id, (Need(advise.to, why),))
    refusal = _refusal(advise, evidence, facts, current, value)
    if refusal is not None:
        return Refusal(rule, refusal)
    flag = _flag(advise, evidence, value)
    besides = _lacking(advise, evidence) or _step(advise, evidence, facts) or _needed(rule, advise, facts)
    lines = evidence_lines(rule.condition, facts)
    sure, basis = confidence(rule, lines, evidence, facts)
    return Advice(
        id=_fingerprint(evidence.name, rule.id, value),
        rule=rule.id,
        title=wording.fill(rule.title, facts),
        state="queued",
        verdict=advise.verdict,
        knob=advise.knob,
        current=current,
        recommended=value,
        flag=flag,
        severity=rule.severity,
        confidence=sure,
        confidence_basis=basis,
        reason=_sentences(wording.fill(rule.reason, facts), besides),
        evidence=lines,
        prediction=tuple(p for e in rule.expect if (p := _predict(e, facts, current, value)) is not None),
        verify=_verify(rule, facts),
        undo=_undo(rule, advise, evidence, facts, current),
        options=tuple(options) if advise.verdict in ("add_replicas", "reshard") else (),
    )


def _sentences(reason: str, besides: str | None) -> str:
    """The reason, and what is to be said besides it after a full stop."""
    return f"{reason.rstrip('.')}. {besides}" if besides else reason


def _verify(rule: Rule, facts: Mapping[str, Fact]) -> str:
    told = wording.fill(rule.verify, facts)
    return told.replace(BESIDE_OTHERS, ALONE) if facts["replicas"].number == 1 else told


def _values(advise: Advise, facts: Mapping[str, Fact]) -> tuple[float | None, float | None]:
    current = facts[advise.knob].number if advise.knob else None
    value = facts[advise.to].number if advise.to else None
    if advise.verdict == "add_replicas" and advise.knob is not None:
        least = facts[advise.to].floor if advise.to else None
        value = _more(current, least)
    whole = advise.knob not in SHARES
    return current, float(math.floor(value)) if value is not None and whole else value


def _typed(value: float) -> FlagValue:
    return int(value) if float(value).is_integer() else value


def _more(current: float | None, least: float | None) -> float | None:
    """The replicas that are needed at least: more than there are, where that is known."""
    counts = [*([current + 1] if current is not None else []), *([math.ceil(least)] if least is not None else [])]
    return max(counts, default=None)


def _flag(advise: Advise, evidence: Evidence, value: float | None) -> str | None:
    """The flag to copy, or None where the advice is no flag or its value is not known."""
    spelling = flags_of(evidence.engine)
    if advise.verdict != "change_flag" or advise.knob is None or value is None or spelling is None:
        return None
    return None if spelling.lacks(advise.knob) else spelling.render_flag(advise.knob, _typed(value))


def _lacking(advise: Advise, evidence: Evidence) -> str | None:
    """That the engine has no flag for what is to change, as a sentence; None where it has one."""
    spelling = flags_of(evidence.engine)
    if advise.verdict != "change_flag" or advise.knob is None or spelling is None:
        return None
    reason = spelling.lacks(advise.knob)
    return f"{reason}." if reason else None


def _step(advise: Advise, evidence: Evidence, facts: Mapping[str, Fact]) -> str | None:
    """What raising the flag would be on this engine: None where its step is not known, or the engine refuses it."""
    spelling = flags_of(evidence.engine)
    if advise.step is None or spelling is None or spelling.lacks(advise.step):
        return None
    current, value = facts[advise.step].number, facts[f"next_{advise.step}"].number
    if current is None or value is None or value <= current or _collisions(advise.step, evidence, facts, value)[0]:
        return None
    return f"Its next step here is {spelling.render_flag(advise.step, _typed(value))}."


def _needed(rule: Rule, advise: Advise, facts: Mapping[str, Fact]) -> str | None:
    """How many replicas, and by what: where the one advised is the least of several, or more than the reason tells."""
    fact = facts[advise.to] if advise.verdict == "add_replicas" and advise.to is not None else None
    if advise.to is None or fact is None or fact.is_unknown or _follows(fact, rule, facts):
        return None
    return f"Replicas needed: {numbers.figure(advise.to, fact)} ({fact.source or 'bounds'})."


def _follows(needed: Fact, rule: Rule, facts: Mapping[str, Fact]) -> bool:
    """Whether the number is no more than the reader makes of the ratio in the reason: 1.77x of one replica are two."""
    ratio, replicas = facts["demand_over_capacity"].ceiling, facts["replicas"].number
    if needed.number is None or "demand_over_capacity" not in wording.names(rule.reason):
        return needed.number is not None
    return ratio is None or replicas is None or needed.number <= math.ceil(ratio * replicas - 1e-9)


def _refusal(
    advise: Advise, evidence: Evidence, facts: Mapping[str, Fact], current: float | None, value: float | None
) -> str | None:
    if advise.knob is None or value is None:
        return None
    if not 0 < value <= 1 if advise.knob in SHARES else value < 1:
        return f"{advise.to} is {value:g}: no value for a flag"
    if advise.verdict != "change_flag":
        return None
    new, cured = _collisions(advise.knob, evidence, facts, value)
    if current is not None and not cured and _is_noise(advise.knob, current, value):
        return f"{current:,.6g} -> {value:,.6g} is a change of under 10 %"
    return f"the engine would refuse to start: {new[0]}" if new else None


def _collisions(knob: str, evidence: Evidence, facts: Mapping[str, Fact], value: float) -> tuple[list[str], list[str]]:
    """What the engine would refuse because of the change, and what collides now and would not after it."""
    spelling, pool = flags_of(evidence.engine), facts["kv_pool_tokens"].number
    if spelling is None:
        return [], []
    pool_tokens = None if pool is None else int(pool)
    flags = {name: flag.value for name, flag in evidence.flags.items()}
    left = facts["kv_pool_tokens_at_next_budget"].floor if knob == "max_num_batched_tokens" else None
    left_tokens = pool_tokens if left is None else int(left)
    before = spelling.violations(flags, evidence.engine_version, pool_tokens=pool_tokens)
    after = spelling.violations(flags | {knob: _typed(value)}, evidence.engine_version, pool_tokens=left_tokens)
    return [line for line in after if line not in before], [line for line in before if line not in after]


def _is_noise(knob: str, current: float, value: float) -> bool:
    """A change under 10 % is none; but a limit that turns requests away is raised by whatever it takes.

    Of a share of memory every percent counts.
    """
    if knob in SHARES or (knob == "max_model_len" and value > current):
        return value == current
    return abs(value - current) < NOISE * current


def _undo(rule: Rule, advise: Advise, evidence: Evidence, facts: Mapping[str, Fact], current: float | None) -> str:
    return _flag(advise, evidence, current) or wording.fill(rule.undo, facts)


def _predict(
    expect: Expect, facts: Mapping[str, Fact], current: float | None, value: float | None
) -> Prediction | None:
    now = facts[expect.metric]
    low = facts[expect.at_least].floor if expect.at_least else None
    high = facts[expect.at_most].ceiling if expect.at_most else None
    present = now.number if now.number is not None else now.ceiling
    if expect.scales == "to_zero" and present is not None:
        low, high = 0.0, present * NEARLY_NONE
    elif expect.scales == "down":
        high = present
    elif expect.scales and present is not None and current and value:
        by = value / current if expect.scales == "with_knob" else current / value
        low, high = present, present * by
    if low is None and high is None:
        return None
    if low is not None and high is not None:
        low, high = sorted((low, high))
    return Prediction(expect.metric, now.number, low, high, CATALOGUE[expect.metric].unit)


def _fingerprint(deployment: str, rule: str, value: float | None) -> str:
    text = "\0".join((deployment, rule, "" if value is None else f"{value:.17g}"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
