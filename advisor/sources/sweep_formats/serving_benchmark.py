"""Results of `vllm bench serve`, of its forerunner benchmark_serving.py, and of SGLang's bench_serving.

All three are one family of JSON objects with the same key names, one object a load level. Their TPOT is ours: of each
request, (end-to-end - first token) / (output tokens - 1); `p99_tpot_ms` is over requests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from advisor.domain.evidence import SloStatistic, SweepPoint

from .run import Run, SweepFormat, check_completed, decoding_sequences, figure, milliseconds

_MARKS = ("mean_tpot_ms", "mean_itl_ms", "median_itl_ms")


def _runs(data: Any) -> Iterable[Run]:
    runs = data if isinstance(data, list) else [data]
    if all(isinstance(run, dict) and "completed" in run and any(mark in run for mark in _MARKS) for run in runs):
        return runs
    return ()


def _point(run: Run) -> SweepPoint:
    completed = check_completed(figure(run, "completed"), figure(run, "num_prompts"))
    statistic, tpot = _time_per_token(run)
    duration = figure(run, "duration")
    rate = completed / duration if duration else None
    return SweepPoint(
        concurrency=_concurrency(run, completed),
        tpot_seconds=tpot,
        ttft_seconds=milliseconds(run, f"{statistic}_ttft_ms"),
        requests_per_second=figure(run, "request_throughput") or rate,
        statistic=statistic,
    )


def _time_per_token(run: Run) -> tuple[SloStatistic, float]:
    if p99 := milliseconds(run, "p99_tpot_ms"):
        return "p99", p99
    # The mean gap is the mean TPOT weighted by output length.
    if mean := milliseconds(run, "mean_tpot_ms") or milliseconds(run, "mean_itl_ms"):
        return "mean", mean
    raise ValueError("reports neither TPOT nor the mean gap between tokens, and a median tells nothing of an objective")


def _concurrency(run: Run, completed: float) -> float:
    limit, paced = figure(run, "max_concurrency"), figure(run, "request_rate")
    if paced is None:
        if limit is None:
            raise ValueError("sent everything at once without --max-concurrency, so how many ran together is not known")
        return min(limit, completed)
    gap = min(milliseconds(run, key) or math.inf for key in ("mean_itl_ms", "mean_tpot_ms"))
    tokens, duration = figure(run, "total_output_tokens"), figure(run, "duration")
    if gap == math.inf or tokens is None or duration is None or tokens <= completed:
        raise ValueError(
            "paced by request rate, and without mean gap, output tokens and duration its concurrency is unknown"
        )
    return min(decoding_sequences(gap, tokens, completed, duration), limit or math.inf)


def _model(run: Run) -> str | None:
    name = run.get("model_id")
    return name[:200] if isinstance(name, str) else None


SERVING_BENCHMARK = SweepFormat("serving benchmark", _runs, _point, _model)
