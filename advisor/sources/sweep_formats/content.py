"""The text of a result file as plain data: JSON, JSON lines, a table (CSV), or what a benchmark printed."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

MOST_RUNS = 1_000
MOST_VALUES = 5_000_000

_PRINTED = "Serving Benchmark Result"
_PRINTED_KEYS = {
    "Successful requests": "completed",
    "Failed requests": "failed",
    "Maximum request concurrency": "max_concurrency",
    "Max request concurrency": "max_concurrency",
    "Request rate configured (RPS)": "request_rate",
    "Traffic request rate": "request_rate",
    "Benchmark duration (s)": "duration",
    "Total input tokens": "total_input_tokens",
    "Total generated tokens": "total_output_tokens",
    "Request throughput (req/s)": "request_throughput",
}
_LATENCY = re.compile(r"(Mean|Median|P99) (TTFT|TPOT|ITL) \(ms\)")


def parsed(text: str) -> Any:
    """What the text holds. Raises ValueError with the reason when it is none of these forms, or too much to hold."""
    if _PRINTED in text:
        return _printed(text)
    if not text.lstrip().startswith(("{", "[")):
        return _table(text)
    # A value takes up to 64 bytes in memory, however few it takes in the file.
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise ValueError(f"holds more than {MOST_VALUES // 10**6} million values; write it without details")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    lines = [line for line in text.splitlines() if line.strip()]
    _check_number(len(lines))
    try:
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        raise ValueError("neither JSON nor JSON lines, or cut off") from None


def _check_number(runs: int) -> None:
    if runs > MOST_RUNS:
        raise ValueError(f"more than {MOST_RUNS:,} runs; give those of one sweep")


def _table(text: str) -> list[dict[str, Any]]:
    lines = text.splitlines()
    header = lines[0].split(",") if lines else []
    if "completed" not in header:
        told = f" (its columns: {', '.join(header)[:120]})" if len(header) > 1 else ""
        raise ValueError(f"neither JSON nor a table with the time per output token of every load level{told}")
    _check_number(len(lines) - 1)
    try:
        rows = list(csv.DictReader(lines, restkey="", restval="", strict=True))
    except csv.Error as error:
        raise ValueError(f"no table: {error}") from None
    return [{key: _value(value) for key, value in row.items() if isinstance(value, str)} for row in rows]


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text or None


def _printed(text: str) -> list[dict[str, Any]]:
    """One run a block. Lines before a block belong to it: they say how it was sent."""
    runs: list[dict[str, Any]] = []
    for block in re.split(r"={40,}\s*(?:\n|$)", text):
        run: dict[str, Any] = {}
        for line in block.splitlines():
            label, _, value = line.partition(":")
            label = label.strip()
            latency = _LATENCY.fullmatch(label)
            key = "_".join(latency.groups()).lower() + "_ms" if latency else _PRINTED_KEYS.get(label)
            if key is not None:
                run[key] = _value(value.strip())
        if "completed" in run:
            runs.append(run)
    _check_number(len(runs))
    return runs
