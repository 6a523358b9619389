"""`advisor reopen`: yes after all."""

from __future__ import annotations

from pathlib import Path

import click

from advisor.cli.decision import decide
from advisor.cli.store_access import store_options


@click.command(name="reopen")
@click.argument("identity", metavar="ID")
@store_options
def command(identity: str, store: Path | None, config: Path | None) -> None:
    """Let snoozed or rejected advice speak again. ID is its id, or enough of its beginning."""
    from advisor.outcomes import reopen

    decide(identity, lambda record, now: reopen(record, now=now), store, config)
