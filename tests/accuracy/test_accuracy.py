"""The rows that need no data, measured as `make accuracy` does, with bounds that a worse estimate breaks."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.accuracy import lengths, simulated
from tests.accuracy.table import Row, render
from tests.conftest import absent
from tests.prometheus_server import PrometheusMissingError

pytestmark = pytest.mark.integration

LEAST = {
    "p99.9 within bound, generated": 0.9,
    "ITL at 1.5x the observed": 0.9,
    "capacity at that cap": 0.9,
    "capacity within SLO / simulated": 0.9,
    "preempted at the memory ceiling": 0.85,
    "  memory ceiling / simulated": 0.85,
    "latency ceiling within bounds": 0.9,
    "  latency ceiling / simulated": 0.9,
    "replicas advised meet the SLO": 0.85,
}
"""Share of the known cases that must be as promised. Where it is under the goal of the row, one of the eight is known
to miss: replicas where the longest request takes the whole cache, and everybody behind it waits whatever the load."""


@pytest.fixture(scope="module")
def measured(request: pytest.FixtureRequest) -> Mapping[str, Row]:
    """The rows by what they measure; printed, so that a CI log has the table."""
    try:
        rows = [*lengths.generated(), *simulated.rows(None)]
    except PrometheusMissingError as error:
        absent(str(error))
    terminal = request.config.pluginmanager.getplugin("terminalreporter")
    terminal.write_line(f"\n{render(rows)}")
    return {row.what: row for row in rows}


def test_every_row_has_its_bound(measured: Mapping[str, Row]) -> None:
    assert set(measured) == set(LEAST)


@pytest.mark.parametrize("what", LEAST)
def test_promises_are_kept(measured: Mapping[str, Row], what: str) -> None:
    share = measured[what].share
    assert share is not None
    assert share >= LEAST[what]


@pytest.mark.parametrize("what", LEAST)
def test_most_cases_are_answered(measured: Mapping[str, Row], what: str) -> None:
    row = measured[what]
    assert row.unknown <= 0.75 * row.cases
