"""The default output: one line a deployment, its details below where they are asked for, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.domain.report import DeploymentReport, Report

from . import phrases
from .detail import detail
from .layout import fitted, hanging, left, width_of, wrapped

_NARROWEST, _WIDEST = 80, 120
_LONGEST_ACTION = 44  # `--max-num-batched-tokens 131072 -> 262144` must never be shortened
_ROOM_FOR_WHY = 34
_WHY_LINES, _WHY_LINES_ALONE = 2, 6
"""Of several deployments each has few lines; of a single one the reason is told to its end."""


def render_table(report: Report, *, width: int = 80, color: bool = False, verbose: bool = False) -> str:
    """The report for a terminal of `width` columns (80 to 120 are used), without a newline at its end.

    A single deployment is shown in full, several only with `verbose`. Colour adds escape sequences and moves nothing.
    """
    columns = min(max(width, _NARROWEST), _WIDEST)
    text = "\n".join(line.rstrip() for line in _lines(report, columns, verbose=verbose))
    if not color:
        return text
    from .color import painted  # noqa: PLC0415 - rich is slow to import and only wanted for colour

    return painted(text)


def _lines(report: Report, width: int, *, verbose: bool) -> Iterator[str]:
    yield from _header(report, width)
    yield ""
    if report.deployments:
        yield from _overview(report.deployments, width)
        yield ""
    single = len(report.deployments) == 1 and report.deployments[0].judgement.status != "no_data"
    shown = report.deployments if verbose or single else ()
    for deployment in shown:
        yield from detail(deployment, width, verbose=verbose)
        yield ""
    yield from _sources(report, width, verbose=verbose)
    yield from wrapped(_closing(report, detailed=bool(shown)), width)


def _header(report: Report, width: int) -> list[str]:
    sources = ", ".join(f"{source.name} {source.status}" for source in report.sources)
    parts = (phrases.span_of_time(report.window), phrases.deployments(len(report.deployments)), sources)
    return wrapped(" · ".join(part for part in parts if part), width)


@dataclass(frozen=True, slots=True)
class _Row:
    mark: str
    name: str
    replicas: str
    engine: str
    action: str
    why: str


def _rows(deployment: DeploymentReport) -> Iterator[_Row]:
    evidence = deployment.evidence
    replicas = "" if evidence.replicas is None else f"x{evidence.replicas}"
    identity = (evidence.name, replicas, phrases.engine(evidence))
    for mark, action, why in phrases.answers(deployment):
        yield _Row(mark, *identity, action, why)
        identity = ("", "", "")


def _overview(deployments: tuple[DeploymentReport, ...], width: int) -> Iterator[str]:
    """WHY stands beside the advice where there is room for it, else below."""
    rows = [_Row(" ", "DEPLOYMENT", "", "ENGINE", "ADVICE", "WHY")]
    rows += [row for deployment in deployments for row in _rows(deployment)]
    most = _WHY_LINES if len(deployments) > 1 else _WHY_LINES_ALONE
    engine = min(width_of(row.engine for row in rows), 16)
    action = min(width_of(row.action for row in rows), _LONGEST_ACTION)
    copies = min(width_of(row.replicas for row in rows), 4)
    name = min(width_of(row.name for row in rows), width - action - engine - copies - 7, width // 4)
    room = width - name - copies - engine - action - 9
    for row in rows:
        head = f"{row.mark} {left(row.name, name)} {left(row.replicas, copies)}  {left(row.engine, engine)}  "
        if room >= _ROOM_FOR_WHY:
            head += f"{left(row.action, action)}  "
            yield from hanging(head, row.why, width=width, most=most)
        else:
            yield head + fitted(row.action, action)
            if row is not rows[0]:
                yield from hanging("    ", row.why, width=width, most=most)


def _sources(report: Report, width: int, *, verbose: bool) -> Iterator[str]:
    told = [s for s in report.sources if s.detail and (verbose or s.status != "ok")]
    for source in told:
        yield from hanging("  ", f"{source.name} {source.status}: {source.detail}", width=width)
    if told:
        yield ""


def _closing(report: Report, *, detailed: bool) -> str:
    queued = sum(a.state == "queued" for d in report.deployments for a in d.judgement.advice)
    if not queued or detailed:
        return "Nothing was changed."
    more = "1 more piece of advice is" if queued == 1 else f"{queued} more pieces of advice are"
    return f"{more} queued behind these (-v shows them). Nothing was changed."
