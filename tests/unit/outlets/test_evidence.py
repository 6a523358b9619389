"""Evidence files that are written from a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.domain.policy import Policy
from advisor.estimates import estimate
from advisor.outlets.evidence import render_evidence
from advisor.outlets.restore import restore
from advisor.outlets.structured import render_json
from advisor.sources.evidence_file import read_evidence_file
from tests.unit.outlets.samples import HOSTILE_NAMES, WEEK, fleet, hostile, report, throttled


def test_it_carries_what_was_measured_into_another_evaluation(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text(render_evidence(throttled()), encoding="utf-8")
    (evidence,) = read_evidence_file(tmp_path / "case.yaml", WEEK)
    facts = estimate(evidence, Policy())
    assert (evidence.name, evidence.replicas, evidence.slo.tpot_seconds) == ("chat-70b", 2, 0.04)
    assert evidence.flag("max_num_seqs") == 16
    assert facts["time_at_sequence_cap"].number == 0.174
    assert facts["kv_pool_tokens"].number == 587_008
    # The p99.9 of 6,301 has no interval in a file: 6,301 x 1.25 = 7,876, up to 8,192, as from the log; 587,008 / 8,192.
    assert facts["recommended_max_model_len"].number == 8_192
    assert facts["memory_ceiling_guaranteed"].number == 71


def test_every_deployment_of_a_kept_report_can_be_written_and_read(tmp_path: Path) -> None:
    for deployment in restore(render_json(fleet())).deployments:
        path = tmp_path / f"{deployment.evidence.name}.yaml"
        path.write_text(render_evidence(deployment), encoding="utf-8")
        (evidence,) = read_evidence_file(path, WEEK)
        assert evidence.name == deployment.evidence.name
        assert evidence.engine == deployment.evidence.engine


@pytest.mark.parametrize("name", [n for n in HOSTILE_NAMES if n])
def test_no_name_can_break_out_of_its_place(tmp_path: Path, name: str) -> None:
    text = render_evidence(restore(render_json(report(hostile(name)))).deployments[0])
    assert text.isascii()
    assert text.startswith("deployments:\n")
