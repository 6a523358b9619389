"""Whether a replica is spread over more GPUs than it needs, and how often the same piece of cache is then kept."""

from __future__ import annotations

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown

from .context_limit import present_limit
from .kv.config_fields import HEADS, KV_HEADS, count, language_part
from .kv_cache import kv_pool_tokens_sharded

ENOUGH_REQUESTS = 16
"""Requests of full length that the cache of a smaller replica has to hold before it counts as enough."""


def facts(evidence: Evidence) -> dict[str, Fact]:
    """Copies of the cache, and the least GPUs that are enough."""
    return {"kv_copies": _copies(evidence), "sufficient_tensor_parallel_size": _sufficient(evidence)}


def _copies(evidence: Evidence) -> Fact:
    """Tensor parallel ranks / KV heads, at least 1: eight ranks of a model with four heads keep every head twice."""
    tensor, config = evidence.count_flag("tensor_parallel_size"), evidence.model.config
    if tensor is None or config is None:
        return unknown("needs tensor_parallel_size and the model's config (--model-config)")
    part = language_part(config)
    latent = count(part, "kv_lora_rank") is not None
    heads = 1 if latent else count(part, *KV_HEADS) or count(part, *HEADS)
    if heads is None:
        return unknown("the model's config does not say how many KV heads it has")
    kind = "one latent" if latent else f"{heads} KV heads"
    return computed(max(tensor / heads, 1.0), source=f"{tensor} ranks, {kind} a token")


def _sufficient(evidence: Evidence) -> Fact:
    """The least power of two, at most what runs now, whose cache holds 16 requests of full length for certain."""
    tensor, limit = evidence.count_flag("tensor_parallel_size"), present_limit(evidence)
    if tensor is None or limit is None:
        return unknown("needs tensor_parallel_size and max_model_len")
    size = 1
    while size < tensor:
        pool = kv_pool_tokens_sharded(evidence, size)
        if pool.is_unknown:
            return unknown(f"the cache of a smaller replica is not known: {pool.unknown}")
        least = (pool.low if pool.low is not None else pool.number) or 0.0
        if least >= ENOUGH_REQUESTS * limit:
            return computed(size, source=f"at least {least:,.0f} tokens of cache, {limit:,} the longest request")
        size *= 2
    return computed(tensor, source="what runs now")
