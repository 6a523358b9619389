"""The flags of trtllm-serve that size a server. For engines that were built ahead, the build sets these limits."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import FlagValue
from advisor.engines.own_flags import OwnFlags, count


def _refuses(flags: Mapping[str, FlagValue], pool_tokens: int | None) -> tuple[str, ...]:
    length = count(flags, "max_model_len")
    if length is None or pool_tokens is None or length <= pool_tokens:
        return ()
    return (f"max_seq_len {length:,} exceeds the KV pool {pool_tokens:,}",)


FLAGS = OwnFlags(
    names={
        "max_seq_len": "max_model_len",
        "max_batch_size": "max_num_seqs",
        "max_num_tokens": "max_num_batched_tokens",
        "tp_size": "tensor_parallel_size",
        "pp_size": "pipeline_parallel_size",
    },
    kept=frozenset({"kv_cache_free_gpu_memory_fraction", "max_beam_width"}),
    spelled={
        "max_model_len": "--max_seq_len",
        "max_num_seqs": "--max_batch_size",
        "max_num_batched_tokens": "--max_num_tokens",
        "tensor_parallel_size": "--tp_size",
        "pipeline_parallel_size": "--pp_size",
    },
    refuses=_refuses,
    alone={"tensor_parallel_size": 1, "pipeline_parallel_size": 1},
)
