"""The report as GitHub-flavoured Markdown: a table of all deployments and a section for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from advisor.domain.advice import Advice
from advisor.domain.numbers import figure
from advisor.domain.report import DeploymentReport, Report

from . import phrases, silence
from .derivations import derived, length_rows, story
from .observations import observed
from .plain import plain

_ENTITIES = {"&": "&amp;", "<": "&lt;"}
_SPECIAL = re.compile(
    r"""[&<\\`*\[\]|~@$] | (?<![A-Za-z0-9])_ | _(?![A-Za-z0-9]) | :(?=//) | (?<=www)\.""",
    re.VERBOSE,
)


def render_markdown(report: Report) -> str:
    """The report as Markdown, without a newline at its end. No name can become markup, a link or a mention."""
    return "\n\n".join(block for block in _blocks(report) if block)


def prose(text: str) -> str:
    r"""Text as Markdown shows it literally: `<b> *x*` becomes `&lt;b> \*x\*`."""
    return _SPECIAL.sub(lambda m: _ENTITIES.get(m[0], f"\\{m[0]}"), plain(text))


def code(text: str) -> str:
    """Text as a code span, in which nothing is markup, so that names and flags copy as they are.

    Only a pipe, which would end the cell of a table and cannot be escaped in a code span, becomes a broken bar.
    """
    shown = plain(text).replace("|", "¦")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    blank = " " if "`" in shown else ""
    return f"{fence}{blank}{shown or ' '}{blank}{fence}"


def _blocks(report: Report) -> Iterator[str]:
    yield "# Serving advice"
    yield f"{phrases.span_of_time(report.window)}, {phrases.deployments(len(report.deployments))}. Nothing was changed."
    if report.deployments:
        yield _table(("", "Deployment", "Engine", "Advice", "Why"), map(_overview, report.deployments))
    yield _list(f"{prose(s.name)} **{s.status}**: {prose(s.detail)}" for s in report.sources)
    for deployment in report.deployments:
        yield from _section(deployment)


def _overview(deployment: DeploymentReport) -> tuple[str, ...]:
    evidence = deployment.evidence
    copies = "" if evidence.replicas is None else f" x{evidence.replicas}"
    marks, actions, reasons = zip(*phrases.answers(deployment), strict=True)
    name = code(evidence.name) + copies
    return (code(marks[0]), name, prose(phrases.engine(evidence)), _stacked(code, actions), _stacked(prose, reasons))


def _stacked(written: Callable[[str], str], texts: Iterable[str]) -> str:
    return "<br>".join(map(written, texts))


def _section(deployment: DeploymentReport) -> Iterator[str]:
    evidence, judgement = deployment.evidence, deployment.judgement
    yield f"## {code(evidence.name)}"
    words = (phrases.replicas(evidence.replicas), phrases.engine(evidence), evidence.workload)
    yield prose(" · ".join(word for word in (*words, phrases.objectives(evidence.slo)) if word))
    yield prose("; ".join(phrases.epoch(evidence)))
    for canary in deployment.canaries:
        yield f"### Canary: {prose(phrases.canary(canary))}"
        yield _list(map(prose, phrases.comparison(canary)))
    for advice in judgement.advice:
        yield f"### {'Queued: ' if advice.state == 'queued' else ''}{prose(phrases.headline(advice))}"
        yield _list(_advice(advice))
    yield from _figures(deployment)
    yield from _titled("Findings", (f"{prose(f.title)} ({code(f.rule)})" for f in judgement.findings))
    near = silence.nearest(judgement.not_fired)
    yield from _titled("Why not", (f"{code(rule.rule)}: {prose(silence.shortfall(rule))}" for rule in near))
    lacks = silence.needs(judgement.undetermined)
    yield from _titled("Unknown", (f"{', '.join(map(code, lack.facts))}: {prose(lack.reason)}" for lack in lacks))


def _figures(deployment: DeploymentReport) -> Iterator[str]:
    facts, rows = deployment.facts, derived(deployment.judgement.advice)
    known = [(label, name, facts[name]) for label, name in rows if not facts[name].is_unknown]
    if known:
        yield "### Limits"
        shown = ((label, prose(figure(name, fact)), prose(story(name, fact))) for label, name, fact in known)
        yield _table(("Figure", "Value", "From"), shown)
    head, *lengths = length_rows(facts)
    if lengths:
        yield "### Lengths"
        yield _table(head, lengths)
    yield from _titled("Observed", (f"**{title.capitalize()}:** {prose(text)}" for title, text in observed(deployment)))


def _advice(advice: Advice) -> Iterator[str]:
    if advice.flag:
        yield f"**Flag:** {code(advice.flag)}"
    yield f"**Why:** {prose(advice.reason)}"
    for line in advice.evidence:
        yield f"**Because:** {prose(phrases.ground(line))}"
    for option in phrases.options(advice):
        yield f"**Option:** {prose(option)}"
    for expected in phrases.expectations(advice):
        yield f"**Expect:** {prose(expected)}"
    if advice.trial:
        yield f"**Try:** {prose(advice.trial)}"
    yield f"**Verify:** {prose(advice.verify)}"
    yield f"**Undo:** {prose(advice.undo)}"
    yield f"**Confidence:** {advice.confidence}: {prose(advice.confidence_basis)}"
    yield f"**Rule:** {code(advice.rule)} ({advice.severity})"


def _titled(title: str, items: Iterable[str]) -> Iterator[str]:
    listed = _list(items)
    if listed:
        yield f"### {title}"
        yield listed


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
