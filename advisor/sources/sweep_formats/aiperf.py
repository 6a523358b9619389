"""Results of AIPerf (`profile_export_aiperf.json`) and of its forerunner genai-perf (`*_genai_perf.json`).

Both call our TPOT `inter_token_latency`: of each request, (end-to-end - first token) / (output tokens - 1), and their
percentiles are over requests. Their `inter_chunk_latency` is of gaps and not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from advisor.domain.sweep import SloStatistic, SweepPoint

from .run import RanOn, Run, SweepFormat, at, check_completed, figure, name

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}


def _runs(data: Any) -> Iterable[Run]:
    if isinstance(data, dict) and "input_config" in data and isinstance(data.get("request_latency"), dict):
        return (data,)
    return ()


def _point(run: Run) -> SweepPoint:
    done, failed = figure(run, "request_count", "avg"), figure(run, "error_request_count", "avg") or 0
    completed = check_completed(done, (done or 0) + failed)
    statistic, tpot = _time_per_token(run)
    limit = _limit(run)
    return SweepPoint(
        concurrency=_computed(run) if limit is None else min(limit, completed),
        tpot_seconds=tpot,
        ttft_seconds=_time(run, "time_to_first_token", statistic),
        requests_per_second=figure(run, "request_throughput", "avg"),
        statistic=statistic,
        requests=round(completed),
        computed=limit is None,
        prompt_tokens=figure(run, "input_sequence_length", "avg"),
        output_tokens=figure(run, "output_sequence_length", "avg"),
    )


def _time(run: Run, metric: str, statistic: SloStatistic) -> float | None:
    value = figure(run, metric, "avg" if statistic == "mean" else statistic)
    scale = _SECONDS.get(str(at(run, metric, "unit")))
    return None if value is None or scale is None else value * scale


def _time_per_token(run: Run) -> tuple[SloStatistic, float]:
    statistics: tuple[SloStatistic, ...] = ("p99", "mean")
    for statistic in statistics:
        if seconds := _time(run, "inter_token_latency", statistic):
            return statistic, seconds
    raise ValueError("reports no inter_token_latency; run it with --streaming")


def _limit(run: Run) -> float | None:
    """The concurrency that was set: every release keeps it in another place."""
    config = at(run, "input_config")
    phases = at(config, "phases") if isinstance(config, Mapping) else None
    places = [phase for phase in phases if isinstance(phase, Mapping)] if isinstance(phases, list) else []
    measured = [phase for phase in places if "warmup" not in str(phase.get("name", phase.get("type", "")))]
    found = [figure(phase, "concurrency") for phase in measured]
    found += [figure(run, "input_config", "loadgen", "concurrency")]
    found += [figure(run, "input_config", "perf_analyzer", "stimulus", "concurrency")]
    return next((limit for limit in found if limit is not None), None)


def _computed(run: Run) -> float:
    """Little's law on decoding: requests per second x (latency - time to first token)."""
    rate = figure(run, "request_throughput", "avg")
    whole, first = (_time(run, metric, "mean") for metric in ("request_latency", "time_to_first_token"))
    if rate is None or whole is None or first is None or whole <= first:
        raise ValueError("paced by request rate, and without throughput and latencies its concurrency is unknown")
    return rate * (whole - first)


def _ran_on(run: Run) -> RanOn:
    names = [
        name(run, "input_config", "endpoint", "model_names"),
        name(run, "input_config", "endpoint", "model"),
        *(_first_name(run, *keys) for keys in (("endpoint", "model_names"), ("models",), ("model_names",))),
    ]
    return RanOn(model=next((model for model in names if model), None))


def _first_name(run: Run, *keys: str) -> str | None:
    listed = at(run, "input_config", *keys)
    first = listed[0] if isinstance(listed, list) and listed else None
    return name({"name": at(first, "name") if isinstance(first, Mapping) else first}, "name")


AIPERF = SweepFormat("AIPerf", _runs, _point, _ran_on)
