"""What vLLM's JSON endpoints tell of its flags: `/v1/models`, and `/server_info` of a server in development mode."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import FlagValue
from advisor.engines.endpoint import MODELS, VERSION, Endpoint, Told

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


def server_info(document: object) -> Told | None:
    """The answer of `/server_info?config_format=json`."""
    flags = server_info_flags(document)
    return None if flags is None else Told(flags)


ENDPOINTS = (Endpoint(("/server_info?config_format=json",), "server_info", server_info), MODELS, VERSION)
