"""KV pools that real engines printed, against the arithmetic: from their bytes, and from the memory of the GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from advisor.domain.evidence import Evidence, Flag, FlagValue, GpuInfo, ModelInfo, ReportedPool, Window
from advisor.domain.fact import FactSheet
from advisor.domain.policy import Policy
from advisor.estimates import estimate
from tests.accuracy.kv_cases import (
    ALSO_STATED,
    COLUMNS,
    USABLE_GIB,
    VERSIONS,
    Case,
    configs_of,
    model_of,
    table,
)
from tests.accuracy.table import Row, bound_row, share_row

GIB = float(2**30)


def rows(data: Path | None) -> list[Row]:
    """Tokens from printed bytes, twice by their bounds, and the pool from total memory."""
    names = (
        "KV tokens from printed bytes",
        "  none above 5 %",
        "KV pool from GPU memory, bounds",
    )
    folder = data / "kv_pool" if data else None
    if folder is None or not (folder / "cases.csv").is_file():
        goals = ("+-1% on 95%", "+-5% on 100%", ">= 90%")
        return [Row(name, goal, "no kv_pool in DATA") for name, goal in zip(names, goals, strict=True)]
    cases = list(table(folder / "cases.csv"))
    configs = configs_of(folder / "model_configs.json")
    errors = [(case["id"], _error(case, configs)) for case in cases if _measures_arithmetic(case)]
    inside = [*map(_inside, table(folder / "memory_breakdown.csv")), *_other_start_ups(cases, folder)]
    return [
        bound_row(names[0], errors, 0.01, 0.95, form="+.2%"),
        bound_row(names[1], errors, 0.05, 1.0, form="+.2%"),
        share_row(names[2], inside, 0.9),
    ]


def _measures_arithmetic(case: Case) -> bool:
    printed = case["reported_kv_tokens"] and case["reported_available_kv_gib_per_gpu"]
    return case["arith_basis"] == "stated" and bool(printed)


def _error(case: Case, configs: Mapping[str, dict[str, Any]]) -> float | None:
    """(predicted - printed) / printed; of the middle of an interval where the layout is not wholly told."""
    model = model_of(case, configs)
    flags: dict[str, FlagValue] = {flag: int(case[c]) for c, flag in COLUMNS.items() if case[c].isdigit()}
    if case["kv_cache_dtype"]:
        flags["kv_cache_dtype"] = case["kv_cache_dtype"]
    concurrency = float(case["reported_max_concurrency"]) if case["reported_max_concurrency"] else None
    pool = ReportedPool(int(case["reported_kv_tokens"]), "start-up log", concurrency)
    error = _facts(
        case,
        flags | ALSO_STATED.get(case["id"], {}),
        ModelInfo(config=configs[model] if model else None),
        GpuInfo(kv_available_bytes=float(case["reported_available_kv_gib_per_gpu"]) * GIB),
        pool,
    )["kv_pool_relative_error"]
    if error.number is None and error.low is not None and error.high is not None:
        return (error.low + error.high) / 2
    return error.number


def _facts(
    case: Case, flags: Mapping[str, FlagValue], model: ModelInfo, gpu: GpuInfo, pool: ReportedPool | None
) -> FactSheet:
    version = VERSIONS.get(case.get("id", "")) or case.get("engine_version", "")
    evidence = Evidence(
        name="case",
        window=Window(0, 1),
        engine=case.get("engine") or "vllm",
        engine_version=version if re.match(r"\d+\.\d+", version) and "dev" not in version else None,
        model=model,
        gpu=gpu,
        reported_pool=pool,
        flags={name: Flag(value, "startup_log") for name, value in flags.items()},
    )
    return estimate(evidence, Policy())


def _other_start_ups(cases: list[Case], folder: Path) -> Iterator[tuple[str, bool | None]]:
    """Cases that print total memory, utilisation, weights and cache as well, and are not in the breakdown."""
    listed = {row["case_id"] for row in table(folder / "memory_breakdown.csv")}
    for case in cases:
        if case["id"] in listed or case["engine"] != "vllm":
            continue
        stated = (case["gpu_mem_gib"], case["gpu_memory_utilization"], case["reported_weights_gib_per_gpu"])
        if all(stated) and case["reported_available_kv_gib_per_gpu"]:
            total = USABLE_GIB.get(stated[0], float(stated[0]))
            yield _inside(
                {
                    **case,
                    "case_id": case["id"],
                    "total_gib": str(total),
                    "util": stated[1],
                    "weights_gib": stated[2],
                    "available_kv_gib": case["reported_available_kv_gib_per_gpu"],
                }
            )


def _inside(row: Case) -> tuple[str, bool | None]:
    """Whether the memory printed as left for the cache lies in the interval; at one byte a token it is a pool."""
    predicted = _facts(
        row,
        {"gpu_memory_utilization": float(row["util"])},
        ModelInfo(weights_bytes=float(row["weights_gib"]) * GIB, kv_bytes_per_token=1.0),
        GpuInfo(memory_bytes=float(row["total_gib"]) * GIB),
        None,
    )["kv_pool_tokens_predicted"]
    if predicted.low is None or predicted.high is None:
        return row["case_id"], None
    return row["case_id"], predicted.low <= float(row["available_kv_gib"]) * GIB <= predicted.high
