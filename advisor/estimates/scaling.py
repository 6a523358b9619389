"""The ways out when no flag helps: more replicas, or wider sharding, each with the KV pool that it would have."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact

from .kv_cache import kv_pool_tokens_sharded

Option = Mapping[str, object]


def options(evidence: Evidence, facts: Mapping[str, Fact]) -> tuple[Option, ...]:
    """Replicas at today's sharding, today's at twice the tensor parallelism, and on the same GPUs more of fewer.

    The last where fewer GPUs a replica are enough. Unknown pools say why.
    """
    tensor = evidence.count_flag("tensor_parallel_size") or 1
    today = int(facts["replicas"].number or 1)
    wanted = max(int(facts["recommended_replicas"].number or 0), today + 1)
    pool = facts["kv_pool_tokens"].number or facts["kv_pool_tokens_predicted"].number
    more: dict[str, object] = {"replicas": wanted, "tensor_parallel_size": tensor, "kv_pool_tokens": pool}
    more["kv_pool_tokens_all_replicas"] = None if pool is None else pool * wanted
    found = [more, _resharded(today, tensor * 2, kv_pool_tokens_sharded(evidence, tensor * 2))]
    enough = int(facts["sufficient_tensor_parallel_size"].number or tensor)
    if enough < tensor:
        found.append(_resharded(today * tensor // enough, enough, kv_pool_tokens_sharded(evidence, enough)))
    return tuple(found)


def _resharded(replicas: int, tensor: int, pool: Fact) -> Option:
    value = pool.number
    shard: dict[str, object] = {"replicas": replicas, "tensor_parallel_size": tensor, "kv_pool_tokens": value}
    shard["kv_pool_tokens_all_replicas"] = None if value is None else value * replicas
    if pool.low is not None and pool.high is not None:
        shard["kv_pool_tokens_low"], shard["kv_pool_tokens_high"] = pool.low, pool.high
    shard["note"] = "to be confirmed by a bench: step time under another sharding is not knowable from here"
    if pool.unknown:
        shard["unknown"] = pool.unknown
    return shard
