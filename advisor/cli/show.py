"""`advisor show`: everything about one deployment, with its charts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor.cli.store_access import latest_report, place_options
from advisor.cli.terminal import terminal

if TYPE_CHECKING:
    from advisor.domain.report import Report

OUTPUTS = ("table", "json", "yaml", "markdown", "csv", "evidence")


@click.command(name="show")
@click.argument("deployment", metavar="DEPLOYMENT")
@place_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(OUTPUTS),
    default="table",
    show_default=True,
    help="`evidence` is a file for `advisor check --evidence`.",
)
@click.option("--no-color", is_flag=True, help="Plain text; NO_COLOR does the same.")
@click.option("-v", "--verbose", is_flag=True, help="Leave nothing out.")
def command(
    deployment: str,
    config: Path | None,
    store: Path | None,
    server: str | None,
    output: str,
    no_color: bool,
    verbose: bool,
) -> None:
    """Lengths, ceilings, advice, evidence, why and why not of one DEPLOYMENT; its charts drawn below."""
    from advisor.outlets import FORMATS
    from advisor.outlets.drawings import drawings
    from advisor.outlets.evidence import render_evidence

    report = _only(latest_report(server, store, config), deployment)
    (shown,) = report.deployments
    if output == "evidence":
        click.echo(render_evidence(shown))
        return
    width, color = terminal(no_color=no_color)
    click.echo(FORMATS[output](report, width=width, color=color, verbose=verbose))
    if output == "table":
        for line in ("", *drawings(shown.pictures, width)):
            click.echo(line)


def _only(report: Report, name: str) -> Report:
    from dataclasses import replace

    from advisor.domain.errors import SourceError
    from advisor.sources.yaml_file import nearest

    found = tuple(d for d in report.deployments if d.evidence.name == name)
    if not found:
        names = [d.evidence.name for d in report.deployments]
        raise SourceError(f"no deployment is called {name[:60]!r}; {nearest(name, names)}", permanent=True)
    return replace(report, deployments=found)
