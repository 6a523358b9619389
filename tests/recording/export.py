"""Runs of engines as the files that a real fleet leaves behind: OpenMetrics under vLLM 0.32's names, and JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.recording import meters
from tests.recording.engine import EngineFlags, Request
from tests.recording.meters import Scrape

Sample = tuple[float, float]
Series = tuple[str, dict[str, str], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class EngineRun:
    """One life of one engine: its flags, when its process started, what scrapes read and the requests it was given."""

    instance: str
    rank: str
    flags: EngineFlags
    started: float
    scrapes: list[Scrape]
    requests: list[Request]


def write_metrics(path: Path, model: str, runs: list[EngineRun], start: float) -> None:
    """Write every series of every engine; `start` is the UNIX time of the recording's zero."""
    families: dict[str, tuple[str, list[Series]]] = {}
    for run in runs:
        for family, kind, series in (*_engine_series(model, run), *_process_series(run, runs, start)):
            families.setdefault(family, (kind, []))[1].append(series)
    with path.open("w", encoding="utf-8") as file:
        for family, (kind, listed) in families.items():
            file.write(f"# TYPE {family} {kind}\n")
            for name, labels, samples in listed:
                head = name + "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}"
                file.writelines(f"{head} {_number(value)} {start + time:.0f}\n" for time, value in samples)
        file.write("# EOF\n")


def _number(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _engine_series(model: str, run: EngineRun) -> Iterator[tuple[str, str, Series]]:
    labels = {"job": "vllm", "instance": run.instance, "model_name": model, "engine": run.rank}
    scrapes = run.scrapes
    gauges: dict[str, list[Sample]] = {
        "vllm:num_requests_running": [(s.time, s.running) for s in scrapes],
        "vllm:num_requests_waiting": [(s.time, s.waiting) for s in scrapes],
        "vllm:kv_cache_usage_perc": [(s.time, s.kv_usage) for s in scrapes],
    }
    for name, samples in gauges.items():
        yield name, "gauge", (name, labels, samples)
    for name in (meters.PREEMPTIONS, meters.PROMPT_TOKENS, meters.OUTPUT_TOKENS):
        yield name, "counter", (f"{name}_total", labels, [(s.time, s.counters[name]) for s in scrapes])
    success = "vllm:request_success"
    for reason in (meters.FINISHED_STOP, meters.FINISHED_LENGTH):
        finished = [(s.time, s.counters[reason]) for s in scrapes]
        yield success, "counter", (f"{success}_total", {**labels, "finished_reason": reason}, finished)
    for name, edges in run_edges(run).items():
        for place, edge in enumerate((*edges, float("inf"))):
            le = "+Inf" if edge == float("inf") else repr(edge)
            counts = [(s.time, s.histograms[name][0][place]) for s in scrapes]
            yield name, "histogram", (f"{name}_bucket", {**labels, "le": le}, counts)
        yield name, "histogram", (f"{name}_count", labels, [(s.time, s.histograms[name][0][-1]) for s in scrapes])
        yield name, "histogram", (f"{name}_sum", labels, [(s.time, s.histograms[name][1]) for s in scrapes])


def run_edges(run: EngineRun) -> dict[str, tuple[float, ...]]:
    """The finite bucket edges of each histogram family of an engine with these flags."""
    return {name: tuple(h.edges) for name, h in meters.Meters(run.flags.max_model_len).histograms.items()}


def _process_series(run: EngineRun, runs: list[EngineRun], start: float) -> Iterator[tuple[str, str, Series]]:
    """What a process exposes once, whatever number of engines it holds; and the pool, once an engine."""
    labels = {"job": "vllm", "instance": run.instance}
    ranks = [r for r in runs if r.instance == run.instance and r.started == run.started]
    times = [s.time for s in run.scrapes]
    info = labels | {"engine": run.rank} | _cache_config(run.flags, len(ranks))
    yield "vllm:cache_config_info", "gauge", ("vllm:cache_config_info", info, [(t, 1) for t in times])
    if run is not ranks[0]:
        return
    yield "up", "gauge", ("up", labels, [(t, 1) for t in times])
    name = "process_start_time_seconds"
    yield name, "gauge", (name, labels, [(t, start + run.started) for t in times])
    for status, counted in (
        ("2xx", (meters.FINISHED_STOP, meters.FINISHED_LENGTH)),
        ("4xx", (meters.REFUSED,)),
    ):
        answers = [
            (scrapes[0].time, sum(s.counters[counter] for s in scrapes for counter in counted))
            for scrapes in zip(*(r.scrapes for r in ranks), strict=True)
        ]
        route = {"handler": "/v1/chat/completions", "method": "POST", "status": status}
        yield "http_requests", "counter", ("http_requests_total", labels | route, answers)


def _cache_config(flags: EngineFlags, ranks: int) -> dict[str, str]:
    """The labels that describe the pool: blocks are summed over data-parallel ranks, tokens are of one engine."""
    concurrency = flags.blocks * flags.block_size / flags.max_model_len
    return {
        "block_size": str(flags.block_size),
        "cache_dtype": "auto",
        "enable_prefix_caching": "False",
        "gpu_memory_utilization": "0.92",
        "kv_cache_max_concurrency": repr(concurrency),
        "kv_cache_size_tokens": str(int(concurrency * flags.max_model_len)),
        "num_gpu_blocks": str(flags.blocks * ranks),
    }


def write_request_log(path: Path, model: str, runs: list[EngineRun], start: float) -> None:
    """Write one JSON object a finished or refused request, in the order in which a gateway completes them."""
    answered = [(_completed(request), run, request) for run in runs for request in run.requests]
    answered = sorted((row for row in answered if not math.isnan(row[0])), key=lambda row: row[0])
    with path.open("w", encoding="utf-8") as file:
        for time, run, request in answered:
            common = {"ts": round(start + time, 3), "model": model, "upstream": run.instance}
            row = common | _answer(request, run.flags.max_model_len)
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def _completed(request: Request) -> float:
    """When the client had its answer; NaN while the request is in flight."""
    return request.arrival if request.refused else request.finished


def _answer(request: Request, max_model_len: int) -> dict[str, object]:
    declared: dict[str, object] = {"max_tokens": request.max_tokens} if request.max_tokens else {}
    if request.refused:
        message = (
            f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
            f"{request.prompt_tokens} input tokens, which exceeds this limit even without any output tokens."
        )
        error = {"type": "BadRequestError", "code": 400, "message": message}
        return declared | {"status": 400, "error": error}
    usage = {
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": request.generated,
        "total_tokens": request.prompt_tokens + request.generated,
    }
    return declared | {
        "status": 200,
        "usage": usage,
        "ttft_ms": round(1000 * (request.first_token - request.arrival)),
        "duration_ms": round(1000 * (request.finished - request.arrival)),
        "finish_reason": request.finish_reason,
    }
