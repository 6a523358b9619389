"""The load that engines print of themselves: real lines of vLLM 0.32, SGLang's as its source composes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from advisor.domain.errors import SourceError
from advisor.domain.evidence import EngineSeries, Window
from advisor.sources.load_log import read_load

# date -u -d "2026-11-29 16:00:00" +%s
AT = 1795968000
WINDOW = Window(AT - 86_400.0, AT + 3_600.0)
VLLM = (
    "(APIServer pid=3462) INFO 11-29 16:{:02d}:{:02d} [loggers.py:335] Engine {:03d}: Avg prompt throughput: "
    "354.4 tokens/s, Avg generation throughput: 32.1 tokens/s, Running: {} reqs, Waiting: {} reqs, {}GPU KV cache "
    "usage: {}%, Prefix cache hit rate: 0.0%"
)
START = "(EngineCore pid=9) INFO 11-29 16:00:20 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: x"


def vllm(minute: int, second: int, running: int, waiting: int, usage: float, rank: int = 0, more: str = "") -> str:
    return VLLM.format(minute, second, rank, running, waiting, more, usage)


@pytest.fixture
def told(tmp_path: Path) -> Callable[..., tuple[EngineSeries, ...]]:
    def read(lines: Iterable[str], kind: str = "vllm", window: Window = WINDOW) -> tuple[EngineSeries, ...]:
        path = tmp_path / "engine.log"
        path.write_text("".join(f"{line}\n" for line in lines))
        return read_load(path, kind, window)

    return read


Told = Callable[..., tuple[EngineSeries, ...]]


def test_vllms_lines_on_the_grid_and_silence_is_idle(told: Told) -> None:
    (engine,) = told([vllm(0, 5, 8, 16, 12.5), vllm(0, 9, 7, 0, 11.0), vllm(0, 36, 3, 1, 5.0)])
    samples = engine.samples
    # 16:00:05 and :09 share a slot of 10 s, of which the later counts; :36 is in the fourth one.
    assert samples.time.tolist() == [AT + 10, AT + 20, AT + 30, AT + 40]
    assert samples.running.tolist() == [7, 0, 0, 3]
    assert samples.waiting.tolist() == [0, 0, 0, 1]
    assert samples.kv_usage is not None
    assert samples.kv_usage.tolist() == [0.11, 0, 0, 0.05]
    assert (engine.instance, engine.engine, engine.epoch_cause) == ("engine.log", "0", "first_seen")


def test_a_start_begins_anew(told: Told) -> None:
    (engine,) = told([vllm(0, 5, 8, 16, 12.5), START, vllm(0, 46, 3, 1, 5.0)])
    assert (engine.samples.running.tolist(), engine.epoch_cause) == ([3], "restarted")


def test_ranks_apart_and_aggregates_left_out(told: Told) -> None:
    aggregated = vllm(0, 5, 9, 9, 9.0).replace("Engine 000", "2 Engines Aggregated")
    zero, one = told([vllm(0, 5, 8, 0, 1.0), vllm(0, 5, 4, 0, 1.0, rank=1), aggregated])
    assert (zero.engine, zero.samples.running.tolist()) == ("0", [8])
    assert (one.engine, one.samples.running.tolist()) == ("1", [4])


def test_words_of_other_releases(told: Told) -> None:
    old = (
        "INFO 11-29 16:00:05 metrics.py:455] Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 "
        "tokens/s, Running: 5 reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache usage: 40.0%, CPU KV cache usage: "
        "0.0%."
    )
    assert told([old])[0].samples.waiting.tolist() == [2]
    new = vllm(0, 5, 8, 16, 12.5, more="Deferred: 2 reqs, Preemptions: 4, ")
    assert told([new])[0].samples.waiting.tolist() == [16]


def test_the_year_is_the_last_in_which_the_day_has_come(told: Told) -> None:
    # date -u -d 2027-01-01 +%s = 1798761600
    line = vllm(0, 5, 8, 0, 1.0).replace("11-29 16:00:05", "12-31 23:59:50")
    (engine,) = told([line], window=Window(1798761600.0 - 3600, 1798761600.0 + 60))
    assert engine.samples.time.tolist() == [1798761600]


def test_lines_outside_the_window_and_of_prompts_are_nobodys(told: Told) -> None:
    assert told([vllm(0, 5, 8, 0, 1.0).replace("11-29", "11-20")]) == ()
    said = vllm(0, 5, 999, 0, 1.0)
    assert told([f"INFO 11-29 16:00:01 [logger.py:4] Received request r1: prompt: 'x.py:1] {said[60:]}'"]) == ()


def test_sglangs_batches(told: Told) -> None:
    lines = [
        "[2026-11-29 16:00:01 TP0] server_args=ServerArgs(model_path='/m')",
        (
            "[2026-11-29 16:00:05 TP0] Prefill batch, #new-seq: 2, #new-token: 900, #cached-token: 0, full "
            "token usage: 0.30, swa token usage: 0.10, #running-req: 6, #queue-req: 3,"
        ),
        (
            "[2026-11-29 16:00:20 TP0] Decode batch, #running-req: 8, #token: 5000, token usage: 0.25, "
            "cuda graph: True, gen throughput (token/s): 594.01, #queue-req: 1"
        ),
        (
            "[2026-11-29 16:00:50 TP0] Decode batch. #running-req: 4, #token: 900, token usage: 0.05, cuda graph: "
            "True, gen throughput (token/s): 594.01, #queue-req: 0"
        ),
        (
            "[2026-11-29 16:00:51] Finish: obj=GenerateReqInput(text='] Decode batch, #running-req: 99, "
            "token usage: 1.00, #queue-req: 99')"
        ),
    ]
    (engine,) = told(lines, "sglang")
    assert engine.samples.running.tolist() == [8, 8, 0, 4]
    assert engine.samples.waiting.tolist() == [3, 1, 0, 0]
    assert engine.samples.kv_usage is not None
    assert engine.samples.kv_usage.tolist() == [0.3, 0.25, 0, 0.05]


def test_times_of_whoever_took_the_lines_down(told: Told) -> None:
    wrapped = json.dumps({"log": vllm(0, 5, 8, 0, 1.0) + "\n", "time": "2026-11-29T16:30:05.5Z"})
    (engine,) = told([wrapped])
    assert engine.samples.time.tolist() == [AT + 1810]


def test_other_engines_print_nothing_that_is_read(told: Told) -> None:
    assert told([vllm(0, 5, 8, 0, 1.0)], "tgi") == ()


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_load(tmp_path / "gone.log", "vllm", WINDOW)
