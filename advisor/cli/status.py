"""`advisor status`: current advice of every deployment, one line each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor.cli import NOT_JUDGED
from advisor.cli.store_access import latest_document, latest_report, opened, place_options
from advisor.cli.terminal import terminal

if TYPE_CHECKING:
    from advisor.domain.ports import Delivery
    from advisor.outlets.status import Overview


@click.command(name="status")
@place_options
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--no-color", is_flag=True, help="Plain text; NO_COLOR does the same.")
def command(config: Path | None, store: Path | None, server: str | None, output: str, no_color: bool) -> int:
    """Current advice of every deployment, how old it is, and what could not be read or delivered."""
    import time

    from advisor.outlets import FORMATS
    from advisor.outlets.status import read_overview, render_status

    if output == "json":
        click.echo(FORMATS["json"](latest_report(server, store, config)))
        return 0
    overview = read_overview(latest_document(server, store, config))
    failed: list[Delivery] = []
    if server is None:
        overview, failed = _remembered(overview, store, config)
    width, color = terminal(no_color=no_color)
    text = render_status(overview, time.time(), failed=failed, width=width)
    if color:
        from advisor.outlets.color import painted

        text = painted(text)
    click.echo(text)
    return 0 if overview.lines else NOT_JUDGED


def _remembered(overview: Overview, store: Path | None, config: Path | None) -> tuple[Overview, list[Delivery]]:
    """What was snoozed or rejected since the last evaluation counts at once."""
    from dataclasses import replace

    from advisor.outcomes.standing import standing

    with opened(store, config) as memory:
        records, deliveries = memory.records(), memory.deliveries()
    lines = tuple(
        replace(
            line,
            judgement=standing(
                line.judgement, [r for r in records if r.deployment == line.name], overview.generated_at
            ),
        )
        for line in overview.lines
    )
    return replace(overview, lines=lines), [d for d in deliveries if d.state == "failed" and d.permanent]
