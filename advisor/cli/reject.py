"""`advisor reject`: not at all."""

from __future__ import annotations

from pathlib import Path

import click

from advisor.cli.decision import decide
from advisor.cli.store_access import store_options


@click.command(name="reject")
@click.argument("identity", metavar="ID")
@click.option("--reason", required=True, metavar="TEXT", help="Why, for whoever reads the history.")
@store_options
def command(identity: str, reason: str, store: Path | None, config: Path | None) -> None:
    """Silence one piece of advice while it is the same. It is back when its value moves far, or it gets graver."""
    from advisor.outcomes import reject

    decide(identity, lambda record, now: reject(record, reason=reason, now=now), store, config)
