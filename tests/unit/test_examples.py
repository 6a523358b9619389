"""The dashboard and the alerts that are shipped speak of metrics that the daemon has, and of nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from advisor.service.telemetry import Metrics, View
from tests.conftest import absent
from tests.unit.outlets import samples

EXAMPLES = Path(__file__).parents[2] / "config" / "examples"
RULES, DASHBOARD = EXAMPLES / "prometheus-rules.yaml", EXAMPLES / "grafana-dashboard.json"
EVERYTHING = View(
    report=samples.report(samples.throttled(), sources=samples.POOR_SOURCES),
    last_success={"evaluate": samples.NOW},
    runs={("evaluate", "ok"): 1},
    seconds={"evaluate": 1.0},
    delivery_failed={("slack", "true"): 1},
)


def exposed() -> set[str]:
    text = Metrics(lambda: EVERYTHING).text().decode()
    return {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}


@pytest.mark.parametrize("path", [RULES, DASHBOARD], ids=lambda path: path.name)
def test_only_metrics_that_exist_are_asked_for(path: Path) -> None:
    asked = set(re.findall(r"\badvisor_[a-z_]+", path.read_text(encoding="utf-8")))
    assert len(asked) >= 5
    assert asked <= exposed()


def test_promtool_accepts_the_alerts() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        absent("promtool, of Debian's package prometheus")
    checked = subprocess.run([str(promtool), "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "7 rules found" in checked.stdout


def test_the_dashboard_is_whole() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["description"] and panel["targets"] for panel in panels)
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
