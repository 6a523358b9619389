"""`advisor snooze`: not now."""

from __future__ import annotations

from pathlib import Path

import click

from advisor.cli.decision import decide
from advisor.cli.store_access import store_options


@click.command(name="snooze")
@click.argument("identity", metavar="ID")
@click.option("--until", required=True, metavar="DATE", help="When it may speak again: 2026-12-24, or with a time.")
@click.option("--reason", required=True, metavar="TEXT", help="Why, for whoever reads the history.")
@store_options
def command(identity: str, until: str, reason: str, store: Path | None, config: Path | None) -> None:
    """Silence one piece of advice until a date. ID is its id, or enough of its beginning."""
    from advisor.outcomes import snooze

    end = _moment(until)
    decide(identity, lambda record, now: snooze(record, until=end, reason=reason, now=now), store, config)


def _moment(text: str) -> float:
    """A date begins at midnight UTC; a time without a zone is UTC."""
    from datetime import UTC, datetime

    from advisor.domain.errors import UsageError

    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"--until {text[:40]!r}: write a date such as 2026-12-24") from None
