"""Reading a config.json: its language part, and counts under the several names that model families give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LANGUAGE_PARTS = ("thinker_config", "llm_config", "language_config", "text_config")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
WIDTH = ("hidden_size", "n_embd", "d_model")
HEAD_DIM = ("head_dim", "kv_channels")
KV_HEADS = ("num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups")


def language_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's part of a multimodal config; the config itself where it is not nested."""
    part = config
    for name in _LANGUAGE_PARTS:
        inner = part.get(name)
        part = inner if isinstance(inner, Mapping) else part
    return part


def layer_count(config: Mapping[str, Any]) -> int | None:
    """Layers of the language model, or None where the config does not say."""
    return count(language_part(config), *LAYERS)


def count(part: Mapping[str, Any], *names: str) -> int | None:
    """The first of `names` that holds a whole number above 0 and below a million."""
    values = (part.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and 0 < v < 10**6), None)


def layer_types(part: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The kind of each layer where the config lists them, else None."""
    kinds = part.get("layer_types")
    listed = isinstance(kinds, list) and kinds and len(kinds) <= 10_000
    return tuple(str(kind)[:40] for kind in kinds) if listed and isinstance(kinds, list) else None
