"""The cache that one engine would have on another number of GPUs, from the cache that it has.

Of the memory that an engine takes of one GPU the weights have w and the cache has c; what neither of them gets
(activations, graphs, communication) depends little on the sharding. On m GPUs instead of n the weights take w n / m of
each, so that

    c' = c + w (1 - n / m)

and twice the GPUs have 2 x the pool + weights / bytes of a token, where the KV heads divide. Where they do not, every
further rank keeps copies, and all that is gained is half of the weights.

Worked, on public start-ups: Qwen2 7B, 14.25 GiB of weights and 57,344 bytes a token, printed 93,872 tokens on one GPU:
187,744 + 266,806 = 454,550 on two, which printed 450,192. With half of the GPU instead of a quarter 464,848 on one:
1,196,502 on two, which printed 1,192,160.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown

from .kv.layers import UnknownLayoutError
from .kv.layouts import Layout, layouts, ranks_of, restated_layouts
from .kv.memory import cache_memory, memory_left, usual_headroom
from .kv_cache import pool_in, present_layouts

FIXES_THE_POOL = ("num_gpu_blocks_override", "max_total_tokens")
KEEPS_ITS_SHARE = ("vllm", "sglang")
"""Engines whose weights and cache together keep the same share of a GPU, whatever the weights take of it."""


def pool_at(evidence: Evidence, tensor: int) -> Fact:
    """Tokens in the pool of one engine if it ran at that tensor parallelism, as it would print them.

    Unknown where layout or memory are not known, and where the engine would refuse: heads that do not divide. From a
    stated kv_per_token alone the heads are taken to divide, and the low bound is that they do not.
    """
    try:
        found = layouts(evidence, tensor) if evidence.model.config else restated_layouts(evidence, tensor)
    except UnknownLayoutError as reason:
        return unknown(str(reason) if evidence.model.config else f"{reason} (--model-config)")
    memory = cache_left(evidence, tensor)
    at_least = not memory.is_unknown and memory.ceiling is None
    pool = pool_in(found, replace(memory, value=memory.low) if at_least else memory, tensor * _stages(evidence))
    if pool.is_unknown:
        return pool
    told = replace(pool, source="; ".join(filter(None, (pool.source, _split(evidence, found[0])))))
    if not at_least:
        return told
    return replace(told, value=None, low=pool.floor if pool.low is None else pool.low, high=None)


def _split(evidence: Evidence, layout: Layout) -> str | None:
    """How the cache is divided then; None where the pool's own story says it."""
    if not evidence.model.config:
        return "low where KV heads do not divide: give the model's config"
    return None if layout.token_bytes is None else layout.story


def cache_left(evidence: Evidence, tensor: int) -> Fact:
    """Bytes for the cache over all GPUs of one engine at that tensor parallelism.

    From the cache that it has where it reports that, else from total memory. The interval is from the least headroom
    now and the most then to the reverse. Where the weights are not known, "at least", and nothing for fewer GPUs.
    """
    if fixed := next((flag for flag in FIXES_THE_POOL if flag in evidence.flags), None):
        return unknown(f"{fixed} fixes the pool, so memory does not tell what another sharding would have")
    if evidence.flag("enable_dp_attention") is True:
        return unknown("with data-parallel attention the cache of a sequence is not spread over the tensor ranks")
    now, today = _cache_of_one_gpu(evidence), evidence.count_flag("tensor_parallel_size")
    if now is None:
        return memory_left(evidence, tensor * _stages(evidence))
    if evidence.engine not in KEEPS_ITS_SHARE:
        return unknown(f"whether weights and cache of {evidence.engine} keep their share of a GPU is not known")
    if today is None:
        return unknown("needs tensor_parallel_size (--set tensor_parallel_size=N)")
    ranks = tensor * _stages(evidence)
    return _with_freed(evidence, now, tensor, today).each(lambda one: ranks * one)


def _with_freed(evidence: Evidence, now: Fact, tensor: int, today: int) -> Fact:
    """The cache of one GPU then: what it is now and what weights leave of it."""
    weights, told = evidence.model.weights_bytes, f"{_gb(now.floor)} of cache a GPU"
    if "kv_cache_memory_bytes" in evidence.flags:
        if refused := _beyond_memory(evidence, now, tensor, today):
            return unknown(refused)
        return replace(now, source=f"{told}, as kv_cache_memory_bytes says; weights that leave can be added to it")
    if weights is None and tensor < today:
        return unknown("needs the bytes of the weights: state model.weights, or give a start-up log")
    one = (weights or 0.0) / (today * _stages(evidence))
    freed = one * (1 - today / tensor)
    least, most = usual_headroom(evidence, evidence.gpu.memory_bytes or (now.ceiling or 0.0) + one)
    low = max(0.0, (now.floor or 0.0) + freed - (most - least))
    if weights is None:
        return computed(None, low=low, source=f"{told}, and more by an unknown part of the weights")
    value = None if now.number is None else max(0.0, now.number + freed)
    high = max(0.0, (now.ceiling or 0.0) + freed + (most - least))
    return computed(
        value, low=low, high=high, source=f"{told}, {freed / 1e9:+,.2f} GB with the weights over {tensor} ranks"
    )


def _beyond_memory(evidence: Evidence, cache: Fact, tensor: int, today: int) -> str | None:
    """Why a cache that is fixed in bytes may not fit beside the weights of fewer ranks; None where it does."""
    weights, memory = evidence.model.weights_bytes, evidence.gpu.memory_bytes
    if weights is None or memory is None:
        needed = "kv_cache_memory_bytes comes beside the weights: needs the memory of a GPU and the weights"
        return needed if tensor < today else None
    each, held = weights / (tensor * _stages(evidence)), cache.ceiling or 0.0
    if each + held <= memory:
        return None
    return f"{_gb(each)} of weights and {_gb(held)} of cache do not fit a GPU of {_gb(memory)}"


def _cache_of_one_gpu(evidence: Evidence) -> Fact | None:
    """Bytes of cache on one GPU: behind the reported pool, else as printed or told; None where total memory has to do.

    Between bounds where several layouts are possible.
    """
    if (behind := _behind_report(evidence)) is not None:
        return behind
    if evidence.gpu.kv_available_bytes is None and evidence.count_flag("kv_cache_memory_bytes") is None:
        return None
    ranks = ranks_of(evidence)
    return cache_memory(evidence).each(lambda memory: memory / ranks)


def _behind_report(evidence: Evidence) -> Fact | None:
    pool = evidence.reported_pool
    if pool is None:
        return None
    try:
        sizes = {layout.blocks_of_report(pool) * layout.blocks.block_bytes for layout in present_layouts(evidence)}
    except UnknownLayoutError:
        return None
    if len(sizes) == 1:
        return computed(sizes.pop(), source=pool.source)
    return computed(None, low=min(sizes), high=max(sizes), source=pool.source)


def _stages(evidence: Evidence) -> int:
    return evidence.count_flag("pipeline_parallel_size") or 1


def _gb(size: float | None) -> str:
    return f"{(size or 0.0) / 1e9:,.2f} GB"
