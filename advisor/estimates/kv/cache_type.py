"""How the elements of the cache are kept, by kv_cache_dtype, checkpoint, engine and release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.domain.evidence import Evidence
from advisor.engines.vllm.flags import parse_version

from .config_fields import language_part
from .layers import CacheType, Latent, Layers, UnknownLayoutError

_TWO_BYTES = ("bfloat16", "float16", "half", "bf16", "fp16")
_FP8 = ("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc")
_NAMED = {
    **dict.fromkeys(_TWO_BYTES, CacheType(2)),
    **dict.fromkeys(_FP8, CacheType(1)),
    "fp8_per_token_head": CacheType(1, scale_bytes=4),
    "int8_per_token_head": CacheType(1, scale_bytes=4),
    "nvfp4": CacheType(0.5 + 1 / 16),
}
_PACKED = CacheType(1, packed_latent_bytes=656)
_FIRST_WITH_SEVERAL_BACKENDS = (0, 15, 0)


def cache_type(evidence: Evidence, layers: Layers) -> CacheType:
    """The type that this engine keeps. Raises UnknownLayoutError where flags, release and config do not tell."""
    if "kv_cache_dtype_skip_layers" in evidence.flags:
        raise UnknownLayoutError("some layers keep another cache type")
    kind = str(evidence.flag("kv_cache_dtype") or "auto")
    sparse = any(isinstance(layer, Latent) and layer.index_dim is not None for layer, _ in layers)
    if kind == "fp8_ds_mla" or (sparse and kind in _FP8):
        return _packed(evidence, kind)
    if kind == "auto":
        return _of_checkpoint(evidence, sparse=sparse)
    if kind not in _NAMED:
        raise UnknownLayoutError(f"the element size of kv_cache_dtype {kind[:40]!r} is not known here")
    if kind == "nvfp4" and any(isinstance(layer, Latent) for layer, _ in layers):
        raise UnknownLayoutError("the layout of latent attention under kv_cache_dtype nvfp4 is not known here")
    return _NAMED[kind]


def model_element_bytes(evidence: Evidence) -> int:
    """Bytes of an element in the type that the model is served in."""
    # vLLM serves float32 checkpoints in 16 bits unless it is told otherwise.
    return 4 if evidence.flag("dtype") in ("float32", "float") else 2


def _packed(evidence: Evidence, kind: str) -> CacheType:
    version = parse_version(evidence.engine_version)
    if kind == "fp8_ds_mla" or evidence.engine == "sglang" or (version and version < _FIRST_WITH_SEVERAL_BACKENDS):
        return _PACKED
    raise UnknownLayoutError(
        "sparse attention in fp8 keeps 576 or 656 bytes a token and layer, as the backend chosen for the GPU decides"
    )


def _of_checkpoint(evidence: Evidence, *, sparse: bool) -> CacheType:
    config = evidence.model.config or {}
    if _declares_cache_type(config):
        raise UnknownLayoutError(
            "the checkpoint declares a cache type, which newer releases obey under kv_cache_dtype auto"
        )
    if sparse and language_part(config).get("model_type") != "deepseek_v32":
        raise UnknownLayoutError("under kv_cache_dtype auto the GPU decides whether its sparse attention runs in fp8")
    return CacheType(model_element_bytes(evidence))


def _declares_cache_type(config: Mapping[str, Any]) -> bool:
    for part in (config, language_part(config)):
        quantization = part.get("quantization_config")
        if isinstance(quantization, dict) and (
            quantization.get("kv_cache_scheme") or quantization.get("kv_cache_quant_algo")
        ):
            return True
    return False
