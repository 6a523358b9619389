"""Results of GuideLLM, JSON.

Its `inter_token_latency_ms` of a request excludes the first token, and so is our TPOT; its `time_per_output_token_ms`
includes it. Its percentiles weigh requests by their tokens, which hides the slow short ones: only the mean is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from advisor.domain.sweep import SweepPoint

from .run import RanOn, Run, SweepFormat, at, check_completed, decoding_sequences, figure, milliseconds, name


def _runs(data: Any) -> Iterable[Run]:
    runs = data.get("benchmarks") if isinstance(data, dict) else None
    if isinstance(runs, list) and all(isinstance(run, dict) and "metrics" in run for run in runs):
        return runs
    return ()


def _point(run: Run) -> SweepPoint:
    metrics = at(run, "metrics") or {}
    completed = check_completed(figure(metrics, "request_totals", "successful"), _finished(metrics))
    gap = milliseconds(metrics, "inter_token_latency_ms", "successful", "mean")
    if gap is None:
        raise ValueError("reports no gap between tokens; run it with streaming on")
    concurrency, computed = _concurrency(run, gap, completed)
    return SweepPoint(
        concurrency=concurrency,
        tpot_seconds=gap,
        ttft_seconds=milliseconds(metrics, "time_to_first_token_ms", "successful", "mean"),
        requests_per_second=figure(metrics, "requests_per_second", "successful", "mean"),
        requests=round(completed),
        computed=computed,
        prompt_tokens=figure(metrics, "prompt_token_count", "successful", "mean"),
        output_tokens=figure(metrics, "output_token_count", "successful", "mean"),
    )


def _finished(metrics: Run) -> float:
    """Requests that ended well or badly; those cut off by the end of the run are no failures."""
    return (figure(metrics, "request_totals", "successful") or 0) + (figure(metrics, "request_totals", "errored") or 0)


def _concurrency(run: Run, gap: float, completed: float) -> tuple[float, bool]:
    """(sequences that ran together, whether that was computed)."""
    strategy = at(run, "config", "strategy") or at(run, "args", "strategy") or {}
    kind = at(strategy, "type_")
    limit = figure(strategy, "streams") or figure(strategy, "max_concurrency")
    if kind == "synchronous":
        return 1, False
    if kind in ("concurrent", "throughput"):
        if limit is None:
            raise ValueError("sent everything at once without a limit, so how many ran together is not known")
        return min(limit, completed), False
    tokens = figure(run, "metrics", "output_token_count", "successful", "total_sum")
    duration = figure(run, "duration")
    if tokens is None or duration is None or tokens <= completed:
        raise ValueError("paced by request rate, and without output tokens and duration its concurrency is not known")
    return min(decoding_sequences(gap, tokens, completed, duration), limit or math.inf), True


def _ran_on(run: Run) -> RanOn:
    return RanOn(model=name(run, "config", "backend", "model"))


GUIDELLM = SweepFormat("GuideLLM", _runs, _point, _ran_on)
