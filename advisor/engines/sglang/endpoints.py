"""What SGLang's server info tells: every argument as it was resolved, the pool, and the seats of one worker."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import FlagValue
from advisor.engines.endpoint import MODELS, Endpoint, Told, whole

from .flags import FLAGS

MAX_NAME = 256


def server_info(document: object) -> Told | None:
    """The answer of `/server_info` (0.5.10 and later) or `/get_server_info` (0.4.4 and later).

    The seats of one worker come before max_running_requests, which is for all data-parallel ones together. Only flags
    that size a server are taken: the answer also holds keys.
    """
    if not isinstance(document, Mapping) or "model_path" not in document:
        return None
    flags: dict[str, FlagValue] = {}
    for own in (*FLAGS.names, *FLAGS.kept):
        value = document.get(own)
        if not isinstance(value, bool | int | float | str) or value in ("", -1):
            continue
        try:
            name, flags_value = FLAGS.canonical(own, value)
        except ValueError:
            continue
        flags[name] = flags_value
    if isinstance(cached := document.get("disable_radix_cache"), bool):
        flags["enable_prefix_caching"] = not cached
    if (seats := _seats(document.get("internal_states"))) is not None:
        flags["max_num_seqs"] = seats
    model = document.get("served_model_name") or document.get("model_path")
    number = document.get("version")
    return Told(
        flags,
        version=number if isinstance(number, str) and number[:1].isdigit() else None,
        model=model[:MAX_NAME] if isinstance(model, str) else None,
        pool_tokens=whole(document.get("max_total_num_tokens")),
    )


def _seats(states: object) -> int | None:
    """The least of the workers, because advice must hold on each."""
    listed = states if isinstance(states, list) else []
    told = [whole(state.get("effective_max_running_requests_per_dp")) for state in listed if isinstance(state, Mapping)]
    return min((seats for seats in told if seats is not None), default=None)


ENDPOINTS = (Endpoint(("/server_info", "/get_server_info"), "server_info", server_info), MODELS)
