"""The same engine at work under the names of others, read from a real Prometheus: same advice, other spelling.

The metrics of SGLang, TGI and old vLLM are composed from what their sources define (tests/recording/translate.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.cycle import SetFlag, run_once
from advisor.domain.evidence import Window
from advisor.domain.report import DeploymentReport, Report
from advisor.settings import Settings
from tests.conftest import absent
from tests.prometheus_server import PrometheusMissingError, serve
from tests.recording.deployment import Deployment, Recording
from tests.recording.situations import CAP_PINNED
from tests.recording.translate import OLD_VLLM, SGLANG, TGI, Wording, translate

pytestmark = pytest.mark.integration
Recorded = Callable[[Deployment], Recording]


def judged(metrics: Path, recording: Recording, *flags: SetFlag) -> Report:
    """What is said of everything in an OpenMetrics file."""
    try:
        with serve(metrics) as url:
            settings = Settings.model_validate({"prometheus": {"url": url}, "slo": {"tpot": "50ms"}})
            return run_once(settings, Window(recording.start, recording.end), set_flags=flags)
    except PrometheusMissingError as error:
        absent(str(error))
        raise


def worded(recording: Recording, wording: Wording, target: Path, job: str = "vllm") -> Path:
    """The recording in other words, under another job."""
    lines = recording.metrics.read_text().splitlines(keepends=True)
    pool = CAP_PINNED.engine.blocks * CAP_PINNED.engine.block_size
    target.write_text("".join(translate(lines, wording, pool)).replace('job="vllm"', f'job="{job}"'))
    return target


def advised(report: DeploymentReport) -> tuple[str, float | None, str | None]:
    """The advice to act on: its rule, the value and the flag to copy."""
    first = report.judgement.advice[0]
    return first.rule, first.recommended, first.flag


@pytest.mark.parametrize(
    ("wording", "engine", "flag"),
    [(SGLANG, "sglang", "--max-running-requests 24"), (TGI, "tgi", None)],
    ids=["sglang", "tgi"],
)
def test_a_pinned_cap_is_raised_whatever_serves(
    recorded: Recorded, tmp_path: Path, wording: Wording, engine: str, flag: str | None
) -> None:
    recording = recorded(CAP_PINNED)
    metrics = worded(recording, wording, tmp_path / "metrics.om")
    (found,) = judged(metrics, recording, SetFlag(None, "max_num_seqs", 16)).deployments
    assert found.evidence.engine == engine
    assert advised(found) == ("concurrency/cap-pinned-cache-free", 24, flag)
    reason = found.judgement.advice[0].reason
    assert ("TGI seats by tokens, not by sequences" in reason) == (engine == "tgi")


def test_what_old_vllm_does_not_measure_is_said(recorded: Recorded, tmp_path: Path) -> None:
    recording = recorded(CAP_PINNED)
    metrics = worded(recording, OLD_VLLM, tmp_path / "metrics.om")
    (found,) = judged(metrics, recording, SetFlag(None, "max_num_seqs", 16)).deployments
    assert found.evidence.engine_version == "<0.9.2"
    assert found.facts["itl_mean"].number is not None
    assert "give a request log" in (found.facts["latency_ceiling"].unknown or "")


def test_a_mixed_fleet_takes_no_more_queries_than_one_engine(recorded: Recorded, tmp_path: Path) -> None:
    recording = recorded(CAP_PINNED)
    bodies = [recording.metrics.read_text().replace("# EOF\n", "")]
    for wording, job in ((SGLANG, "sglang"), (TGI, "tgi")):
        bodies.append(worded(recording, wording, tmp_path / job, job).read_text().replace("# EOF\n", ""))
    mixed = tmp_path / "mixed.om"
    mixed.write_text("".join(bodies) + "# EOF\n")
    report = judged(mixed, recording)
    assert {d.evidence.name: d.evidence.engine for d in report.deployments} == {
        "sglang/acme/cap-pinned": "sglang",
        "tgi": "tgi",
        "vllm/acme/cap-pinned": "vllm",
    }
    assert "9 queries" in report.sources[0].detail
    running = {d.facts["running_p95"].number for d in report.deployments}
    assert running == {16}
