"""Speculative decoding: the layers that a draft adds to the same pool, and how many tokens it looks ahead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from advisor.domain.evidence import Evidence

from .config_fields import count, language_part
from .layers import Heads, Layers, UnknownLayoutError, attention_only

_WITHOUT_CACHE = ("ngram", "ngram_gpu", "suffix", "medusa", "mlp_speculator")
_OWN_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")


@dataclass(frozen=True, slots=True)
class Draft:
    """Layers like the model's own attention that share its pool: `layers`, or any number up to `most`.

    `lookahead` is the number of tokens drafted at once; None is not known.
    """

    layers: int = 0
    most: int = 0
    lookahead: int | None = 0


def draft(evidence: Evidence) -> Draft:
    """What speculation adds. Raises UnknownLayoutError where the draft's layers are told nowhere.

    Heads for multi-token prediction are layers of the checkpoint, and its config says how many. An EAGLE draft is one
    decoder layer by design, but a checkpoint of its own: between none and two are allowed for.
    """
    settings = _settings(evidence)
    if not settings or evidence.engine != "vllm":
        # SGLang keeps the draft's cache in a pool of its own, and prints it apart.
        return Draft()
    method, ahead = str(settings.get("method", "draft model"))[:40], count(settings, "num_speculative_tokens")
    if method in _WITHOUT_CACHE:
        return Draft(lookahead=ahead)
    if method.endswith("mtp") or method == "nextn":
        own = count(language_part(evidence.model.config or {}), *_OWN_LAYERS)
        if own:
            return Draft(own, own, ahead)
    if method in ("eagle", "eagle3"):
        return Draft(1, 2, ahead)
    raise UnknownLayoutError(f"speculative decoding ({method}) keeps a cache of its own in the same pool")


def drafted_tokens(evidence: Evidence) -> int | None:
    """Tokens that a draft proposes each step, or None without speculation or where its settings do not say."""
    return count(_settings(evidence), "num_speculative_tokens")


def with_draft(layers: Layers, drafted: int) -> Layers:
    """The layers with `drafted` more that keep every token, shaped as the model's own."""
    if not drafted:
        return layers
    whole = [kind for kind, _ in attention_only(layers) if not isinstance(kind, Heads) or kind.window is None]
    if not whole:
        raise UnknownLayoutError("the draft's layers keep every token, unlike any layer of the model")
    return tuple((kind, number + (drafted if kind == whole[0] else 0)) for kind, number in layers)


def _settings(evidence: Evidence) -> Mapping[str, Any]:
    text = evidence.flag("speculative_config")
    if not isinstance(text, str) or not text:
        return {}
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    return settings if isinstance(settings, dict) else {"method": "unreadable settings"}
