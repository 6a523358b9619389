"""Layers with a state of fixed size beside attention: gated delta nets, delta attention, Mamba 2, convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .config_fields import WIDTH, count, layer_types
from .layers import Heads, Latent, Layers, State, UnknownLayoutError

_STATES = ("linear_attention", "mamba", "conv")
_ATTENTION = ("full_attention", "attention")


def state_layers(part: Mapping[str, Any], attention: Heads | Latent, layers: int) -> Layers:
    """Attention layers and state layers of a hybrid model; `attention` is what one of the former stores.

    Raises UnknownLayoutError where the config does not tell which layers are which, or lacks the state's dimensions.
    """
    read, split = STATE_MODELS[str(part.get("model_type"))]
    keeping, states = split(part, layers)
    if not keeping or not states:
        raise UnknownLayoutError("the config does not say which layers are attention and which keep a state")
    return ((attention, keeping), (read(part), states))


def _delta_net(part: Mapping[str, Any]) -> State:
    keys, key = _need(part, "linear_num_key_heads"), _need(part, "linear_key_head_dim")
    values, value = _need(part, "linear_num_value_heads"), _need(part, "linear_value_head_dim")
    return State(
        conv_channels=2 * keys * key + values * value,
        conv_steps=_need(part, "linear_conv_kernel_dim") - 1,
        recurrent_elements=values * value * key,
        recurrent_bytes=_recurrent_bytes(part, "mamba_ssm_dtype", needed=part.get("model_type") != "qwen3_next"),
    )


def _delta_attention(part: Mapping[str, Any]) -> State:
    inner = part.get("linear_attn_config")
    inner = inner if isinstance(inner, Mapping) else {}
    heads, dim = _need(inner, "num_heads"), _need(inner, "head_dim")
    return State(
        conv_channels=3 * heads * dim,
        conv_steps=_need(inner, "short_conv_kernel_size") - 1,
        recurrent_elements=heads * dim * dim,
        recurrent_bytes=4,
    )


def _mamba2(part: Mapping[str, Any]) -> State:
    heads, dim = _need(part, "mamba_num_heads", "mamba_n_heads"), _need(part, "mamba_head_dim", "mamba_d_head")
    size, groups = _need(part, "ssm_state_size", "mamba_d_state"), _need(part, "n_groups", "mamba_n_groups")
    return State(
        conv_channels=heads * dim + 2 * groups * size,
        conv_steps=_need(part, "conv_kernel", "mamba_d_conv") - 1,
        recurrent_elements=heads * dim * size,
        # Releases differ in what they take for a Nemotron that does not say.
        recurrent_bytes=_recurrent_bytes(part, "mamba_ssm_cache_dtype", needed=part.get("model_type") == "nemotron_h"),
    )


def _convolution(part: Mapping[str, Any]) -> State:
    return State(conv_channels=_need(part, "conv_dim", *WIDTH), conv_steps=_need(part, "conv_L_cache") - 1)


def _recurrent_bytes(part: Mapping[str, Any], field: str, *, needed: bool) -> int:
    if needed and not isinstance(part.get(field), str):
        raise UnknownLayoutError(f"the config lacks {field}, the type of its states")
    return 4 if part.get(field) == "float32" else 2


def _need(part: Mapping[str, Any], *names: str) -> int:
    value = count(part, *names)
    if value is None:
        raise UnknownLayoutError(f"the config lacks {names[0]}, which the state of its linear layers needs")
    return value


def _listed(part: Mapping[str, Any], layers: int) -> tuple[int, int]:
    kinds = layer_types(part)
    if kinds is None:
        return 0, 0
    if set(kinds) - {*_ATTENTION, *_STATES} or len(kinds) != layers:
        raise UnknownLayoutError("the model has layers of several kinds that are not known here")
    keeping = sum(kind in _ATTENTION for kind in kinds)
    return keeping, layers - keeping


def _every(part: Mapping[str, Any], layers: int) -> tuple[int, int]:
    if part.get("layer_types"):
        return _listed(part, layers)
    interval = count(part, "full_attention_interval")
    keeping = layers // interval if interval else 0
    return keeping, layers - keeping


def _drawn(part: Mapping[str, Any], layers: int) -> tuple[int, int]:
    pattern = part.get("hybrid_override_pattern")
    if not isinstance(pattern, str) or len(pattern) != layers:
        return 0, 0
    return pattern.count("*"), pattern.count("M")


def _numbered(part: Mapping[str, Any], layers: int) -> tuple[int, int]:
    inner = part.get("linear_attn_config")
    full = inner.get("full_attn_layers") if isinstance(inner, Mapping) else part.get("attn_layer_indices")
    keeping = len(full) if isinstance(full, list) and len(full) <= layers else 0
    return keeping, layers - keeping


STATE_MODELS: Mapping[
    str, tuple[Callable[[Mapping[str, Any]], State], Callable[[Mapping[str, Any], int], tuple[int, int]]]
] = {
    "qwen3_next": (_delta_net, _every),
    "qwen3_5": (_delta_net, _every),
    "qwen3_5_text": (_delta_net, _every),
    "qwen3_5_moe": (_delta_net, _every),
    "qwen3_5_moe_text": (_delta_net, _every),
    "kimi_linear": (_delta_attention, _numbered),
    "nemotron_h": (_mamba2, _drawn),
    "granitemoehybrid": (_mamba2, _listed),
    "bamba": (_mamba2, _numbered),
    "lfm2": (_convolution, _listed),
    "lfm2_moe": (_convolution, _listed),
}
"""By model type: what a state layer stores, and how many layers are attention and how many keep a state."""

MAMBA2_MODELS = frozenset({"nemotron_h", "granitemoehybrid", "bamba"})
