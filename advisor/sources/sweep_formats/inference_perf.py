"""Results of inference-perf: `stage_N_lifecycle_metrics.json`, one file a load level, times in seconds.

Its `time_per_output_token` of a request is (last token - first token) / (output tokens - 1), and so is our TPOT. Some
releases counted a begin-of-text token with every chunk and so reported half of it: the mean is held against
(request latency - time to first token) / (output tokens - 1), and where they differ only that mean is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from advisor.domain.sweep import SloStatistic, SweepPoint

from .run import RanOn, Run, SweepFormat, at, check_completed, figure

AGREE = 0.2


def _runs(data: Any) -> Iterable[Run]:
    if isinstance(data, dict) and isinstance(at(data, "successes", "latency"), dict) and "load_summary" in data:
        return (data,)
    return ()


def _point(run: Run) -> SweepPoint:
    if figure(run, "load_summary", "requested_rate") is None and figure(run, "load_summary", "concurrency") is None:
        raise ValueError("sums up several stages; give the files of the single stages")
    done, failed = figure(run, "successes", "count"), figure(run, "failures", "count") or 0
    completed = check_completed(done, (done or 0) + failed)
    rate = figure(run, "successes", "throughput", "requests_per_sec")
    decoding = _decoding_seconds(run)
    if rate is None or decoding is None:
        raise ValueError("reports no throughput, latency or time to first token; run it with streaming on")
    statistic, tpot = _time_per_token(run, decoding)
    limit = figure(run, "load_summary", "concurrency")
    return SweepPoint(
        concurrency=min(limit, completed) if limit else rate * decoding,
        tpot_seconds=tpot,
        ttft_seconds=_latency(run, "time_to_first_token", statistic),
        requests_per_second=rate,
        statistic=statistic,
        requests=round(completed),
        computed=limit is None,
        prompt_tokens=figure(run, "successes", "prompt_len", "mean"),
        output_tokens=figure(run, "successes", "output_len", "mean"),
    )


def _latency(run: Run, kind: str, statistic: SloStatistic) -> float | None:
    return figure(run, "successes", "latency", kind, statistic)


def _decoding_seconds(run: Run) -> float | None:
    """Mean time from first to last token: 11.40 s - 4.69 s = 6.71 s."""
    whole, first = _latency(run, "request_latency", "mean"), _latency(run, "time_to_first_token", "mean")
    return whole - first if whole is not None and first is not None and whole > first else None


def _time_per_token(run: Run, decoding_seconds: float) -> tuple[SloStatistic, float]:
    """6.71 s / (128.6 - 1) tokens = 52.6 ms; a reported mean of 26.1 ms counted every token twice."""
    tokens = figure(run, "successes", "output_len", "mean")
    derived = decoding_seconds / (tokens - 1) if tokens is not None and tokens > 1 else None
    mean, p99 = (_latency(run, "time_per_output_token", statistic) for statistic in ("mean", "p99"))
    if mean is not None and derived is not None and abs(mean - derived) > AGREE * derived:
        return "mean", derived
    if p99 is not None:
        return "p99", p99
    if mean is not None or derived is not None:
        return "mean", mean or derived or 0.0
    raise ValueError("reports no time per output token; run it with streaming on")


def _ran_on(_run: Run) -> RanOn:
    """The lifecycle file names neither the model nor its flags."""
    return RanOn()


INFERENCE_PERF = SweepFormat("inference-perf", _runs, _point, _ran_on)
