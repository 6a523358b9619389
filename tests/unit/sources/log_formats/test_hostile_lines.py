"""Whatever a line holds, it costs one line: no exception, and every line is read, or skipped and counted."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.domain.evidence import Window
from advisor.sources.log_formats import FORMATS
from advisor.sources.request_log import LogOptions
from advisor.sources.request_log.batch import Batch
from advisor.sources.request_log.intake import Intake
from advisor.sources.request_log.origins import Origins
from tests.unit.sources.log_formats.good_lines import FIELDS, GOOD
from tests.unit.sources.log_formats.hostile_lines import hostile_lines

LINES = 3_000
NO_REQUEST = ("about no finished request", "answered by the gateway's cache")


def intake_of(name: str, batches: list[Batch]) -> Intake:
    fields: dict[str, Any] = {"fields": FIELDS} if name == "mapped" else {}
    options = LogOptions(paths=("x",), format=name, **fields)
    origins = Origins({}, lambda model, _: model, lambda _: 0.0, 0.0)
    return Intake(options, Window(0.0, 4e9), origins, batches.append)


def test_every_format_has_lines() -> None:
    assert set(GOOD) == {*FORMATS, "mapped"}


@pytest.mark.parametrize("name", GOOD)
def test_every_hostile_line_is_counted(name: str) -> None:
    batches: list[Batch] = []
    intake = intake_of(name, batches)
    lines = list(hostile_lines(GOOD[name], LINES, seed=17))
    for start in range(0, LINES, 500):
        block = b"\n".join(lines[start : start + 500]) + b"\n"
        intake.take(block, intake.format_of(block))
    intake.flush()
    account = intake.account
    aside = sum(account.unused[reason] for reason in NO_REQUEST)
    assert account.rows + account.bad.total() + aside == LINES
    # Some were left whole, and some were not.
    assert account.rows > LINES / 10
    assert account.bad.total() > LINES / 200
    assert all((batch.prompt >= -1).all() and (batch.output >= -1).all() for batch in batches)
