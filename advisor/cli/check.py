"""`advisor check`: one evaluation, no daemon and no state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from advisor.cli import NOT_JUDGED
from advisor.cli.sources import request, source_options
from advisor.cli.terminal import terminal

if TYPE_CHECKING:
    from advisor.domain.report import Report

FORMATS = ("table", "json", "yaml", "markdown", "csv", "html")


@click.command(name="check")
@source_options
@click.option(
    "-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="Format of the result."
)
@click.option("--fail-on", type=click.Choice(["warning", "critical"]), help="Exit 1 when advice is at or above this.")
@click.option("--no-color", is_flag=True, help="Plain text; NO_COLOR does the same.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Details of every deployment; steps, queries and samples on stderr."
)
@click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but errors.")
def command(output: str, fail_on: str | None, no_color: bool, verbose: bool, quiet: bool, **given: Any) -> int:
    """Evaluate deployments once and print the advice. Nothing is changed anywhere."""
    from advisor.cycle import run_once

    asked = request(given)
    tell = _note if verbose and not quiet else _silent
    report = run_once(asked.settings, asked.window, set_flags=asked.set_flags, deployment=asked.deployment, tell=tell)
    width, color = terminal(no_color=no_color)
    click.echo(_rendered(report, output, width=width, color=color, verbose=verbose))
    return _exit_code(report, asked.deployment, fail_on, strict=asked.settings.strict)


def _rendered(report: Report, output: str, *, width: int, color: bool, verbose: bool) -> str:
    if output == "html":
        from advisor.web.standalone import render_html

        return render_html(report)
    from advisor.outlets import FORMATS as RENDERERS

    return RENDERERS[output](report, width=width, color=color, verbose=verbose)


def _exit_code(report: Report, deployment: str | None, fail_on: str | None, *, strict: bool) -> int:
    from advisor.domain.advice import SEVERITIES

    failed = [s for s in report.sources if s.status == "failed"]
    judged = [d for d in report.deployments if d.judgement.status != "no_data"]
    if not judged or (strict and failed):
        for line in _why_not_judged(report, deployment):
            click.echo(f"advisor: {line}", err=True)
        return NOT_JUDGED
    if fail_on is not None:
        bar = SEVERITIES.index("critical" if fail_on == "critical" else "warning")
        advice = [a for d in report.deployments for a in d.judgement.advice]
        return int(any(SEVERITIES.index(a.severity) <= bar for a in advice))
    return 0


def _why_not_judged(report: Report, deployment: str | None) -> list[str]:
    from advisor.outlets.plain import plain

    lines = [plain(f"{s.name}: {s.detail}") for s in report.sources if s.status == "failed"]
    if lines:
        return lines
    if deployment is not None and not report.deployments:
        return [plain(f"no deployment is called {deployment!r}: advisor doctor lists those that were found")]
    if not report.sources:
        return ["no deployment could be judged: name a source (--prometheus, --engine, --logs, --evidence)"]
    return ["no deployment could be judged: the sources show no traffic in this window: check --since and --until"]


def _note(line: str) -> None:
    from advisor.outlets.plain import plain

    click.echo(f"advisor: {plain(line)}", err=True)


def _silent(_: str) -> None:
    pass
