"""`advisor history`: advice over time, and how its predictions scored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor.cli.store_access import fetched, opened, place_options
from advisor.cli.terminal import terminal

if TYPE_CHECKING:
    from advisor.domain.life import AdviceRecord


@click.command(name="history")
@click.argument("deployment", metavar="[DEPLOYMENT]", required=False)
@place_options
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(deployment: str | None, config: Path | None, store: Path | None, server: str | None, output: str) -> None:
    """What was advised when, what became of it, and how often the advice of each rule did what it said."""
    from advisor.outcomes import track_records
    from advisor.outlets.history import render_history

    records = [r for r in _records(server, store, config) if deployment in (None, r.deployment)]
    if output == "json":
        click.echo(_json(records))
    elif records:
        width, _ = terminal(no_color=True)
        click.echo(render_history(records, track_records(records), width=width))
    else:
        click.echo("no advice was given yet")


def _records(server: str | None, store: Path | None, config: Path | None) -> tuple[AdviceRecord, ...]:
    from advisor.outlets.history import restore_history

    if server is not None:
        return restore_history(fetched(server, "/api/v1/history"))[0]
    with opened(store, config) as memory:
        return memory.records()


def _json(records: list[AdviceRecord]) -> str:
    from advisor.outcomes import track_records
    from advisor.web.api import History, RecordJson, TrackRecordJson

    history = History(
        records=[RecordJson.model_validate(record) for record in records],
        track_records=[TrackRecordJson.model_validate(track) for track in track_records(records)],
    )
    return history.model_dump_json(indent=2)
