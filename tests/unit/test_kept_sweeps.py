from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.cycle import run_once
from advisor.domain.errors import UsageError
from advisor.domain.evidence import Window
from advisor.domain.sweep import Sweep, SweepPoint
from advisor.kept_sweeps import keep, path_of, with_kept
from advisor.settings import Settings
from advisor.sources.sweep import read_sweep

SWEEP = Sweep(
    points=(
        SweepPoint(8, 0.015, 0.3, 2.5, "p99", 200, prompt_tokens=1233.7, output_tokens=210.0),
        SweepPoint(16.5, 0.021, None, None, "mean", 200, computed=True, at_most=True),
    ),
    source="sweep results",
    model="org/model",
    engine_version="0.32.0",
    flags={"tensor_parallel_size": 4, "max_num_seqs": 64},
    in_flight=True,
)


def test_what_is_kept_is_read_again_as_it_was(tmp_path: Path) -> None:
    read = read_sweep(keep(tmp_path / "advisor.db", "job/org/model", SWEEP))
    assert read.points == SWEEP.points
    assert (read.model, read.engine_version, read.flags, read.in_flight) == (
        SWEEP.model,
        SWEEP.engine_version,
        SWEEP.flags,
        True,
    )


def test_a_level_measured_twice_is_kept_at_its_slowest(tmp_path: Path) -> None:
    twice = Sweep((SweepPoint(8, 0.02), SweepPoint(8, 0.03), SweepPoint(4, 0.01)), "")
    points = read_sweep(keep(tmp_path / "advisor.db", "chat", twice)).points
    assert [(p.concurrency, p.tpot_seconds) for p in points] == [(4, 0.01), (8, 0.03)]


def test_the_daemon_takes_up_what_is_kept_and_prefers_what_is_configured(tmp_path: Path) -> None:
    store, configured = tmp_path / "advisor.db", tmp_path / "own.json"
    kept = keep(store, "job/chat", SWEEP)
    keep(store, "other", SWEEP)
    settings = Settings(store={"path": store}, deployments={"other": {"sweeps": (configured,)}})
    taken = with_kept(settings).deployments
    assert taken["job/chat"].sweeps == (kept,)
    assert taken["other"].sweeps == (configured,)
    assert with_kept(Settings(store={"path": tmp_path / "elsewhere" / "advisor.db"})).deployments == {}


def test_a_name_too_long_for_a_file_is_refused() -> None:
    with pytest.raises(UsageError, match=r"deployments\.NAME\.sweeps"):
        path_of(Path("advisor.db"), "x" * 300)


@given(st.text(min_size=1, max_size=20))
def test_no_name_leaves_the_folder(name: str) -> None:
    path = path_of(Path("/state/advisor.db"), name.encode("utf-8", "replace").decode())
    assert path.parent == Path("/state/sweeps")
    assert path.suffix == ".json"


@pytest.mark.parametrize(("sharding", "ceiling", "told"), [(4, 16, []), (2, None, ["sweep of chat"])])
def test_a_kept_sweep_is_used_until_the_epoch_changes(
    tmp_path: Path, sharding: int, ceiling: float | None, told: list[str]
) -> None:
    evidence = tmp_path / "evidence.yaml"
    evidence.write_text(
        f"deployments: {{chat: {{slo: {{tpot: 20ms}}, flags: {{tensor_parallel_size: {sharding}, max_num_seqs: 64}}}}}}"
    )
    points = (SweepPoint(16, 0.015, statistic="p99"), SweepPoint(17, 0.021, statistic="p99"))
    keep(tmp_path / "advisor.db", "chat", replace(SWEEP, points=points, engine_version=None))
    settings = with_kept(Settings(store={"path": tmp_path / "advisor.db"}, evidence=(evidence,)))
    report = run_once(settings, Window(0.0, 604800.0))
    assert report.deployments[0].facts["latency_ceiling"].number == ceiling
    assert [source.name for source in report.sources if source.status == "partial"] == told
