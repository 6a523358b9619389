"""Over how many GPUs a replica is spread: what twice as many would hold, and whether fewer would do.

Memory and cache follow by arithmetic (resharding.py). What a step takes on another number of GPUs does not: only a load
test tells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed, unknown
from advisor.domain.policy import Policy

from . import memory_ceiling
from .context_limit import present_limit
from .kv.config_fields import HEADS, KV_HEADS, count, language_part
from .kv_cache import kv_pool_tokens_predicted, printed_pool
from .resharding import cache_left, pool_at

ENOUGH_REQUESTS = 16
"""Requests of full length that the cache of a smaller replica has to hold before it counts as enough."""
MOST_GPUS = 1024
DISAGREES = 0.05


def facts(evidence: Evidence, known: Mapping[str, Fact]) -> dict[str, Fact]:
    """Copies of the cache, the least GPUs that are enough, and what twice as many would hold."""
    floor, (pool, growth) = _weight_floor(evidence), _doubled(evidence, known)
    return {
        "kv_copies": _copies(evidence),
        "sufficient_tensor_parallel_size": _sufficient(evidence, floor),
        "weight_floor_tensor_parallel_size": floor,
        "kv_pool_tokens_at_double_tp": pool,
        "kv_pool_growth_at_double_tp": growth,
    }


def ceiling_at_double_tp(evidence: Evidence, policy: Policy, known: Mapping[str, Fact]) -> Fact:
    """Sequences that fit one replica of twice the GPUs, each holding what one holds now.

    The expected ceiling of that pool where the present one is known, else the same multiple of the guaranteed one.
    Bounds are those of the pool.
    """
    pool, growth = known["kv_pool_tokens_at_double_tp"], known["kv_pool_growth_at_double_tp"]
    if pool.is_unknown or growth.is_unknown:
        return unknown(f"the pool at twice the GPUs is not known: {pool.unknown or growth.unknown}")

    def fits(tokens: float | None) -> float | None:
        return None if tokens is None else memory_ceiling.expected_in(evidence, policy, known, tokens).number

    value, low, high = (fits(tokens) for tokens in (pool.number, pool.low, pool.high))
    if value is not None or low is not None:
        return computed(value, low=low, high=high, source=f"{pool.source}; each holds what one holds now")
    expected, guaranteed = known["memory_ceiling_expected"], known["memory_ceiling_guaranteed"]
    now = expected.number if expected.number is not None else guaranteed.number
    if now is None:
        return unknown(f"how many fit now is not known: {guaranteed.unknown or 'it is only bounded'}")
    then = growth.each(lambda times: math.floor(times * now))
    return replace(then, source=f"{growth.source}; as many times the {now:,.0f} that fit now")


def _doubled(evidence: Evidence, known: Mapping[str, Fact]) -> tuple[Fact, Fact]:
    """The pool at twice the tensor parallelism, and how many times the present one that is."""
    tensor, apart = evidence.count_flag("tensor_parallel_size"), known["kv_pool_disagreement"].floor or 0.0
    if tensor is None:
        reason = "needs tensor_parallel_size (--set tensor_parallel_size=N)"
    elif apart > DISAGREES:
        reason = "the reported pool and arithmetic disagree, so nothing is built on the arithmetic"
    else:
        now = kv_pool_tokens_predicted(evidence) if evidence.reported_pool is None else printed_pool(evidence)
        then = pool_at(evidence, 2 * tensor)
        growth = _times(then, now)
        # A pool told in blocks x tokens of a block is not the one that is printed; the growth is the same for both.
        told = known["kv_pool_tokens"].number if evidence.reported_pool and evidence.reported_pool.nominal else None
        return (then if told is None else growth.each(lambda times: times * told)), growth
    return unknown(reason), unknown(reason)


def _times(then: Fact, now: Fact) -> Fact:
    """One pool over another; between bounds where either is."""
    if then.is_unknown or now.is_unknown:
        return unknown(then.unknown or now.unknown or "")
    value = then.number / now.number if then.number is not None and now.number else None
    most, least = now.high or now.number, now.low or now.number
    low = (then.floor if then.low is None else then.low) or 0.0
    high = then.ceiling if then.high is None else then.high
    low = low / most if most else 0.0
    return computed(value, low=low, high=high / least if high is not None and least else None, source=then.source or "")


def _weight_floor(evidence: Evidence) -> Fact:
    """The least power of two whose GPUs hold the weights and anything beside; from total memory fewer surely do not.

    140 GB do not fit 80 GB x 0.92, but 70 do: 2. Whether the heads divide is another question.
    """
    weights = evidence.model.weights_bytes
    if weights is None:
        return unknown("needs the bytes of the weights: state model.weights, or give a start-up log")
    if (roomy := cache_left(evidence, MOST_GPUS)).is_unknown:
        return unknown(roomy.unknown or "")
    size = 1
    while size < MOST_GPUS and not (cache_left(evidence, size).ceiling or 0.0) > 0:
        size *= 2
    return computed(size, source=f"{weights / 1e9:,.1f} GB of weights; {cache_left(evidence, size).source}")


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


def _sufficient(evidence: Evidence, floor: Fact) -> Fact:
    """The least power of two, at most what runs now, whose cache holds 16 requests of full length for certain."""
    tensor, limit = evidence.count_flag("tensor_parallel_size"), present_limit(evidence)
    if tensor is None or limit is None:
        return unknown("needs tensor_parallel_size and max_model_len")
    size = 1 if floor.number is None else int(floor.number)
    while size < tensor:
        pool = pool_at(evidence, size)
        if pool.is_unknown:
            return unknown(f"the cache of a smaller replica is not known: {pool.unknown}")
        least = (pool.low if pool.low is not None else pool.number) or 0.0
        if least >= ENOUGH_REQUESTS * limit:
            return computed(size, source=f"at least {least:,.0f} tokens of cache, {limit:,} the longest request")
        size *= 2
    return computed(tensor, source="what runs now")
