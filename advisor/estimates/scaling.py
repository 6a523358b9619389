"""The ways out when no flag helps: more replicas, or wider sharding, each with the KV pool that it would have."""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact

from .resharding import pool_at

Option = Mapping[str, object]
CONFIRM = "step time under another sharding is not knowable from here: a load test must confirm it (advisor sweep plan)"


def options(evidence: Evidence, facts: Mapping[str, Fact]) -> tuple[Option, ...]:
    """Replicas at today's sharding, today's at twice the tensor parallelism, and on the same GPUs more of fewer.

    The last where fewer GPUs a replica are enough. Unknown pools say why.
    """
    tensor = evidence.count_flag("tensor_parallel_size") or 1
    today = int(facts["replicas"].number or 1)
    wanted = max(math.ceil(facts["recommended_replicas"].floor or 0), today + 1)
    pool = facts["kv_pool_tokens"].number or facts["kv_pool_tokens_predicted"].number
    fit, fit_then = (facts[f"memory_ceiling_{name}"].number for name in ("expected", "at_double_tp"))
    floor = facts["weight_floor_tensor_parallel_size"].number
    twice = _resharded(today, tensor * 2, facts["kv_pool_tokens_at_double_tp"], fit_then)
    found = [
        _option(wanted, tensor, pool, fit),
        {**twice, "weights_need_tensor_parallel_size": floor} if floor is not None else twice,
    ]
    enough = int(facts["sufficient_tensor_parallel_size"].number or tensor)
    if enough < tensor:
        found.append(_resharded(today * tensor // enough, enough, pool_at(evidence, enough), None))
    return tuple(found)


def _option(replicas: int, tensor: int, pool: float | None, fit: float | None) -> dict[str, object]:
    option: dict[str, object] = {"replicas": replicas, "tensor_parallel_size": tensor, "kv_pool_tokens": pool}
    option["kv_pool_tokens_all_replicas"] = None if pool is None else pool * replicas
    return option if fit is None else {**option, "sequences_per_replica": fit}


def _resharded(replicas: int, tensor: int, pool: Fact, fit: float | None) -> dict[str, object]:
    option = _option(replicas, tensor, pool.number, fit)
    option |= {f"kv_pool_tokens_{end}": bound for end, bound in (("low", pool.low), ("high", pool.high)) if bound}
    option["note"] = CONFIRM
    return {**option, "unknown": pool.unknown} if pool.unknown else option
