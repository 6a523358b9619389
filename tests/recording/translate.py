"""A recording rewritten under the names of another engine: the same engine at work, described in other words.

Bodies are composed from what the engines' sources define (names, labels, what is exposed at all), not captured from
running ones. What an engine does not expose is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Labels = Mapping[str, str]
_SAMPLE = re.compile(r"(?P<name>[^{\s]+)\{(?P<labels>.*)\} (?P<value>\S+) (?P<time>\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Wording:
    """How one engine words a recording.

    families: vLLM's family name -> this engine's; what is missing is not exposed. keeps: labels that survive. adds:
    labels by series name. config: gauges, or labels, that stand for the labels of vLLM's config series. in_tokens: the
    family told in tokens of the pool where vLLM tells a share of it. answers: status class -> series and labels.
    """

    families: Mapping[str, str]
    keeps: Mapping[str, str]
    adds: Mapping[str, Labels] = field(default_factory=dict)
    config: Callable[[Labels], Iterable[tuple[str, Labels, str]]] = lambda _labels: ()
    in_tokens: str | None = None
    answers: Mapping[str, tuple[str, Labels]] = field(default_factory=dict)


def _sglang_config(labels: Labels) -> Iterator[tuple[str, Labels, str]]:
    tokens, concurrency = labels["kv_cache_size_tokens"], labels["kv_cache_max_concurrency"]
    yield "sglang:max_total_num_tokens", {}, tokens
    yield "sglang:context_len", {}, str(round(float(tokens) / float(concurrency)))
    yield "sglang:page_size", {}, "1"


def _old_config(labels: Labels) -> Iterator[tuple[str, Labels, str]]:
    known = ("block_size", "num_gpu_blocks", "cache_dtype", "gpu_memory_utilization")
    yield "vllm:cache_config_info", {name: labels[name] for name in known}, "1"


SGLANG = Wording(
    families={
        "vllm:num_requests_running": "sglang:num_running_reqs",
        "vllm:num_requests_waiting": "sglang:num_queue_reqs",
        "vllm:kv_cache_usage_perc": "sglang:token_usage",
        "vllm:time_to_first_token_seconds": "sglang:time_to_first_token_seconds",
        "vllm:inter_token_latency_seconds": "sglang:inter_token_latency_seconds",
        "vllm:request_time_per_output_token_seconds": "sglang:request_time_per_output_token_seconds",
        "vllm:request_queue_time_seconds": "sglang:queue_time_seconds",
        "vllm:request_prompt_tokens": "sglang:prompt_tokens_histogram",
        "vllm:request_generation_tokens": "sglang:generation_tokens_histogram",
        "vllm:prompt_tokens_total": "sglang:prompt_tokens_total",
        "vllm:generation_tokens_total": "sglang:generation_tokens_total",
        "vllm:prefix_cache_hits_total": "sglang:cached_tokens_total",
        "vllm:num_preemptions_total": "sglang:num_retracted_requests_total",
        "vllm:iteration_tokens_total_count": "sglang:cuda_graph_passes_total",
        "vllm:e2e_request_latency_seconds_count": "sglang:num_requests_total",
    },
    keeps={"job": "job", "instance": "instance", "model_name": "model_name", "engine": "dp_rank", "le": "le"},
    adds={
        "sglang:cuda_graph_passes_total": {"mode": "decode_cuda_graph", "tp_rank": "0"},
        "sglang:cached_tokens_total": {"cache_source": "device"},
        "sglang:num_running_reqs": {"tp_rank": "0", "engine_type": "unified"},
    },
    config=_sglang_config,
    answers={
        status: (
            "sglang:http_responses_total",
            {"endpoint": "/v1/chat/completions", "method": "POST", "status_code": code},
        )
        for status, code in (("2xx", "200"), ("4xx", "400"), ("5xx", "503"))
    },
)
"""SGLang 0.5.23."""

TGI = Wording(
    families={
        "vllm:num_requests_running": "tgi_batch_current_size",
        "vllm:num_requests_waiting": "tgi_queue_size",
        "vllm:kv_cache_usage_perc": "tgi_batch_current_max_tokens",
        "vllm:request_time_per_output_token_seconds": "tgi_request_mean_time_per_token_duration",
        "vllm:request_queue_time_seconds": "tgi_request_queue_duration",
        "vllm:request_prompt_tokens": "tgi_request_input_length",
        "vllm:request_generation_tokens": "tgi_request_generated_tokens",
        "vllm:iteration_tokens_total_count": "tgi_batch_inference_count",
        "vllm:e2e_request_latency_seconds_count": "tgi_request_success",
    },
    keeps={"job": "job", "instance": "instance", "le": "le"},
    adds={"tgi_batch_inference_count": {"method": "decode"}},
    config=lambda labels: [("tgi_batch_max_total_tokens", {}, labels["kv_cache_size_tokens"])],
    in_tokens="tgi_batch_current_max_tokens",
    answers={"4xx": ("tgi_request_failure", {"err": "validation"})},
)
"""TGI 3.3, whose clients declare exactly what they use (so that what is reserved is what is used)."""

OLD_VLLM = Wording(
    families={
        "vllm:kv_cache_usage_perc": "vllm:gpu_cache_usage_perc",
        "vllm:inter_token_latency_seconds": "vllm:time_per_output_token_seconds",
        **{
            f"vllm:{name}": f"vllm:{name}"
            for name in (
                "num_requests_running",
                "num_requests_waiting",
                "time_to_first_token_seconds",
                "request_queue_time_seconds",
                "request_prompt_tokens",
                "request_generation_tokens",
                "request_success_total",
                "prompt_tokens_total",
                "generation_tokens_total",
                "num_preemptions_total",
                "iteration_tokens_total",
            )
        },
        "process_start_time_seconds": "process_start_time_seconds",
    },
    keeps={name: name for name in ("job", "instance", "model_name", "le", "finished_reason")},
    config=_old_config,
)
"""vLLM 0.6.6: no `engine` label, an older name of the gap, no time per token of whole requests, no prefix counters."""

LLAMACPP = Wording(
    families={
        "vllm:num_requests_running": "llamacpp:requests_processing",
        "vllm:num_requests_waiting": "llamacpp:requests_deferred",
        "vllm:prompt_tokens_total": "llamacpp:prompt_tokens_total",
        "vllm:generation_tokens_total": "llamacpp:tokens_predicted_total",
        "vllm:inter_token_latency_seconds_sum": "llamacpp:tokens_predicted_seconds_total",
        "vllm:iteration_tokens_total_count": "llamacpp:n_decode_total",
    },
    keeps={"job": "job", "instance": "instance"},
)
"""llama.cpp's server of 2026."""


def translate(lines: Iterable[str], wording: Wording, pool_tokens: int) -> Iterator[str]:
    """The lines of an OpenMetrics recording in another engine's words; types are left out, which Prometheus permits."""
    for line in lines:
        sample = _SAMPLE.match(line)
        if sample is None:
            if line.startswith("# EOF"):
                yield line
            continue
        labels = dict(_LABEL.findall(sample["labels"]))
        kept = {wording.keeps[name]: value for name, value in labels.items() if name in wording.keeps}
        for name, more, value in _worded(sample["name"], labels, sample["value"], wording, pool_tokens):
            shown = ",".join(f'{label}="{text}"' for label, text in (kept | dict(more)).items())
            yield f"{name}{{{shown}}} {value} {sample['time']}\n"


def _worded(
    name: str, labels: Labels, value: str, wording: Wording, pool_tokens: int
) -> Iterable[tuple[str, Labels, str]]:
    if name == "vllm:cache_config_info":
        return wording.config(labels)
    if name == "http_requests_total":
        told = wording.answers.get(labels["status"])
        return [(*told, value)] if told else []
    known = _family(name, wording.families)
    if known is None:
        return []
    if known == wording.in_tokens:
        value = repr(float(value) * pool_tokens)
    return [(known, wording.adds.get(known, {}), value)]


def _family(name: str, families: Mapping[str, str]) -> str | None:
    """The series' name in the other engine's words; parts of a histogram follow their family."""
    if name in families:
        return families[name]
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith(suffix) and name.removesuffix(suffix) in families:
            return families[name.removesuffix(suffix)] + suffix
    return None
