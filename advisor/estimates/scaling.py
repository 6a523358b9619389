"""The ways out when no flag helps: more replicas, or wider sharding, each with the KV pool that it would have."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact

Option = Mapping[str, object]


def options(evidence: Evidence, facts: Mapping[str, Fact]) -> tuple[Option, ...]:
    """Replicas at today's sharding, and today's replicas at twice the tensor parallelism. Unknown pools say why."""
    tensor = evidence.count_flag("tensor_parallel_size") or 1
    today = int(facts["replicas"].number or 1)
    wanted = max(int(facts["recommended_replicas"].number or 0), today + 1)
    pool = facts["kv_pool_tokens"].number or facts["kv_pool_tokens_predicted"].number
    wide = _sharded_pool(evidence, facts, tensor * 2)
    more: dict[str, object] = {"replicas": wanted, "tensor_parallel_size": tensor, "kv_pool_tokens": pool}
    more["kv_pool_tokens_all_replicas"] = None if pool is None else pool * wanted
    shard: dict[str, object] = {"replicas": today, "tensor_parallel_size": tensor * 2, "kv_pool_tokens": wide}
    shard["kv_pool_tokens_all_replicas"] = None if wide is None else wide * today
    shard["note"] = "to be confirmed by a bench: step time under another sharding is not knowable from here"
    if wide is None:
        shard["unknown"] = "the pool needs the model's weights and the GPU's memory (evidence file: model, gpu)"
    return more, shard


def _sharded_pool(evidence: Evidence, facts: Mapping[str, Fact], tensor: int) -> int | None:
    """Pool at another tensor parallelism: each GPU holds 1/TP of the weights, so the freed part becomes cache.

    70 GB of weights on 4 x 80 GB at 92 %, 8 GB of headroom: 192.4 GB; on 8 GPUs 8 x (73.6 - 8.75 - 8) = 454.8 GB.
    """
    gpu, weights, per_token = evidence.gpu, evidence.model.weights_bytes, facts["kv_bytes_per_token"].number
    share = evidence.flag("gpu_memory_utilization")
    if gpu.memory_bytes is None or weights is None or per_token is None or not isinstance(share, int | float):
        return None
    free = gpu.memory_bytes * share - weights / tensor - (gpu.headroom_bytes or 0.0)
    return int(tensor * free / per_token) if free > 0 else None
