"""What a config.json says of the layers of a model, for the architectures whose cache is known.

A new `model_type` is Unknown until somebody has looked at it: what fits one family is wrong for another by factors, in
both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .config_fields import HEAD_DIM, HEADS, KV_HEADS, LAYERS, WIDTH, count, language_part, layer_types
from .layers import Heads, Latent, Layer, Layers, UnknownLayoutError
from .state_layers import STATE_MODELS, state_layers

_PLAIN = (
    "apertus aquila arcee baichuan bloom chatglm cohere dbrx deepseek ernie4_5 ernie4_5_moe exaone "
    "falcon gemma glm glm4 glm4_moe gpt2 gpt_bigcode gpt_neox gptj granite granitemoe "
    "hunyuan_v1_dense hunyuan_v1_moe internlm internlm2 llama minimax_m2 mistral mixtral mpt nemotron "
    "olmo olmo2 olmoe opt orion persimmon phi phi3 phimoe qwen2 qwen2_moe qwen2_vl qwen2_vl_text "
    "qwen2_5_vl qwen2_5_vl_text qwen3 qwen3_moe qwen3_vl_text qwen3_vl_moe_text seed_oss stablelm "
    "starcoder2 xverse "
)
_WINDOWED = "gemma2 gemma3 gemma3_text gemma4 gemma4_text gpt_oss cohere2 exaone4 olmo3 mistral mixtral "
_LATENT = "deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 kimi_k25 glm_moe_dsa glm4_moe_lite pangu_ultra_moe "
_OTHER_CACHE = {
    "index_topk_freq": "an index in some layers only",
    "index_topk_pattern": "an index in some layers only",
    "attention_chunk_size": "chunked attention",
    "attn_type_list": "linear attention in some layers",
    "block_configs": "layers that differ",
    "cross_attention_layers": "cross attention",
    "compress_ratio": "a compressed cache",
    "compress_ratios": "a compressed cache",
    "is_encoder_decoder": "an encoder",
}
_WINDOW_FIELDS = ("sliding_window", "sliding_window_pattern", "interleaved_sliding_window")
_STATE_FIELDS = (
    "full_attention_interval",
    "linear_num_key_heads",
    "linear_attn_config",
    "hybrid_override_pattern",
    "layers_block_type",
    "attn_layer_period",
    "attn_layer_indices",
    "mamba_d_state",
    "mamba_d_ssm",
    "ssm_state_size",
    "state_size",
    "conv_L_cache",
)
_FULL = ("full_attention", "attention", "global", "full")
_SLIDING = ("sliding_attention", "sliding", "local")


def keeps_every_token(config: Mapping[str, Any]) -> bool:
    """False where some layers keep windows or states, or a compressed cache, known in detail or not."""
    part = language_part(config)
    return not (_has_states(part) or _has_windows(part) or any(part.get(key) for key in _OTHER_CACHE))


def architecture(config: Mapping[str, Any]) -> Layers:
    """The layers of the model in a config.json, nested language part included.

    Raises UnknownLayoutError with the reason, also where the config lacks a field that its family needs.
    """
    part = language_part(config)
    if reason := next((why for key, why in _OTHER_CACHE.items() if part.get(key)), None):
        raise UnknownLayoutError(f"the model has {reason}, whose cache is not known here")
    for family, read in _FAMILIES:
        if family(part):
            return read(part)
    kind = part.get("model_type")
    if kind is not None and kind not in _PLAIN.split():
        raise UnknownLayoutError(f"the cache layout of model type {str(kind)[:40]!r} is not known here")
    return ((_heads(part), _layers(part)),)


def _states(part: Mapping[str, Any]) -> Layers:
    if part.get("model_type") not in STATE_MODELS:
        raise UnknownLayoutError("the model has linear attention or state-space layers of a kind not known here")
    attention = _latent(part) if part.get("kv_lora_rank") else _heads(part)
    return state_layers(part, attention, _layers(part))


def _windows(part: Mapping[str, Any]) -> Layers:
    window, pattern = count(part, "sliding_window"), _pattern(part)
    full, sliding = sum(pattern), len(pattern) - sum(pattern)
    if sliding and window is None:
        raise UnknownLayoutError("the config names sliding layers but no sliding_window")
    narrow = _heads(part)
    global_dim = count(part, "global_head_dim") or narrow.key_dim
    global_heads = count(part, "num_global_key_value_heads") or narrow.kv_heads
    kinds: tuple[tuple[Layer, int], ...] = (
        (Heads(narrow.query_heads, global_heads, global_dim, global_dim), full),
        (replace(narrow, window=window), sliding),
    )
    return tuple((layer, number) for layer, number in kinds if number)


def _pattern(part: Mapping[str, Any]) -> list[bool]:
    """For each layer that keeps a cache of its own: does it see everything?"""
    layers, kind = _layers(part), part.get("model_type")
    if kind not in _WINDOWED.split():
        raise UnknownLayoutError("the model has a sliding window or layers of several kinds that are not known here")
    listed, every = layer_types(part), count(part, "sliding_window_pattern")
    if listed is not None:
        if set(listed) - {*_FULL, *_SLIDING} or len(listed) != layers:
            raise UnknownLayoutError("the model has layers of several kinds that are not known here")
        pattern = [name in _FULL for name in listed]
    elif kind in ("mistral", "mixtral"):
        pattern = [False] * layers
    elif kind == "gemma2":
        pattern = [i % 2 == 1 for i in range(layers)]
    elif every:
        pattern = [(i + 1) % every == 0 for i in range(layers)]
    else:
        raise UnknownLayoutError("the config does not say which layers have the sliding window")
    return pattern[: layers - (count(part, "num_kv_shared_layers") or 0)]


def _latents(part: Mapping[str, Any]) -> Layers:
    if part.get("model_type") not in (None, *_LATENT.split()):
        raise UnknownLayoutError("the model has latent attention in a family whose layers are not known here")
    return ((_latent(part), _layers(part)),)


def _latent(part: Mapping[str, Any]) -> Latent:
    rank, rope = count(part, "kv_lora_rank"), count(part, "qk_rope_head_dim")
    if not rank or not rope:
        raise UnknownLayoutError("the config lacks kv_lora_rank or qk_rope_head_dim")
    index = count(part, "index_head_dim")
    if part.get("index_topk") and (index is None or index % 128):
        raise UnknownLayoutError("the config has index_topk but no index_head_dim of a known kind")
    return Latent(rank + rope, index)


def _heads(part: Mapping[str, Any]) -> Heads:
    heads = count(part, *HEADS)
    key = count(part, *HEAD_DIM) or (count(part, *WIDTH) or 0) // (heads or 1)
    if not heads or not key or not count(part, *LAYERS):
        raise UnknownLayoutError("the config lacks layers, attention heads or head size")
    if part.get("v_head_dim") not in (None, key):
        raise UnknownLayoutError("keys and values differ in size")
    return Heads(heads, _kv_heads(part) or heads, key, key)


def _kv_heads(part: Mapping[str, Any]) -> int | None:
    if part.get("multi_query") and not part.get("new_decoder_architecture"):
        return 1
    inner = part.get("attn_config")
    nested = count(inner, "kv_n_heads") if isinstance(inner, Mapping) else None
    return count(part, *KV_HEADS) or nested


def _layers(part: Mapping[str, Any]) -> int:
    layers = count(part, *LAYERS)
    if not layers:
        raise UnknownLayoutError("the config lacks layers, attention heads or head size")
    return layers


def _has_states(part: Mapping[str, Any]) -> bool:
    return part.get("model_type") in STATE_MODELS or any(part.get(name) for name in _STATE_FIELDS)


def _has_latents(part: Mapping[str, Any]) -> bool:
    return bool(part.get("kv_lora_rank"))


def _has_windows(part: Mapping[str, Any]) -> bool:
    ignored = {"sliding_window"} if part.get("use_sliding_window") is False else set()
    listed = part.get("layer_types") or []
    mixed = not isinstance(listed, list) or any(name not in _FULL for name in listed)
    other = part.get("num_kv_shared_layers") or part.get("global_head_dim")
    return mixed or bool(other) or any(part.get(name) for name in _WINDOW_FIELDS if name not in ignored)


_Family = tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Layers]]
_FAMILIES: tuple[_Family, ...] = ((_has_states, _states), (_has_latents, _latents), (_has_windows, _windows))
