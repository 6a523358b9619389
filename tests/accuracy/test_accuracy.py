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
    "capacity within SLO / simulated": 0.75,
    "preempted at the memory ceiling": 0.6,
    "  memory ceiling / simulated": 0.85,
    "latency ceiling within bounds": 0.75,
    "  latency ceiling / simulated": 0.75,
    "replicas advised meet the SLO": 1.0,
}
"""Share of the known cases that must be as promised. Where it is under the goal of the row, one or two of the eight are
known to miss: preemptions where answers are far longer than prompts, latency where long prompts stall short answers."""


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
