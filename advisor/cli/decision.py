"""One decision about one piece of advice: read its record, decide, write it back, say what is true now."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor.cli.store_access import opened

if TYPE_CHECKING:
    from advisor.domain.life import AdviceRecord

Decision = Callable[["AdviceRecord", float], "AdviceRecord"]


def decide(identity: str, decision: Decision, store: Path | None, config: Path | None) -> None:
    """Apply a decision to the record whose id begins with `identity`. Raises UsageError where it cannot be."""
    from advisor.outcomes import by_id
    from advisor.outlets.phrases import action
    from advisor.outlets.plain import plain

    def change(records: tuple[AdviceRecord, ...]) -> list[AdviceRecord]:
        return [decision(by_id(records, identity), time.time())]

    with opened(store, config, readonly=False) as memory:
        (record,) = memory.change_records(change)
    click.echo(plain(f"{record.id} is {record.state}{_until(record)}: {action(record.advice)} of {record.deployment}"))


def _until(record: AdviceRecord) -> str:
    from advisor.outlets.phrases import moment

    return "" if record.until is None else f" until {moment(record.until)}"
