"""The KV cache: what one token takes, and how many tokens the pool of one engine holds."""

from __future__ import annotations

import json
import math
from typing import Any

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, measured, unknown
from advisor.engines.vllm.flags import default_gpu_memory_utilization

from .attention import Attention, NotPlainError, language_part, layer_count, plain_attention

_ONE_BYTE = {"fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"}
_TWO_BYTES = {"bfloat16", "float16", "half", "bf16", "fp16"}
_RESOLVE = "state kv_per_token, or rely on the pool that the engine reports"


def kv_bytes_per_token(evidence: Evidence) -> Fact:
    """Bytes of KV cache of one token, over all ranks of one engine.

    A stated figure first. Else layers x KV heads x head size x 2 (K and V) x bytes of an element, KV heads counted once
    a rank where tensor parallelism exceeds them. Llama 3.1 70B: 80 x 8 x 128 x 2 x 2 = 327,680 at TP 1 to 8, and
    655,360 at TP 16. Unknown for every architecture that stores something else.
    """
    model = evidence.model
    if model.kv_bytes_per_token is not None:
        return measured(model.kv_bytes_per_token, source="stated")
    if model.config is None:
        return unknown("neither the model's config.json nor kv_per_token is given")
    try:
        attention = plain_attention(model.config)
        element = _element_bytes(evidence, model.config)
        heads = _stored_heads(attention, evidence.count_flag("tensor_parallel_size") or 1)
    except NotPlainError as reason:
        return unknown(f"{reason}: {_RESOLVE}")
    kept = f"{heads} KV heads" if heads == attention.kv_heads else f"{heads} copies of {attention.kv_heads} KV heads"
    return computed(
        attention.layers * heads * attention.head_dim * 2 * element,
        source=f"{attention.layers} layers x {kept} x {attention.head_dim} x 2 (K and V) x {element} bytes",
    )


def kv_pool_tokens(evidence: Evidence) -> Fact:
    """Tokens in the KV pool of one engine, as it reports."""
    pool = evidence.reported_pool
    if pool is None:
        return unknown(
            "the engine's report of its pool was not read: give a start-up log, metrics, or reported.kv_pool_tokens"
        )
    return measured(pool.tokens, source=pool.source)


def kv_pool_tokens_predicted(evidence: Evidence) -> Fact:
    """Tokens in the KV pool of one engine by arithmetic: memory for the cache / bytes of a token, in whole blocks.

    Memory, all ranks together: what the engine printed or was told, else ranks x (memory x utilization - headroom) less
    the weights. Four GPUs of 80 GB at 0.92 with 70 GB of weights, 8 GB of headroom each and 327,680 bytes a token:
    4 x (73.6 - 17.5 - 8) = 192.4 GB, 587,158 tokens. What the headroom stands for (activations, graphs, communication)
    cannot be known from outside, so the figure then carries the interval of none to twice that headroom. Rounding to
    blocks only where block_size is known.
    """
    per_token, memory = kv_bytes_per_token(evidence), _cache_memory(evidence)
    for part in (per_token, memory):
        if part.number is None:
            return unknown(part.unknown or "")
    stored, block = (per_token.number or 0) * _unevenness(evidence), evidence.count_flag("block_size") or 1
    return computed(
        _whole_blocks(memory.value, stored, block),
        low=_whole_blocks(memory.low, stored, block),
        high=_whole_blocks(memory.high, stored, block),
        source=f"{memory.source} / {stored:,.0f} bytes a token",
    )


def kv_pool_relative_error(evidence: Evidence) -> Fact:
    """(predicted - reported) / reported, signed; from total memory with the interval that its headroom leaves."""
    predicted, reported = kv_pool_tokens_predicted(evidence), kv_pool_tokens(evidence)
    if predicted.number is None or not reported.number:
        return unknown(predicted.unknown or reported.unknown or "the reported pool is empty")
    pool = reported.number
    return computed(
        predicted.number / pool - 1,
        low=predicted.low / pool - 1 if predicted.low is not None else None,
        high=predicted.high / pool - 1 if predicted.high is not None else None,
        source=f"predicted {predicted.number:,.0f}, reported {pool:,.0f} ({reported.source})",
    )


def kv_pool_disagreement(relative_error: Fact) -> Fact:
    """How far the reported pool lies outside what arithmetic allows, as a share of it; 0 inside the interval.

    From printed memory there is no interval, and an error of -3 % disagrees by 3 %; an error of 4 % that may as well be
    -2 % does not disagree.
    """
    error = relative_error.number
    if error is None:
        return unknown(relative_error.unknown or "the predicted pool is not known")
    low = error if relative_error.low is None else relative_error.low
    high = error if relative_error.high is None else relative_error.high
    return computed(max(low, -high, 0.0), source=relative_error.source or "relative error")


def _whole_blocks(memory: float | str | None, bytes_per_token: float, block: int) -> int | None:
    if not isinstance(memory, int | float):
        return None
    # A pool that divides evenly must not lose a block to the last bit of a float.
    return math.floor(memory / bytes_per_token / block + 1e-9) * block


def _cache_memory(evidence: Evidence) -> Fact:
    """Bytes for the cache over all ranks of one engine."""
    if (evidence.count_flag("decode_context_parallel_size") or 1) > 1:
        return unknown(
            "decode context parallelism splits the cache by tokens: rely on the pool that the engine reports"
        )
    tensor, pipeline = evidence.count_flag("tensor_parallel_size"), evidence.count_flag("pipeline_parallel_size") or 1
    ranks = (tensor or 1) * pipeline
    who = f"{ranks} x " if ranks > 1 else "" if tensor else "1 GPU (tensor_parallel_size not stated) x "
    told = evidence.count_flag("kv_cache_memory_bytes")
    if evidence.gpu.kv_available_bytes is not None:
        per_gpu, source = evidence.gpu.kv_available_bytes, "available memory as printed"
    elif told is not None:
        per_gpu, source = float(told), "kv_cache_memory_bytes"
    else:
        return _memory_left(evidence, ranks)
    return computed(ranks * per_gpu, source=f"{who}{per_gpu / 1e9:,.2f} GB ({source})")


def _memory_left(evidence: Evidence, ranks: int) -> Fact:
    gpu, weights = evidence.gpu, evidence.model.weights_bytes
    share = evidence.flag("gpu_memory_utilization") or default_gpu_memory_utilization(evidence.engine_version)
    if evidence.engine != "vllm":
        return unknown(
            f"{evidence.engine} shares out GPU memory by another rule: give gpu.kv_available as it prints it"
        )
    if gpu.memory_bytes is None or weights is None or gpu.headroom_bytes is None:
        return unknown(
            "memory for the cache: give gpu.kv_available as the engine prints it, or gpu.memory, gpu.headroom and "
            "model.weights"
        )
    if not isinstance(share, float | int):
        return unknown("gpu_memory_utilization is not known, nor the version that decides its default: state either")
    room = ranks * gpu.memory_bytes * share - weights
    left = room - ranks * gpu.headroom_bytes
    terms = f"{gpu.memory_bytes / 1e9:g} GB x {share:g} - {weights / ranks / 1e9:g} - {gpu.headroom_bytes / 1e9:g}"
    if left <= 0:
        return unknown(f"no memory is left for a cache: {ranks} x ({terms}) is {left / 1e9:,.1f} GB; check the figures")
    return computed(
        left, low=max(0.0, 2 * left - room), high=room, source=f"{ranks} x ({terms}) = {left / 1e9:,.1f} GB"
    )


def _unevenness(evidence: Evidence) -> float:
    """How much more than an even share of the layers the fullest pipeline stage holds: it decides for all."""
    stages = evidence.count_flag("pipeline_parallel_size") or 1
    layers = layer_count(evidence.model.config) if evidence.model.config else None
    return math.ceil(layers / stages) * stages / layers if layers else 1.0


def _stored_heads(attention: Attention, tensor_parallel: int) -> int:
    """KV heads stored by all tensor-parallel ranks together."""
    if attention.heads % tensor_parallel:
        raise NotPlainError(f"{attention.heads} attention heads cannot be split over {tensor_parallel} ranks")
    if attention.kv_heads % tensor_parallel and tensor_parallel % attention.kv_heads:
        raise NotPlainError(f"{attention.kv_heads} KV heads cannot be split over {tensor_parallel} ranks")
    return max(attention.kv_heads, tensor_parallel)


def _element_bytes(evidence: Evidence, config: Any) -> int:
    if "kv_cache_dtype_skip_layers" in evidence.flags:
        raise NotPlainError("some layers keep another cache type")
    if speculation := _drafting(evidence):
        raise NotPlainError(f"speculative decoding ({speculation}) keeps a cache of its own in the same pool")
    kind = str(evidence.flag("kv_cache_dtype") or "auto")
    if kind == "auto":
        if _declares_cache_type(config):
            raise NotPlainError(
                "the checkpoint declares a cache type, which newer releases obey under kv_cache_dtype auto"
            )
        # vLLM serves float32 checkpoints in 16 bits unless it is told otherwise.
        return 4 if evidence.flag("dtype") in ("float32", "float") else 2
    if kind not in _ONE_BYTE | _TWO_BYTES:
        raise NotPlainError(f"the element size of kv_cache_dtype {kind[:40]!r} is not known here")
    return 1 if kind in _ONE_BYTE else 2


def _drafting(evidence: Evidence) -> str | None:
    text = evidence.flag("speculative_config")
    if not isinstance(text, str) or not text:
        return None
    try:
        settings = json.loads(text)
    except ValueError:
        return "unreadable settings"
    method = settings.get("method", "draft model") if isinstance(settings, dict) else "unreadable settings"
    return None if method == "ngram" else str(method)[:40]


def _declares_cache_type(config: Any) -> bool:
    for part in (config, language_part(config)):
        quantization = part.get("quantization_config")
        if isinstance(quantization, dict) and (
            quantization.get("kv_cache_scheme") or quantization.get("kv_cache_quant_algo")
        ):
            return True
    return False
