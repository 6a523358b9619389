"""`advisor backtest`: what would have been advised, replayed over history."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import click

from advisor.cli import NOT_JUDGED
from advisor.cli.sources import request, source_options


@click.command(name="backtest")
@source_options
@click.option("--every", default="1d", show_default=True, metavar="SPAN", help="Time from one evaluation to the next.")
@click.option(
    "--over", metavar="SPAN", help="What each evaluation looks back on.  [default: 7d, or the configuration's]"
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(every: str, over: str | None, output: str, **given: Any) -> int:
    """Replay the evaluation over the past: --since says how far back (30d unless given).

    Each evaluation sees what was there by then; flags, start-up logs, sweeps and rules are today's, and engines are
    not asked. Beside each limit stands the share of the requests that followed which it would have refused.
    """
    from advisor.backtest import moments, replay
    from advisor.cycle import run_once
    from advisor.outlets.replayed import render_replayed, replayed_document

    span = given["since"] or "30d"
    asked = request(given | {"since": over})
    at = moments(asked.window.end, _span("--since", span), _span("--every", every))
    evaluate = partial(run_once, set_flags=asked.set_flags, deployment=asked.deployment)
    rows = [row for group in replay(asked.settings, at, evaluate) for row in group]
    if output == "json":
        click.echo(json.dumps(replayed_document(rows), indent=2, allow_nan=False))
    elif rows:
        click.echo(render_replayed(rows))
    if not rows:
        click.echo(
            "advisor: no deployment could be judged at any of these moments: check --since and --until", err=True
        )
    return 0 if rows else NOT_JUDGED


def _span(option: str, text: str) -> float:
    from advisor.domain.errors import UsageError
    from advisor.domain.quantity import seconds

    try:
        return seconds(text)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None
