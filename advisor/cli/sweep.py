"""`advisor sweep`: the load test that would settle the latency ceiling, and what it brought."""

from __future__ import annotations

import click

from advisor.cli.sweep_import import import_
from advisor.cli.sweep_plan import plan


@click.group(name="sweep")
def command() -> None:
    """The load test to run, with the deployment's own lengths; its result."""


command.add_command(plan)
command.add_command(import_)
