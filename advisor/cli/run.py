"""`advisor run`: the daemon."""

from __future__ import annotations

from pathlib import Path

import click

from advisor.cli.sources import FILE


@click.command(name="run")
@click.option(
    "-c",
    "--config",
    "config_file",
    required=True,
    type=FILE,
    metavar="FILE",
    help="Configuration file; SIGHUP reads it anew.",
)
def command(config_file: Path) -> None:
    """Gather, judge and report on a schedule until told to stop. Nothing is changed anywhere but in the store."""
    from advisor.service.daemon import Daemon

    Daemon(config_file).run()
