"""The daemon's metrics as Prometheus reads them."""

from __future__ import annotations

import shutil
import subprocess

from prometheus_client.parser import text_string_to_metric_families

from advisor.domain.report import Report
from advisor.service.telemetry import Metrics, View
from tests.conftest import absent
from tests.unit.outlets import samples

Series = dict[tuple[str, tuple[str, ...]], float]


def scraped(view: View) -> Series:
    """Values by name and labels, the latter in the alphabetical order of their names."""
    text = Metrics(lambda: view).text().decode()
    families = list(text_string_to_metric_families(text))
    return {
        (s.name, tuple(v for _, v in sorted(s.labels.items()))): s.value for family in families for s in family.samples
    }


def of_report(report: Report) -> Series:
    return scraped(View(report=report))


def test_advice_is_from_what_to_what() -> None:
    series = of_report(samples.report(samples.throttled()))
    advice = samples.throttled().judgement.advice
    assert series[("advisor_current_value", ("chat-70b", "max_num_seqs"))] == 16
    assert series[("advisor_recommended_value", ("chat-70b", "max_num_seqs"))] == 24
    assert series[("advisor_recommended_value", ("chat-70b", "max_model_len"))] == 8192
    assert series[("advisor_advice_open", ("chat-70b", advice[0].rule, advice[0].severity))] == 1
    assert series[("advisor_deployment_status", ("chat-70b", "advice"))] == 1


def test_without_advice_nothing_is_recommended() -> None:
    names = {name for name, _ in of_report(samples.report(samples.healthy()))}
    assert "advisor_current_value" in names
    assert {"advisor_recommended_value", "advisor_advice_open"}.isdisjoint(names)


def test_a_failed_source_is_down_and_a_partial_one_is_not() -> None:
    series = of_report(samples.report(samples.healthy(), sources=samples.POOR_SOURCES))
    by_status = {s.name: s.status for s in samples.POOR_SOURCES}
    assert {"failed", "partial"} <= set(by_status.values())
    for name, status in by_status.items():
        assert series[("advisor_source_up", (name,))] == (status != "failed")


def test_stages() -> None:
    view = View(
        last_success={"evaluate": 1_795_968_000.0},
        runs={("evaluate", "done"): 3, ("report", "failed"): 1},
        seconds={"evaluate": 2.5},
        delivery_failed={("slack", "true"): 2},
        config_good=False,
    )
    series = scraped(view)
    assert series[("advisor_last_success_timestamp_seconds", ("evaluate",))] == 1_795_968_000
    assert series[("advisor_runs_total", ("done", "evaluate"))] == 3
    assert series[("advisor_run_seconds", ("evaluate",))] == 2.5
    assert series[("advisor_delivery_failed", ("slack", "true"))] == 2
    assert series[("advisor_config_good", ())] == 0
    assert series[("process_resident_memory_bytes", ())] > 1e6


def test_hostile_names_are_labels_and_no_more() -> None:
    fleet = [samples.hostile(name) for name in samples.HOSTILE_NAMES]
    names = [labels[0] for name, labels in of_report(samples.report(*fleet)) if name == "advisor_deployment_status"]
    assert 0 < len(names) <= len(fleet)
    assert all(label.isprintable() and len(label) <= 200 for label in names)


def test_promtool_has_nothing_to_say() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        absent("promtool, of Debian's package prometheus")
    text = Metrics(lambda: View(report=samples.fleet(), runs={("gather", "done"): 1})).text()
    checked = subprocess.run([str(promtool), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr.decode()) == (0, "")
