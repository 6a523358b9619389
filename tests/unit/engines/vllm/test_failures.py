from __future__ import annotations

import time

import pytest

from advisor.domain.failure import Failure
from advisor.engines.vllm.failures import TELLING
from advisor.engines.vllm.startup_log import parse_startup

BANNER = "INFO 03-11 10:00:01 [api_server.py:1034] vLLM API server version 0.11.0"
NEEDS = "To serve at least one request with the models's max seq len (40960), (5.62 GiB KV cache is needed, which is "
OUT = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.15 GiB. GPU 0 has a total capacity of 79.25 GiB"


def failure(*lines: str) -> Failure | None:
    start = parse_startup(lines)
    return start.failure if start else None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            (
                "ValueError: The model's max seq len (4096) is larger than the maximum number of tokens that "
                "can be stored "
                "in KV cache (3664). Try increasing `gpu_memory_utilization`"
            ),
            Failure("limit_above_pool", limit_tokens=4096, most_tokens=3664),
        ),
        (
            (
                f"ValueError: {NEEDS}larger than the available KV cache memory (4.50 GiB). Based on the "
                "available memory, "
                "the estimated maximum model length is 32768. Try"
            ),
            Failure("limit_above_pool", limit_tokens=40960, most_tokens=32768),
        ),
        (  # before 0.8.4 without the estimate: 40,960 x 4.5 / 5.62 = 32,797
            f"ValueError: {NEEDS}larger than the available KV cache memory (4.50 GiB). Try increasing",
            Failure("limit_above_pool", limit_tokens=40960, most_tokens=32797),
        ),
        (  # newer releases have neither the s nor the bracket
            (
                "ValueError: To serve at least one request with the model's max seq len (4096), 0.22 GiB KV "
                "cache is needed, "
                "which is larger than the available KV cache memory (0.09 GiB). Based on the available "
                "memory, the estimated "
                "maximum model length is 1664."
            ),
            Failure("limit_above_pool", limit_tokens=4096, most_tokens=1664),
        ),
        ("ValueError: No available memory for the cache blocks. Try increasing", Failure("no_memory_for_cache")),
        (  # 106.88 / 121.69 = 87.8 %
            (
                "ValueError: Free memory on device cuda:0 (106.88/121.69 GiB) on startup is less than desired "
                "GPU memory "
                "utilization (0.89, 108.3 GiB)."
            ),
            Failure("memory_taken", free_share=106.88 / 121.69),
        ),
        (
            "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (614). Each decode sequence requires",
            Failure("seats_above_state_slots", seats=1024, most_seats=614),
        ),
        (
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try",
            Failure("out_of_memory_by_seats", seats=1024),
        ),
    ],
)
def test_what_it_says_before_it_ends(line: str, expected: Failure) -> None:
    assert TELLING.search(line.encode())
    assert failure(line) == expected
    assert failure(BANNER, f"(EngineCore_DP0 pid=15) ERROR 03-11 10:00:09 [core.py:708] {line}") == expected


def test_memory_runs_out_before_or_after_it_came_up() -> None:
    assert failure(BANNER, OUT) == Failure("out_of_memory_starting")
    assert failure(BANNER, "INFO:     Application startup complete.", OUT) == Failure("out_of_memory_serving")


def test_words_of_the_libraries_below_do_not_make_it_a_log_of_this_engine() -> None:
    assert parse_startup([OUT]) is None


def test_the_first_error_counts_the_others_are_its_echo() -> None:
    first = "max_num_seqs (1024) exceeds available Mamba cache blocks (614)"
    assert failure(BANNER, first, "RuntimeError: Engine core failed: CUDA out of memory") == Failure(
        "seats_above_state_slots", seats=1024, most_seats=614
    )


def test_a_later_start_that_went_well_forgets_it() -> None:
    arguments = "INFO 03-11 10:00:01 [api_server.py:1] non-default args: {'model': 'm'}"
    assert failure(BANNER, arguments, OUT, BANNER, arguments) is None


def test_the_limit_that_failed_is_the_one_that_it_ran_with() -> None:
    start = parse_startup([f"{NEEDS}larger than the available KV cache memory (4.50 GiB)."])
    assert start is not None
    assert start.flags == {"max_model_len": 40960}


def test_a_prompt_that_speaks_of_it_is_no_failure() -> None:
    assert failure(BANNER, "INFO Received request cmpl-1: prompt: 'max_num_seqs (9) exceeds available Mamba cache "
                           "blocks (1)'") is None  # fmt: skip


@pytest.mark.parametrize("line", ["max seq len (1), " * 20_000, "Free memory on device (" * 20_000, "(1" * 60_000])
def test_hostile_lines_take_no_time(line: str) -> None:
    started = time.perf_counter()
    failure(BANNER, line)
    assert time.perf_counter() - started < 5
