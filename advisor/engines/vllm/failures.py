"""Why vLLM did not start, or died of memory: the words of its errors, 0.2 to 0.33."""

from __future__ import annotations

import re
from collections.abc import Callable

from advisor.domain.failure import Failure

TELLING = re.compile(
    rb"max seq len \(|No available memory for the cache|Free memory on device|available Mamba cache blocks"
    rb"|[Oo]ut ?[Oo]f ?[Mm]emory|Application startup complete"
)
"""Finds the lines worth parsing in the bytes of a large log."""

UP = re.compile(r"Application startup complete")
_COUNT = r"(\d{1,12})"
_SHARE = r"(\d{1,6}(?:\.\d{1,6})?)"


def _above_pool(match: re.Match[str]) -> Failure:
    return Failure("limit_above_pool", limit_tokens=int(match[1]), most_tokens=int(match[2]))


def _above_memory(match: re.Match[str]) -> Failure:
    """Where the longest limit is not said, it is in proportion: 40,960 at 5.62 GiB are 32,797 at 4.5 GiB."""
    limit, needed, available = int(match[1]), float(match[2]), float(match[3])
    proportional = int(limit * available / needed) if needed else 0
    return Failure("limit_above_pool", limit_tokens=limit, most_tokens=int(match[4]) if match[4] else proportional)


def _taken(match: re.Match[str]) -> Failure:
    free, total = float(match[1]), float(match[2])
    return Failure("memory_taken", free_share=min(free / total, 1.0) if total else None)


_WORDINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Failure]], ...] = (
    # Before the V1 engine: the limit, and how many tokens the cache holds.
    (
        re.compile(
            rf"max seq len \({_COUNT}\) is larger than the maximum number of tokens .{{0,40}}KV cache \({_COUNT}"
        ),
        _above_pool,
    ),
    # Since: the limit, and from 0.8.4 the longest one that would start.
    (
        re.compile(
            rf"max seq len \({_COUNT}\),? \(?{_SHARE} GiB KV cache is needed.{{0,60}}KV cache memory \({_SHARE} GiB"
            rf"(?:.{{0,120}}estimated maximum model length is {_COUNT})?"
        ),
        _above_memory,
    ),
    (re.compile(r"No available memory for the cache blocks"), lambda _: Failure("no_memory_for_cache")),
    (
        re.compile(
            rf"Free memory on device (?:\w{{1,20}}:\d{{1,3}} )?\({_SHARE}/{_SHARE} GiB\) on startup is less than"
        ),
        _taken,
    ),
    (
        re.compile(rf"max_num_seqs \({_COUNT}\) exceeds available Mamba cache blocks \({_COUNT}\)"),
        lambda match: Failure("seats_above_state_slots", seats=int(match[1]), most_seats=int(match[2])),
    ),
    (
        re.compile(rf"out of memory occurred when warming up sampler with {_COUNT} dummy requests"),
        lambda match: Failure("out_of_memory_by_seats", seats=int(match[1])),
    ),
)
OF_ANY_ENGINE = ("out_of_memory_serving", "out_of_memory_starting")
"""What the libraries below the engine say, so that it does not tell which engine wrote the log."""
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|(?:CUDA|HIP) out of memory")


def read_failure(line: str, *, up: bool) -> Failure | None:
    """The failure that a line speaks of; `up`: whether the server had come up before, so that it died while serving."""
    for pattern, failure in _WORDINGS:
        if match := pattern.search(line):
            return failure(match)
    if _OUT_OF_MEMORY.search(line):
        return Failure("out_of_memory_serving" if up else "out_of_memory_starting")
    return None
