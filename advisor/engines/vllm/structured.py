"""Settings of vLLM that have parts: what is kept of them."""

from __future__ import annotations

import json

_KEPT = ("method", "model", "num_speculative_tokens", "kv_connector", "kv_role")
STRUCTURED = ("speculative_config", "kv_transfer_config")


def essentials(value: object) -> str | None:
    """The parts that say what the setting does, as JSON; the others may hold credentials. None for what has no parts.

    >>> essentials({"method": "ngram", "num_speculative_tokens": 3, "token": "secret"})
    '{"method": "ngram", "num_speculative_tokens": 3}'
    """
    if not isinstance(value, dict):
        return None
    return json.dumps({key: value[key] for key in _KEPT if isinstance(value.get(key), str | int)})
