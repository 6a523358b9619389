"""SGLang's flags, 0.4.2 to 0.5.23."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import FlagValue
from advisor.engines.own_flags import OwnFlags, count

SMALLEST_SHARE = 2
"""The pool over this is the most sequences that the engine will seat."""


def _refuses(flags: Mapping[str, FlagValue], pool_tokens: int | None) -> tuple[str, ...]:
    chunk, page, seats = (count(flags, name) for name in ("chunked_prefill_size", "block_size", "max_num_seqs"))
    found = []
    if chunk is not None and page is not None and chunk > 0 and chunk % page:
        found.append(f"chunked_prefill_size {chunk:,} is no multiple of page_size {page:,}")
    if seats is not None and pool_tokens is not None and seats > pool_tokens // SMALLEST_SHARE:
        found.append(f"max_running_requests {seats:,} exceeds half of the {pool_tokens:,} tokens in the pool")
    return tuple(found)


FLAGS = OwnFlags(
    names={
        "context_length": "max_model_len",
        "max_running_requests": "max_num_seqs",
        "tp_size": "tensor_parallel_size",
        "pp_size": "pipeline_parallel_size",
        "dp_size": "data_parallel_size",
        "page_size": "block_size",
        "kv_cache_dtype": "kv_cache_dtype",
        "quantization": "quantization",
        "dtype": "dtype",
    },
    # mem_fraction_static shares out what is free before the model is loaded, gpu_memory_utilization all memory.
    kept=frozenset(
        {
            "mem_fraction_static",
            "max_total_tokens",
            "chunked_prefill_size",
            "max_prefill_tokens",
            "schedule_conservativeness",
            "max_queued_requests",
            "enable_mixed_chunk",
            "allow_auto_truncate",
            "enable_dp_attention",
            "disaggregation_mode",
        }
    ),
    lacking={
        "max_num_batched_tokens": (
            "SGLang has no such flag: --chunked-prefill-size bounds the prompt tokens of one prefill pass, and "
            "decoding does not share it"
        ),
        "max_num_active_seqs": "SGLang has no such flag",
        "gpu_memory_utilization": "SGLang shares out memory by --mem-fraction-static, which means something else",
    },
    refuses=_refuses,
    alone={"tensor_parallel_size": 1, "pipeline_parallel_size": 1, "data_parallel_size": 1},
    declared_output_counts=True,
)
"""A request whose prompt and declared output reach the context length is refused, unless allow_auto_truncate is set."""
