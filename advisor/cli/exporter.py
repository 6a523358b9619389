"""`advisor exporter`: the host agent."""

from __future__ import annotations

from pathlib import Path

import click

from advisor.cli.sources import FILE


@click.command(name="exporter")
@click.option(
    "-c",
    "--config",
    "config_file",
    required=True,
    type=FILE,
    metavar="FILE",
    help="Configuration file; `logs` and `exporter` are what counts.",
)
@click.option("--listen", metavar="ADDRESS", help="Address and port of /metrics (exporter.listen).")
@click.option("--state", metavar="DIR", help="Directory of what it remembers (exporter.state).")
def command(config_file: Path, listen: str | None, state: str | None) -> None:
    """Follow this host's request logs and expose how long requests are, on /metrics, until told to stop."""
    from advisor.exporter import agent
    from advisor.settings import read_settings

    given = {name: value for name, value in (("listen", listen), ("state", state)) if value is not None}
    agent.run(read_settings(config_file, {"exporter": given} if given else {}))
