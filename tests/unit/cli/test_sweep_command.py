from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from advisor.cli.sweep import command
from advisor.domain.errors import AdvisorError, SourceError, UsageError
from advisor.domain.evidence import Flag, Slo
from advisor.domain.report import DeploymentReport, Report, SourceState
from advisor.outlets.structured import render_json
from advisor.sources.sweep import read_sweep
from advisor.store import Store
from tests.unit.outlets import samples

pytestmark = pytest.mark.slow

RUNS = ((8, 20.0, 150.0), (16, 31.0, 400.0), (32, 48.0, 2600.0))
EVIDENCE = """\
deployments:
  org/chat:
    slo: {tpot: 40ms}
    flags: {max_num_seqs: 64, max_model_len: 4096, tensor_parallel_size: 2}
    requests: {joint: [[100, 40, 900], [1500, 300, 100]]}
    facts: {running_p95: 16}
"""


def results(folder: Path, **more: Any) -> Path:
    """Results of vllm bench serve at 8, 16 and 32 in flight: TPOT 20, 31 and 48 ms, TTFT 0.15, 0.4 and 2.6 s."""
    for concurrency, tpot, ttft in RUNS:
        run = {
            "model_id": "org/chat",
            "num_prompts": 200,
            "request_rate": "inf",
            "max_concurrency": concurrency,
            "duration": 60.0,
            "completed": 200,
            "p99_tpot_ms": tpot,
            "p99_ttft_ms": ttft,
        }
        (folder / f"conc{concurrency}.json").write_text(json.dumps(run | more))
    return folder


def served(**flags: int) -> DeploymentReport:
    sample = samples.healthy()
    running = {name: Flag(value, "server_info") for name, value in flags.items()}
    evidence = replace(sample.evidence, name="chat", flags=running, engine_version="0.32.0", slo=Slo(tpot_seconds=0.04))
    return replace(sample, evidence=evidence)


def stored(folder: Path, *deployments: DeploymentReport) -> Path:
    path = folder / "advisor.db"
    store = Store.open(path)
    report = Report(samples.NOW, samples.WEEK, (SourceState("prometheus", "ok", "fine"),), deployments)
    store.save_report(samples.NOW, render_json(report), {})
    store.close()
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], standalone_mode=False)


def failure(*arguments: object) -> str:
    error = run(*arguments).exception
    assert isinstance(error, AdvisorError)
    assert "\n" not in str(error)
    return str(error)


def imported(*arguments: object) -> dict[str, Any]:
    done = run("import", "-o", "json", *arguments)
    assert done.exception is None
    document: dict[str, Any] = json.loads(done.output)
    return document


def test_without_a_store_it_says_where_the_objective_is_crossed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_STORE__PATH", str(tmp_path / "nowhere" / "advisor.db"))
    told = imported(results(tmp_path), "--slo-tpot", "40ms", "--slo-ttft", "1s")
    assert [told["latency_ceiling"][k] for k in ("value", "low", "high")] == [16, 16, 32]
    assert [told["ttft_ceiling"][k] for k in ("value", "low", "high")] == [16, 16, 32]
    # sqrt(16 x 32) = 22.6
    assert told["next_concurrency"] == 23
    assert told["kept"].startswith("not kept")
    drawn = run("import", results(tmp_path), "--slo-tpot", "40ms").output
    assert "TPOT within 40 ms: 16, crossed by 32" in drawn
    assert "TIME PER TOKEN over concurrency" in drawn
    assert "TIME TO FIRST TOKEN over concurrency" in drawn
    assert "measure next: 23" in drawn
    assert "no objective given" in run("import", results(tmp_path)).output


def test_with_a_store_it_is_kept_for_the_daemon(tmp_path: Path) -> None:
    store = stored(tmp_path, served(max_num_seqs=64, tensor_parallel_size=2))
    folder = tmp_path / "results"
    folder.mkdir()
    told = imported(results(folder), "--store", store)
    assert told["latency_ceiling"]["value"] == 16
    kept = read_sweep(tmp_path / "sweeps" / "chat.json")
    assert [p.concurrency for p in kept.points] == [8, 16, 32]
    # with what runs now, so that the epoch in which it holds is known
    assert kept.flags == {"max_num_seqs": 64, "tensor_parallel_size": 2}
    assert kept.engine_version == "0.32.0"


@pytest.mark.parametrize(
    ("more", "given", "why"),
    [
        ({"tensor_parallel_size": "4"}, (), "it ran with tensor_parallel_size 4, 2 runs now"),
        ({}, ("--ran-with", "tensor_parallel_size=4"), "it ran with tensor_parallel_size 4, 2 runs now"),
        ({"max_num_seqs": "16"}, (), "it ran with max_num_seqs 16, 64 runs now"),
    ],
)
def test_a_sweep_of_another_epoch_is_refused(
    tmp_path: Path, more: dict[str, str], given: tuple[str, ...], why: str
) -> None:
    store = stored(tmp_path, served(max_num_seqs=64, tensor_parallel_size=2))
    folder = tmp_path / "results"
    folder.mkdir()
    assert why in failure("import", results(folder, **more), "--store", store, *given)
    assert not (tmp_path / "sweeps").exists()


def test_among_several_deployments_one_is_named(tmp_path: Path) -> None:
    other = served()
    store = stored(tmp_path, served(), replace(other, evidence=replace(other.evidence, name="code")))
    folder = tmp_path / "results"
    folder.mkdir()
    assert "give --deployment, one of chat, code" in failure("import", results(folder), "--store", store)
    assert "no deployment is called 'cat'" in failure("import", folder, "--store", store, "--deployment", "cat")
    assert imported(folder, "--store", store, "--deployment", "code")["deployment"] == "code"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("--where", "isl"), UsageError, "write KEY=VALUE"),
        (("--ran-with", "tensor_parallel=2"), UsageError, "no flag that sizes a server"),
        (("--slo-tpot", "fast"), UsageError, "write it like 40ms"),
        (("--store", "/nowhere/advisor.db"), SourceError, "there is no store"),
    ],
)
def test_slips_of_the_pen_are_told_in_one_line(
    tmp_path: Path, arguments: tuple[str, ...], error: type[AdvisorError], message: str
) -> None:
    done = run("import", results(tmp_path), *arguments)
    assert isinstance(done.exception, error)
    assert message in str(done.exception)


def planned(folder: Path, *arguments: object) -> Result:
    file = folder / "evidence.yaml"
    file.write_text(EVIDENCE)
    return run("plan", "org/chat", "--evidence", file, "--dir", folder / "plan", *arguments)


def test_a_plan_is_data_sets_and_commands(tmp_path: Path) -> None:
    done = planned(tmp_path, "--url", "http://10.0.0.7:8000")
    assert done.exception is None
    # 16 run together: from a quarter of it to four times
    assert done.output.startswith("concurrency 4, 7, 12, 21, 37, 64: 16 run together now\n")
    for needed in (
        "for level in 4:200 7:200 12:200 21:210 37:370 64:640; do",
        "--base-url http://10.0.0.7:8000 --endpoint /v1/completions",
        "--dataset-name custom",
        "--custom-output-len -1",
        "--metadata tensor_parallel_size=2 max_num_seqs=64",
        "kind=concurrent,streams=$n",
        "--custom-dataset-type mooncake_trace",
        "--deployment org/chat",
    ):
        assert needed in done.output
    lines = (tmp_path / "plan" / "concurrency-64.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 640
    assert all(len(row["prompt"].split()) == row["input_length"] == row["prompt_tokens_count"] for row in rows)
    assert sum(row["input_length"] == 1500 for row in rows) == 64
    assert {(row["input_length"], row["output_tokens"]) for row in rows} == {(100, 40), (1500, 300)}


def test_levels_beyond_the_seats_ask_for_more_of_them(tmp_path: Path) -> None:
    done = planned(tmp_path, "--set", "max_num_seqs=32")
    assert "start it with max_num_seqs 64 in place of 32, and say so, SEATS=64" in done.output
    assert 'max_num_seqs="${SEATS:?max_num_seqs of the tested engine}"' in done.output


def test_no_level_repeats_the_prompts_of_another(tmp_path: Path) -> None:
    planned(tmp_path)
    texts = [
        json.loads(line)["prompt"]
        for file in (tmp_path / "plan").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert len(set(texts)) == len(texts)


def test_names_stay_words_in_the_shell(tmp_path: Path) -> None:
    done = planned(tmp_path, "--served-name", "x; rm -rf /", "--url", "http://h/$(id)")
    assert "--model 'x; rm -rf /'" in done.output
    assert "--base-url 'http://h/$(id)'" in done.output


def test_a_deployment_that_nobody_knows_has_no_plan(tmp_path: Path) -> None:
    file = tmp_path / "evidence.yaml"
    file.write_text(EVIDENCE)
    assert "no source shows a deployment 'chat'" in failure("plan", "chat", "--evidence", file)
    file.write_text("deployments: {org/chat: {slo: {tpot: 40ms}}}")
    assert "org/chat: no lengths of requests are known" in failure("plan", "org/chat", "--evidence", file)
