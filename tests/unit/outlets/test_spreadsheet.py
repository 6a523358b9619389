from __future__ import annotations

import csv
from io import StringIO

import pytest
from syrupy.assertion import SnapshotAssertion

from advisor.domain.report import DeploymentReport
from advisor.outlets.spreadsheet import render_csv
from tests.unit.outlets import samples


def _rows(*deployments: DeploymentReport) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(render_csv(samples.report(*deployments)))))


def test_one_row_a_deployment() -> None:
    (row,) = _rows(samples.throttled())
    wanted = {
        "name": "chat-70b",
        "engine": "vllm",
        "version": "0.32.0",
        "replicas": "2",
        "status": "advice",
        "verdict": "change_flag",
        "knob": "max_num_seqs",
        "current": "16",
        "recommended": "24",
        "flag": "'--max-num-seqs 24",
        "severity": "opportunity",
        "queued": "'--max-model-len 131072 -> 8192",
        "latency_ceiling": ">=16",
        "itl_p99": ">=0.025 <=0.05",
        "kv_usage_p95": "0.0407",
    }
    assert wanted.items() <= row.items()


def test_flags_that_change_together_are_named_in_one_row() -> None:
    (row,) = _rows(samples.planned())
    assert (row["flag"], row["also_now"], row["queued"]) == ("'--max-model-len 12288", "'--max-num-seqs 256 -> 40", "")


def test_without_advice_the_reason_remains() -> None:
    rows = _rows(samples.healthy(), samples.cannot_tell(), samples.no_data(), samples.infinite())
    assert [(row["status"], row["verdict"]) for row in rows] == [
        ("ok", ""),
        ("cannot_tell", ""),
        ("no_data", ""),
        ("ok", ""),
    ]
    assert rows[0]["reason"] == "within its SLOs; demand-limited"
    assert rows[1]["total_tokens_p999"] == ">=10000"
    assert (rows[3]["ttft_p99"], rows[3]["itl_p99"], rows[3]["waiting_p95"]) == ("", ">=0.1", "15.4")


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "  =1", "＝1", "\r\n=1"])
def test_no_text_is_a_formula(name: str) -> None:
    (row,) = _rows(samples.hostile(name))
    assert row["name"] == "'" + name.strip()
    assert row["reason"] == "'" + name.strip()


@pytest.mark.parametrize("name", samples.HOSTILE_NAMES)
def test_hostile_names_stay_in_their_cell(name: str) -> None:
    text = render_csv(samples.report(samples.hostile(name)))
    assert len(text.splitlines()) == 2
    assert all(line.isprintable() for line in text.splitlines())


def test_a_list_separator_cannot_begin_a_cell() -> None:
    """A spreadsheet that splits at semicolons sees one quoted text, not a formula after the semicolon."""
    text = render_csv(samples.report(samples.hostile('x";=cmd()')))
    assert '"x"";=cmd()"' in text


def test_the_fleet_as_csv(snapshot: SnapshotAssertion) -> None:
    assert render_csv(samples.fleet()) == snapshot
