"""One deployment's message: what to do, why, what to expect, how to check and undo it, and how to have it wait."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from advisor.domain.advice import Advice
from advisor.domain.canary import Canary
from advisor.domain.fact import FactSheet
from advisor.domain.numbers import figure
from advisor.domain.pictures import Pictures
from advisor.domain.report import DeploymentReport
from advisor.outlets import phrases
from advisor.outlets.plain import plain

from .mrkdwn import code, mention, prose
from .post import MOST_MESSAGE_CHARACTERS, Message, Picture, fitting, section, small
from .standing import Standing

_CEILINGS = (
    ("memory, no request preempted", "memory_ceiling_guaranteed"),
    ("memory, expected", "memory_ceiling_expected"),
    ("latency", "latency_ceiling"),
    ("token budget", "budget_ceiling"),
)
_MOST_CANARIES = 2
_SNOOZE = timedelta(days=14)
_MARKS = {"critical": "🚨", "warning": "❗", "opportunity": "💡", "info": "💡"}
_ROOM_FOR_CLOSING = 2_700


def message(standing: Standing, *, key: str, owner: str | None, now: float, urgent: bool = False) -> Message:
    """What is said of one deployment. `urgent` is for a message that stands alone, outside the weekly report."""
    deployment = standing.deployment
    title, canaries = _title(deployment, owner, urgent=urgent), map(_canary, deployment.canaries[:_MOST_CANARIES])
    paragraphs = [title, *map(_advice, standing.advice), *canaries, _ceilings(deployment.facts)]
    kept = fitting(filter(None, paragraphs), MOST_MESSAGE_CHARACTERS - _ROOM_FOR_CLOSING)
    heads = "; ".join(lines_of(a)[0] for a in standing.advice[:3])
    return Message(
        key=key,
        text=f"{'Critical: ' if urgent else ''}{prose(standing.name, most=80)}: {heads}",
        blocks=(*map(section, kept), small(_closing(standing, now))),
        picture=_picture(standing.name, deployment.pictures),
        announces=tuple(a.id for a in standing.advice),
    )


def mark(advice: Advice) -> str:
    """One sign for the eye, so that severity needs no colour."""
    return _MARKS[advice.severity]


def lines_of(advice: Advice) -> tuple[str, str, str]:
    """A piece of advice in three short lines: what, the flag to copy (empty where there is none), why."""
    flag = code(advice.flag) if advice.flag else ""
    return prose(phrases.headline(advice), most=120), flag, prose(advice.reason)


def _title(deployment: DeploymentReport, owner: str | None, *, urgent: bool) -> str:
    evidence = deployment.evidence
    facts = (phrases.replicas(evidence.replicas), phrases.engine(evidence), phrases.objectives(evidence.slo))
    identity = " · ".join([code(evidence.name), *(prose(f) for f in facts if f)])
    called = f"  {mention(owner)}" if owner else ""
    return f"{'🚨 *Critical advice*' + chr(10) if urgent else ''}{identity}{called}"


def _advice(advice: Advice) -> str:
    return "\n".join(_advice_lines(advice))


def _advice_lines(advice: Advice) -> Iterator[str]:
    what, flag, why = lines_of(advice)
    yield f"{mark(advice)} *{what}*"
    if flag:
        yield flag
    yield f"*Why:* {why}"
    for option in phrases.options(advice)[:3]:
        yield f"*Option:* {prose(option)}"
    if expected := phrases.expectations(advice):
        yield f"*Expect:* {' · '.join(prose(text, most=120) for text in expected[:4])}"
    if advice.trial:
        yield f"*Try:* {prose(advice.trial)}"
    yield f"*Verify:* {prose(advice.verify)}"
    yield f"*Undo:* {code(advice.undo) if advice.undo.startswith('--') else prose(advice.undo)}"
    yield f"*Confidence:* {advice.confidence}, {prose(advice.confidence_basis, most=160)}"


def _canary(canary: Canary) -> str:
    told = " · ".join(phrases.comparison(canary)[:2])
    return f"*Canary:* {prose(phrases.canary(canary), most=300)}\n{prose(told, most=400)}"


def _ceilings(facts: FactSheet) -> str:
    """Four lines, also for those that nobody can tell; nothing when that is all of them."""
    if all(facts[name].is_unknown for _, name in _CEILINGS):
        return ""
    lines = [f"• {label}: *{prose(figure(name, facts[name]))}*{_story(facts, name)}" for label, name in _CEILINGS]
    return "\n".join((f"*Ceilings on* {code('max_num_seqs')}", *lines))


def _story(facts: FactSheet, name: str) -> str:
    told = facts[name].unknown or facts[name].source or ""
    return f" ({prose(told, most=90)})" if told else ""


def _closing(standing: Standing, now: float) -> str:
    """What comes next, and the commands to copy: for all of it, and to have this advice wait for two weeks."""
    until = (datetime.fromtimestamp(now, UTC) + _SNOOZE).date()
    queued = [code(phrases.action(a)) for a in standing.deployment.judgement.advice if a.state == "queued"]
    lines = [f"Queued behind it: {', '.join(queued[:3])}{' ...' if queued[3:] else ''}"] if queued else []
    lines += [prose(told[:1].upper() + told[1:]) for told in phrases.epoch(standing.deployment.evidence)]
    lines.append(f"All of it: {code('advisor show ' + shlex.quote(plain(standing.name, limit=80)), most=120)}")
    wait = "advisor snooze {} --until {} --reason ..."
    lines += [f"Not now: {code(wait.format(a.id, until))}" for a in standing.advice[:2]]
    return "\n".join(lines)


def _picture(name: str, pictures: Pictures) -> Picture | None:
    shown = [
        "lengths of requests with p99.9, proposal and present limit" if pictures.lengths else "",
        "time per token over concurrency with objective and ceilings" if pictures.curve else "",
    ]
    told = "; ".join(text for text in shown if text)
    return Picture(name, pictures, f"{plain(name, limit=80)}: {told}") if told else None
