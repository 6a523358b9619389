"""TGI's flags, 1.0 to 3.3; each is also an environment variable under the upper-case name."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import FlagValue
from advisor.engines.own_flags import OwnFlags, count


def _refuses(flags: Mapping[str, FlagValue], pool_tokens: int | None) -> tuple[str, ...]:
    """max_input_tokens < max_total_tokens <= max_batch_total_tokens, and what the launcher says where that fails."""
    total, prompt = count(flags, "max_model_len"), count(flags, "max_input_tokens")
    batch = count(flags, "max_batch_total_tokens") or pool_tokens
    found = []
    if total is not None and prompt is not None and prompt >= total:
        found.append(f"max_input_tokens {prompt:,} is not below max_total_tokens {total:,}: lower it too")
    if total is not None and batch is not None and total > batch:
        found.append(f"max_total_tokens {total:,} exceeds the {batch:,} tokens that one batch may hold")
    return tuple(found)


FLAGS = OwnFlags(
    names={
        "max_total_tokens": "max_model_len",
        "num_shard": "tensor_parallel_size",
        "kv_cache_dtype": "kv_cache_dtype",
    },
    kept=frozenset(
        {
            "max_concurrent_requests",
            "max_input_tokens",
            "max_input_length",
            "max_batch_total_tokens",
            "max_batch_prefill_tokens",
            "max_batch_size",
            "max_waiting_tokens",
            "waiting_served_ratio",
            "cuda_memory_fraction",
        }
    ),
    lacking={
        "max_num_seqs": (
            "TGI seats by tokens, not by sequences: as many as their prompts and declared outputs fit into "
            "max_batch_total_tokens, and --max-batch-size is meant for hardware that pads. Bound what clients declare "
            "(max_tokens) or what the gateway lets in at once; --max-concurrent-requests refuses the rest with 429"
        ),
        "max_num_batched_tokens": (
            "TGI has no such flag: --max-batch-prefill-tokens bounds the prompt tokens of one prefill pass, and "
            "decoding does not share it"
        ),
        "gpu_memory_utilization": "TGI shares out memory by --cuda-memory-fraction, which means something else",
    },
    refuses=_refuses,
    declared_output_counts=True,
)
