"""An engine that sleeps, told by a real Prometheus in the same query that dates the releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.domain.evidence import Window
from advisor.sources.prometheus import PrometheusOptions, read_prometheus
from tests.conftest import absent
from tests.prometheus_server import PrometheusMissingError, serve

pytestmark = pytest.mark.integration
START, MINUTES = 1_795_960_000, 30


def recorded() -> str:
    """Two engines, of which the second sleeps for the last ten minutes."""
    lines = []
    for instance, load in (("a:8000", 4), ("b:8000", 0)):
        labels = f'job="vllm",instance="{instance}",model_name="m",engine="0"'
        for minute in range(MINUTES):
            at = START + 60 * minute
            awake = int(instance == "a:8000" or minute < MINUTES - 10)
            lines.append(f"vllm:num_requests_running{{{labels}}} {load} {at}")
            lines.append(f'vllm:engine_sleep_state{{{labels},sleep_state="awake"}} {awake} {at}')
            lines.append(f'vllm:engine_sleep_state{{{labels},sleep_state="discard_all"}} {1 - awake} {at}')
    return "\n".join([*sorted(lines, key=lambda line: line.split("{")[0]), "# EOF", ""])


def test_an_engine_that_sleeps_now_is_no_replica(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.om"
    metrics.write_text(recorded())
    try:
        with serve(metrics) as url:
            options = PrometheusOptions(url=url)
            now, before = (
                read_prometheus(options, Window(START, START + 60.0 * minutes)) for minutes in (MINUTES, MINUTES - 15)
            )
    except PrometheusMissingError as error:
        absent(str(error))
    assert [found.deployments[0].replicas for found in (before, now)] == [2, 1]
    assert now.deployments[0].instances == ("a:8000",)
