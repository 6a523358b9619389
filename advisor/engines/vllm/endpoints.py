"""What vLLM's JSON endpoints tell of its flags: `/v1/models`, and `/server_info` of a server in development mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.domain.evidence import FlagValue

_SERVER_INFO: Mapping[str, tuple[str, ...]] = {
    "model_config": ("max_model_len", "quantization", "enforce_eager"),
    "scheduler_config": (
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_num_active_seqs",
        "max_num_queued_reqs",
        "max_num_queued_tokens",
        "long_prefill_token_threshold",
        "enable_chunked_prefill",
        "scheduler_reserve_full_isl",
    ),
    "cache_config": ("block_size", "gpu_memory_utilization", "cache_dtype", "enable_prefix_caching"),
    "parallel_config": (
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "decode_context_parallel_size",
    ),
}
_FLAG_OF_FIELD = {"cache_dtype": "kv_cache_dtype"}


def server_info_flags(document: object) -> dict[str, FlagValue] | None:
    """Flags in the answer of `/server_info?config_format=json`; None when it has another shape (0.9's text form)."""
    config = document.get("vllm_config") if isinstance(document, Mapping) else None
    if not isinstance(config, Mapping):
        return None
    return {
        _FLAG_OF_FIELD.get(field, field): value
        for part, fields in _SERVER_INFO.items()
        for field in fields
        if (value := _scalar(config.get(part), field)) is not None
    }


def _scalar(part: object, field: str) -> FlagValue | None:
    value = part.get(field) if isinstance(part, Mapping) else None
    return value if isinstance(value, bool | int | float | str) else None


def served_model(document: object) -> tuple[str, int | None] | None:
    """The first base model in the answer of `/v1/models` and its `max_model_len`; LoRA adapters carry a `parent`.

    None when the answer has another shape.
    """
    cards = document.get("data") if isinstance(document, Mapping) else None
    for card in cards if isinstance(cards, list) else ():
        if isinstance(card, Mapping) and isinstance(card.get("id"), str) and not card.get("parent"):
            return card["id"], _count(card.get("max_model_len"))
    return None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
