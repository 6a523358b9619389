"""What a config.json says of a model's attention, for the architectures whose cache is one plain product.

Multi-head, grouped-query and multi-query attention store, per layer and token, one key and one value vector of each KV
head. Everything else (latent, windowed, linear, state-space, shared or mixed layers) stores something else and is
refused: the grouped-query formula is wrong for those by factors, in both directions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_PLAIN = (
    "apertus aquila arcee baichuan bloom chatglm cohere dbrx deepseek ernie4_5 ernie4_5_moe exaone "
    "falcon gemma glm glm4 glm4_moe gpt2 gpt_bigcode gpt_neox gptj granite granitemoe "
    "hunyuan_v1_dense hunyuan_v1_moe internlm internlm2 llama minimax_m2 mistral mixtral mpt nemotron "
    "olmo olmo2 olmoe opt orion persimmon phi phi3 phimoe qwen2 qwen2_moe qwen2_vl qwen2_vl_text "
    "qwen2_5_vl qwen2_5_vl_text qwen3 qwen3_moe qwen3_vl_text qwen3_vl_moe_text seed_oss stablelm "
    "starcoder2 xverse "
)
PLAIN_MODELS = frozenset(_PLAIN.split())
"""`model_type` of architectures known to be plain. A new one is Unknown until somebody has looked at it."""

_OTHER_CACHE = {
    "kv_lora_rank": "latent attention (MLA)",
    "index_topk": "sparse attention with an index of its own",
    "index_head_dim": "sparse attention with an index of its own",
    "sliding_window": "a sliding window",
    "sliding_window_pattern": "a sliding window in some layers",
    "interleaved_sliding_window": "a sliding window in some layers",
    "attention_chunk_size": "chunked attention",
    "full_attention_interval": "linear attention in most layers",
    "linear_num_key_heads": "linear attention",
    "linear_attn_config": "linear attention",
    "attn_type_list": "linear attention in some layers",
    "hybrid_override_pattern": "state-space layers",
    "layers_block_type": "mixed layers",
    "attn_layer_period": "state-space layers",
    "attn_layer_indices": "state-space layers",
    "mamba_d_state": "state-space layers",
    "mamba_d_ssm": "state-space layers",
    "state_size": "state-space layers",
    "conv_L_cache": "convolution layers",
    "block_configs": "layers that differ",
    "num_kv_shared_layers": "layers that share their cache",
    "cross_attention_layers": "cross attention",
    "global_head_dim": "heads that differ by layer",
    "compress_ratio": "a compressed cache",
    "compress_ratios": "a compressed cache",
    "is_encoder_decoder": "an encoder",
}
_LANGUAGE_PARTS = ("thinker_config", "llm_config", "language_config", "text_config")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_WIDTH = ("hidden_size", "n_embd", "d_model")
_HEAD_DIM = ("head_dim", "kv_channels")
_KV_HEADS = ("num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups")


class NotPlainError(Exception):
    """Why the cache of this model is not computed; for people."""


@dataclass(frozen=True, slots=True)
class Attention:
    """In each of `layers`: `heads` query heads, and `kv_heads` key and value heads of `head_dim` elements."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int


def plain_attention(config: Mapping[str, Any]) -> Attention:
    """The geometry in a config.json, nested language part included. Raises NotPlainError with the reason."""
    part = language_part(config)
    if reason := _other_cache(part):
        raise NotPlainError(f"the model has {reason}, whose cache is no plain product")
    kind = part.get("model_type")
    if kind is not None and kind not in PLAIN_MODELS:
        raise NotPlainError(f"the cache layout of model type {str(kind)[:40]!r} is not known here")
    layers, heads = _count(part, _LAYERS), _count(part, _HEADS)
    head_dim = _count(part, _HEAD_DIM) or (_count(part, _WIDTH) or 0) // (heads or 1)
    if not layers or not heads or not head_dim:
        raise NotPlainError("the config lacks layers, attention heads or head size")
    if part.get("v_head_dim") not in (None, head_dim):
        raise NotPlainError("keys and values differ in size")
    return Attention(layers, heads, _kv_heads(part) or heads, head_dim)


def language_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's part of a multimodal config; the config itself where it is not nested."""
    part = config
    for name in _LANGUAGE_PARTS:
        inner = part.get(name)
        part = inner if isinstance(inner, Mapping) else part
    return part


def layer_count(config: Mapping[str, Any]) -> int | None:
    """Layers of the language model, or None where the config does not say."""
    return _count(language_part(config), _LAYERS)


def _other_cache(part: Mapping[str, Any]) -> str | None:
    kinds = part.get("layer_types") or []
    if not isinstance(kinds, list) or any(kind not in ("full_attention", "attention") for kind in kinds):
        return "layers of several kinds"
    ignored = {"sliding_window"} if part.get("use_sliding_window") is False else set()
    return next((why for key, why in _OTHER_CACHE.items() if part.get(key) and key not in ignored), None)


def _kv_heads(part: Mapping[str, Any]) -> int | None:
    if part.get("multi_query") and not part.get("new_decoder_architecture"):
        return 1
    inner = part.get("attn_config")
    nested = _count(inner, ("kv_n_heads",)) if isinstance(inner, Mapping) else None
    return _count(part, _KV_HEADS) or nested


def _count(part: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    values = (part.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and 0 < v < 10**6), None)
