"""What TGI's `/info` tells: the model, the limits of a request, and up to 2.2 the tokens of a batch."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import FlagValue
from advisor.engines.endpoint import Endpoint, Told, whole

from .flags import FLAGS

MAX_NAME = 256


def info(document: object) -> Told | None:
    """The answer of `/info`; None when it has another shape."""
    if not isinstance(document, Mapping) or not isinstance(document.get("model_id"), str):
        return None
    flags: dict[str, FlagValue] = {}
    for own in (*FLAGS.names, *FLAGS.kept):
        value = document.get(own)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            flags.update([FLAGS.canonical(own, value)])
    number = document.get("version")
    return Told(
        flags,
        version=number if isinstance(number, str) and number[:1].isdigit() else None,
        model=document["model_id"][:MAX_NAME],
        pool_tokens=whole(document.get("max_batch_total_tokens")),
    )


ENDPOINTS = (Endpoint(("/info",), "server_info", info),)
