"""Results of `vllm bench serve`, of its forerunner benchmark_serving.py, and of SGLang's bench_serving.

All three are one family with the same key names, one object, table row or printed block a load level. Their TPOT is
ours: of each request, (end-to-end - first token) / (output tokens - 1); `p99_tpot_ms` is over requests. Their ITL is
over gaps: its mean is the mean TPOT weighted by output length, its percentiles are of another thing and not used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from advisor.domain.evidence import FlagValue
from advisor.domain.sweep import SloStatistic, SweepPoint
from advisor.engines.vllm.flags import FLAGS, normalise

from .run import (
    LONGEST_NAME,
    RanOn,
    Run,
    SweepFormat,
    at,
    check_completed,
    decoding_sequences,
    figure,
    mean_of,
    milliseconds,
    name,
)

_MEANS = ("mean_itl_ms", "mean_tpot_ms")
_MARKS = (*_MEANS, "p99_tpot_ms", "median_itl_ms")
_SERVER_INFO = {
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "dp_size": "data_parallel_size",
    "max_running_requests": "max_num_seqs",
    "chunked_prefill_size": "max_num_batched_tokens",
    "quantization": "quantization",
    "kv_cache_dtype": "kv_cache_dtype",
}
"""What SGLang's bench_serving copies from the server, under vLLM's names."""

_CONDITIONS = (
    *("dataset_name", "random_input_len", "random_output_len", "sharegpt_output_len", "isl", "osl", "dataset"),
    *("hardware", "hw", "gpu", "gpus", "gpu_count", "framework", "precision", "tp", "pp", "dp", "ep"),
    *("prefill", "decode", "disagg", "spec_decoding", "num_scheduler_step", "max_seq_len_to_capture"),
)


def _runs(data: Any) -> Iterable[Run]:
    runs = data if isinstance(data, list) else [data]
    if all(isinstance(run, dict) and "completed" in run and any(mark in run for mark in _MARKS) for run in runs):
        return runs
    return ()


def _point(run: Run) -> SweepPoint:
    completed = check_completed(figure(run, "completed"), figure(run, "num_prompts"))
    statistic, tpot, at_most = _time_per_token(run, completed)
    duration = figure(run, "duration")
    rate = completed / duration if duration else None
    concurrency, computed = _concurrency(run, completed)
    return SweepPoint(
        concurrency=concurrency,
        tpot_seconds=tpot,
        ttft_seconds=milliseconds(run, f"{statistic}_ttft_ms"),
        requests_per_second=figure(run, "request_throughput") or rate,
        statistic=statistic,
        requests=round(completed),
        computed=computed,
        at_most=at_most,
        prompt_tokens=mean_of(figure(run, "total_input_tokens"), completed),
        output_tokens=mean_of(figure(run, "total_output_tokens"), completed),
    )


def _time_per_token(run: Run, completed: float) -> tuple[SloStatistic, float, bool]:
    """(statistic, seconds, whether that is only the most it can be).

    SGLang's results of early 2025 have medians only. Their mean time end to end, spread over all tokens but the first
    of each request, still bounds the mean gap from above: 7.841 s x 300 / (160,347 - 300) = 14.7 ms.
    """
    if p99 := milliseconds(run, "p99_tpot_ms"):
        return "p99", p99, False
    if mean := milliseconds(run, "mean_tpot_ms") or milliseconds(run, "mean_itl_ms"):
        return "mean", mean, False
    whole, tokens = milliseconds(run, "mean_e2e_latency_ms"), figure(run, "total_output_tokens")
    if whole is not None and tokens is not None and tokens > completed:
        return "mean", whole * completed / (tokens - completed), True
    raise ValueError("reports neither TPOT nor the mean gap between tokens, and a median tells nothing of an objective")


def _concurrency(run: Run, completed: float) -> tuple[float, bool]:
    """(sequences that ran together, whether that was computed)."""
    limit, paced = figure(run, "max_concurrency"), figure(run, "request_rate")
    if paced is None:
        if limit is None:
            raise ValueError("sent everything at once without --max-concurrency, so how many ran together is not known")
        return min(limit, completed), False
    keys = _MEANS if any(figure(run, mean) for mean in _MEANS) else ("median_itl_ms",)
    gap = min(milliseconds(run, key) or math.inf for key in keys)
    tokens, duration = figure(run, "total_output_tokens"), figure(run, "duration")
    if gap == math.inf or tokens is None or duration is None or tokens <= completed:
        raise ValueError(
            "paced by request rate, and without mean gap, output tokens and duration its concurrency is unknown"
        )
    return min(decoding_sequences(gap, tokens, completed, duration), limit or math.inf), True


def _ran_on(run: Run) -> RanOn:
    plain = {key.strip().lower().replace("-", "_"): value for key, value in run.items()}
    info = at(run, "server_info")
    stated = {ours: at(info, theirs) for theirs, ours in _SERVER_INFO.items()} if isinstance(info, Mapping) else {}
    model = name(run, "model_id") or name(run, "server_info", "model_path")
    return RanOn(model, _flags(stated | plain), _conditions(plain))


def _flags(stated: Mapping[str, Any]) -> dict[str, FlagValue]:
    """Those that are flags of an engine: `--metadata max_num_seqs=64` stands in the result as text."""
    flags: dict[str, FlagValue] = {}
    for key in FLAGS.keys() & stated.keys():
        value = stated[key]
        switch = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None
        try:
            if value is not None and value != "":
                flags[key] = normalise(key, value if switch is None else switch)
        except ValueError:
            continue
    return flags


def _conditions(stated: Mapping[str, Any]) -> dict[str, str]:
    keys = (*_CONDITIONS, *FLAGS)
    return {key: _word(stated[key]) for key in keys if isinstance(stated.get(key), str | int | float)}


def _word(value: str | float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)[:LONGEST_NAME]


SERVING_BENCHMARK = SweepFormat("serving benchmark", _runs, _point, _ran_on)
