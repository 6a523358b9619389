"""What llama.cpp's `/props` tells: the slots, and the context of one of them."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import FlagValue
from advisor.engines.endpoint import MODELS, Endpoint, Told, whole


def props(document: object) -> Told | None:
    """The answer of `/props`. Without a unified cache the pool is the context of one slot times the slots."""
    if not isinstance(document, Mapping) or (slots := whole(document.get("total_slots"))) is None:
        return None
    generation = document.get("default_generation_settings")
    context = whole(generation.get("n_ctx")) if isinstance(generation, Mapping) else None
    flags: dict[str, FlagValue] = {"max_num_seqs": slots}
    if context is not None:
        flags["max_model_len"] = context
    return Told(flags)


ENDPOINTS = (Endpoint(("/props",), "server_info", props), MODELS)
