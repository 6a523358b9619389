"""Figures of runs are those of published results (dstack benchmarks, Apache-2.0), rounded."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.errors import ConfigError, SourceError
from advisor.domain.sweep import SweepPoint
from advisor.sources import sweep
from advisor.sources.sweep import read_sweep, read_sweeps

CAPTURES = Path(__file__).parents[2] / "captures"
VLLM: dict[str, Any] = {
    "model_id": "openai/gpt-oss-120b",
    "num_prompts": 500,
    "request_rate": "inf",
    "max_concurrency": 128,
    "duration": 41.7284,
    "completed": 500,
    "total_input_tokens": 1023101,
    "total_output_tokens": 366152,
    "request_throughput": 11.9822,
    "mean_ttft_ms": 498.67,
    "p99_ttft_ms": 1134.59,
    "mean_tpot_ms": 11.3525,
    "p99_tpot_ms": 45.242,
    "mean_itl_ms": 9.8297,
    "p99_itl_ms": 17.198,
}
OLDER = {
    "backend": "vllm",
    "model_id": "meta-llama/Llama-3.1-405B-FP8",
    "best_of": 1,
    "num_prompts": 1000,
    "request_rate": 16.0,
    "duration": 97.9343,
    "completed": 1000,
    "total_output_tokens": 122195,
    "request_throughput": 10.2109,
    "mean_ttft_ms": 18688.46,
    "p99_ttft_ms": 67563.17,
    "mean_tpot_ms": 110.615,
    "p99_tpot_ms": 168.21,
    "mean_itl_ms": 102.327,
}
SGLANG_OLD = (
    '{"backend": "sglang", "request_rate": 4.0, "max_concurrency": null, "completed": 1200, "duration": 296.86,'
    ' "mean_e2e_latency_ms": 12896.3, "median_ttft_ms": 106.06, "median_itl_ms": 19.42}\n'
    '{"backend": "sglang", "request_rate": Infinity, "max_concurrency": null, "completed": 3000, "duration": 341.7,'
    ' "mean_e2e_latency_ms": 224918.8, "median_ttft_ms": 91282.2, "median_itl_ms": 159.01}\n'
)


def written(folder: Path, name: str, content: object) -> Path:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def guidellm(*runs: tuple[dict[str, Any], float]) -> dict[str, Any]:
    def of(mean: float, **more: float) -> dict[str, Any]:
        return {"successful": {"mean": mean, **more}}

    return {
        "metadata": {"version": 1},
        "benchmarks": [
            {
                "config": {"strategy": strategy},
                "duration": 60.0,
                "metrics": {
                    "request_totals": {"successful": 300, "errored": 0, "incomplete": 9},
                    "requests_per_second": of(5.0),
                    "inter_token_latency_ms": of(gap),
                    "time_per_output_token_ms": of(gap * 3),
                    "time_to_first_token_ms": of(250.0),
                    "prompt_token_count": of(512.0),
                    "output_token_count": of(101.0, total_sum=30_300),
                },
            }
            for strategy, gap in runs
        ],
    }


def test_vllm_bench_serve(tmp_path: Path) -> None:
    read = read_sweep(written(tmp_path, "conc128.json", VLLM))
    (point,) = read.points
    # 1,023,101 and 366,152 tokens of 500 requests
    timed = SweepPoint(128, 45.242 / 1000, 1134.59 / 1000, 11.9822, "p99", 500)
    assert point == replace(timed, prompt_tokens=2046.202, output_tokens=732.304)
    assert read.source == "sweep conc128.json of openai/gpt-oss-120b"


def test_without_a_p99_the_mean_is_said_to_be_one(tmp_path: Path) -> None:
    run = {k: v for k, v in VLLM.items() if not k.startswith("p99")}
    (point,) = read_sweep(written(tmp_path, "run.json", run)).points
    assert (point.tpot_seconds, point.ttft_seconds, point.statistic) == (11.3525 / 1000, 498.67 / 1000, "mean")


def test_fewer_requests_than_the_limit_cannot_have_run_together(tmp_path: Path) -> None:
    (point,) = read_sweep(written(tmp_path, "run.json", VLLM | {"num_prompts": 20, "completed": 20})).points
    assert point.concurrency == 20


def test_older_benchmark_serving_paced_by_rate(tmp_path: Path) -> None:
    (point,) = read_sweep(written(tmp_path, "16qps.json", OLDER)).points
    # 0.102327 s x (122,195 - 1,000) gaps = 12,401.5 s of decoding in 97.9343 s
    assert point.concurrency == pytest.approx(126.63, abs=0.01)
    assert point.tpot_seconds == pytest.approx(0.16821)


def test_a_pace_below_the_limit_decides(tmp_path: Path) -> None:
    (point,) = read_sweep(written(tmp_path, "run.json", OLDER | {"max_concurrency": 512})).points
    assert point.concurrency == pytest.approx(126.63, abs=0.01)
    (limited,) = read_sweep(written(tmp_path, "run.json", OLDER | {"max_concurrency": 100})).points
    assert limited.concurrency == 100


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"max_concurrency": None}, "sent everything at once without --max-concurrency"),
        ({"completed": 300}, "only 300 of 500 requests completed"),
        ({"completed": 0}, "no request completed"),
        ({"completed": 10**400}, "no request completed"),
        ({"completed": True}, "no request completed"),
        ({"completed": "500"}, "no request completed"),
        ({"p99_tpot_ms": 0, "mean_tpot_ms": 0, "mean_itl_ms": 0}, "reports neither TPOT nor the mean gap"),
        ({"request_rate": 4.0, "total_output_tokens": 0}, "paced by request rate"),
    ],
)
def test_a_run_that_is_no_point_is_refused_with_the_reason(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        read_sweep(written(tmp_path, "run.json", VLLM | change))


def test_sglang_without_tpot_is_refused_although_its_json_is_not_strict(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="a median tells nothing of an objective"):
        read_sweep(written(tmp_path, "online.jsonl", SGLANG_OLD))


def test_sglang_with_a_mean_gap(tmp_path: Path) -> None:
    lines = "\n".join(
        json.dumps({"backend": "sglang", "max_concurrency": n, "completed": 90, "duration": 30.0, "mean_itl_ms": gap})
        for n, gap in ((16, 21.0), (8, 18.0))
    ).replace('"backend"', '"request_rate": Infinity, "backend"')
    points = read_sweep(written(tmp_path, "run.jsonl", lines)).points
    assert [(p.concurrency, p.tpot_seconds, p.requests_per_second) for p in points] == [
        (8, 0.018, 3.0),
        (16, 0.021, 3.0),
    ]


def test_guidellm_levels(tmp_path: Path) -> None:
    content = guidellm(
        ({"type_": "synchronous"}, 10.0),
        ({"type_": "throughput", "max_concurrency": None}, 90.0),
        ({"type_": "concurrent", "streams": 32}, 25.0),
        ({"type_": "constant", "rate": 5}, 20.0),
    )
    read = read_sweep(written(tmp_path, "guide.json", content))
    # constant: 0.020 s x (30,300 - 300) gaps in 60 s = 10 decoding
    assert [(p.concurrency, p.tpot_seconds) for p in read.points] == [(1, 0.010), (10, 0.020), (32, 0.025)]
    assert {p.statistic for p in read.points} == {"mean"}
    assert {(p.prompt_tokens, p.output_tokens) for p in read.points} == {(512.0, 101.0)}
    assert "runs left out: 1 (guide.json sent everything at once without a limit" in read.source


def test_a_directory_is_one_sweep_by_rising_concurrency(tmp_path: Path) -> None:
    for n in (64, 32, 128):
        written(tmp_path, f"conc{n}.json", VLLM | {"max_concurrency": n})
    written(tmp_path, "notes.txt", "not a result")
    read = read_sweep(tmp_path)
    assert [p.concurrency for p in read.points] == [32, 64, 128]
    assert read.source == "sweep 3 files beginning with conc128.json of openai/gpt-oss-120b"


def test_tests_of_different_models_are_not_one_sweep(tmp_path: Path) -> None:
    files = (written(tmp_path, "a.json", VLLM), written(tmp_path, "b.json", OLDER))
    with pytest.raises(SourceError, match="different models"):
        read_sweeps(files)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "own.yaml",
            "- {concurrency: 24, output_tokens_per_second_per_user: 40}\n- {concurrency: 8, tpot: 15ms, ttft: 1s}\n",
        ),
        ("own.yaml", "sweep: [{concurrency: 8, tpot: 15ms, ttft: 1s}, {concurrency: 24, tpot: 25ms}]"),
        ("own.json", [{"concurrency": 8, "tpot": "15ms", "ttft": 1}, {"concurrency": 24, "tpot": 0.025}]),
    ],
)
def test_our_own_points(tmp_path: Path, name: str, content: object) -> None:
    points = read_sweep(written(tmp_path, name, content)).points
    assert [(p.concurrency, p.tpot_seconds, p.ttft_seconds) for p in points] == [(8, 0.015, 1.0), (24, 0.025, None)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- {concurrency: 0, tpot: 15ms}", ":1:4: 0.concurrency: '0' is not plausible here; write it like 24"),
        ("- {concurrency: 8, tpot: 15}", ":1:20: 0.tpot: '15' is not plausible here; write it like 40ms"),
        ("- {concurrency: 8}", ":1:3: 0: give either tpot or output_tokens_per_second_per_user"),
        ("- {concurrency: 8, tpott: 15ms}", ":1:20: unknown key 'tpott' in 0.tpott; did you mean 'tpot'?"),
        ("sweep: []", ":1:1: sweep: List should have at least 1 item, not 0"),
        (
            "- {concurrency: 8, tpot: 15ms}\n- {concurrency: 8, tpot: 16ms}",
            ":1:1: the file: concurrency 8 is given twice",
        ),
    ],
)
def test_mistakes_in_own_points_name_their_place(tmp_path: Path, content: str, message: str) -> None:
    file = written(tmp_path, "own.yaml", content)
    with pytest.raises(ConfigError) as caught:
        read_sweep(file)
    assert str(caught.value).startswith(f"{file}{message}")


def test_medians_and_a_mean_end_to_end_bound_the_time_per_token(tmp_path: Path) -> None:
    run = json.loads(SGLANG_OLD.splitlines()[0]) | {"total_output_tokens": 601_200, "mean_e2e_latency_ms": 12_000.0}
    (point,) = read_sweep(written(tmp_path, "online.jsonl", run)).points
    # 12 s x 1,200 / (601,200 - 1,200) = 24 ms; 19.42 ms x 600,000 / 296.86 s = 39.25 decoding
    assert point.tpot_seconds == pytest.approx(0.024)
    assert point.at_most
    assert point.concurrency == pytest.approx(39.25, abs=0.01)
    assert point.computed


def test_flags_stand_in_the_metadata_of_vllm_and_the_server_info_of_sglang(tmp_path: Path) -> None:
    told = VLLM | {"max_num_seqs": "64", "enable_prefix_caching": "true", "quantization": ""}
    assert read_sweep(written(tmp_path, "a.json", told)).flags == {"max_num_seqs": 64, "enable_prefix_caching": True}
    told = VLLM | {
        "model_id": None,
        "server_info": {"tp_size": 4, "model_path": "org/model", "chunked_prefill_size": -1},
    }
    read = read_sweep(written(tmp_path, "b.json", told))
    assert (read.flags, read.model) == ({"tensor_parallel_size": 4}, "org/model")


def test_runs_of_other_conditions_are_not_one_sweep(tmp_path: Path) -> None:
    header = "isl,osl,max_concurrency,completed,p99_tpot_ms\n"
    file = written(tmp_path, "results.csv", header + "128,2048,32,500,9\n2048,128,32,500,12\n2048,128,64,500,14\n")
    with pytest.raises(SourceError, match=r"differ in more than load \(isl 128, 2048; osl 128, 2048\)"):
        read_sweep(file)
    kept = read_sweeps((file,), {"isl": "2048", "osl": "128"})
    assert [(p.concurrency, p.tpot_seconds) for p in kept.points] == [(32, 0.012), (64, 0.014)]
    with pytest.raises(SourceError, match="no run is as --where says"):
        read_sweeps((file,), {"isl": "4096"})


def test_names_tell_set_ups_apart_where_results_do_not(tmp_path: Path) -> None:
    for name in ("1p3d_conc32_20250914_014850", "2p2d_conc32_20250922_025156"):
        written(tmp_path, f"{name}.json", VLLM | {"max_concurrency": 32})
    with pytest.raises(SourceError, match="concurrency 32 in files named unlike"):
        read_sweep(tmp_path)


def test_repetitions_of_a_level_are_one_sweep(tmp_path: Path) -> None:
    for name in ("chat_conc32_run1", "chat_conc32_run2", "chat_conc64_run1"):
        written(tmp_path, f"{name}.json", VLLM | {"max_concurrency": int(name[9:11])})
    assert [p.concurrency for p in read_sweep(tmp_path).points] == [32, 32, 64]


def test_our_own_form_says_what_it_ran_on(tmp_path: Path) -> None:
    text = (
        "model: org/model\nengine_version: 0.32.0\nflags: {max-num-seqs: 64}\nsweep: [{concurrency: 8, tpot: 15ms}]\n"
    )
    read = read_sweep(written(tmp_path, "own.yaml", text))
    assert (read.model, read.engine_version, read.flags) == ("org/model", "0.32.0", {"max_num_seqs": 64})
    assert not read.in_flight
    with pytest.raises(SourceError, match="no flag that sizes a server is called 'max_num_seq'"):
        read_sweep(written(tmp_path, "own.yaml", text.replace("max-num-seqs", "max-num-seq")))


@given(
    st.dictionaries(
        st.sampled_from([*VLLM, "server_info", "max_num_seqs"]),
        st.none()
        | st.booleans()
        | st.text(max_size=5)
        | st.integers()
        | st.floats()
        | st.lists(st.integers(), max_size=2),
    )
)
def test_no_value_makes_a_point_that_is_no_number(changes: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        try:
            read = read_sweep(written(Path(folder), "run.json", VLLM | changes))
        except SourceError:
            return
    for point in read.points:
        assert 0 < point.concurrency < math.inf
        assert 0 < point.tpot_seconds < math.inf


@pytest.mark.parametrize("content", ["Hardware,Batch\nA100,1\n", "{}", "[]", "[1, 2]", "null", "[" * 3000, '{"a": {}}'])
def test_other_files_are_refused_in_one_line(tmp_path: Path, content: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_sweep(written(tmp_path, "results.json", content))
    assert "\n" not in str(caught.value)


def test_files_beyond_the_bound_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "MAX_BYTES", 50)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SourceError, match="larger than 0 MiB; write it without details of every request"):
        read_sweep(written(tmp_path, "run.json", VLLM))
    with pytest.raises(SourceError, match="no such file"):
        read_sweep(tmp_path / "absent.json")
    with pytest.raises(SourceError, match="no result files"):
        read_sweep(empty)


def test_a_result_of_the_real_tool() -> None:
    """vllm bench serve 0.32.0, a planned data set, and a real engine on CPU with a tiny model."""
    read = read_sweep(CAPTURES / "vllm-bench-serve-0.32.0" / "vllm-concurrency-2.json")
    (point,) = read.points
    assert (point.concurrency, point.requests, point.statistic) == (2, 39, "p99")
    assert point.tpot_seconds == pytest.approx(0.0497911, abs=1e-7)
    assert point.ttft_seconds == pytest.approx(0.6892105, abs=1e-7)
    assert (read.model, read.flags, read.in_flight) == ("tiny-llama", {"max_num_seqs": 16}, True)
