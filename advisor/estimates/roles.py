"""Whether engines serve whole requests. Where prompts are computed on some and answers on others, none of them shows
what a request needs, and a ceiling that holds for one role says nothing of the other.
"""

from __future__ import annotations

import json
from dataclasses import replace

from advisor.domain.evidence import Evidence
from advisor.domain.fact import Fact, computed

HANDING_OVER = ("nixl", "mooncakeconnector", "p2p", "moriio", "pynccl")
"""Beginnings of the connectors that hand a prompt's cache to another engine; the others keep it on this one's host."""

_NAMES = {"prefill": "compute prompts only", "decode": "decode only", "part": "hand caches to each other"}


def serving_role(evidence: Evidence) -> Fact:
    """`whole`, `prefill`, `decode`, or `part` where it is not told which, or both are mixed.

    `whole` is assumed where no engine was read.
    """
    roles = {engine.role for engine in evidence.every_engine} | {_by_flags(evidence)}
    roles.discard(None)
    if roles:
        role = roles.pop() if len(roles) == 1 else "part"
        return computed(role, source="flags of the engines, or series that only such engines expose")
    told = computed("whole", source="nothing says that engines hand caches over")
    return told if evidence.engines else replace(told, basis="assumed")


def withheld(role: Fact) -> str | None:
    """Why sizing is not judged, or None where requests are served whole, or as far as is known."""
    told = _NAMES.get(str(role.value))
    if told is None:
        return None
    return (
        f"its engines {told} (prefill and decoding apart), and what is known here of sizing holds for engines that "
        "serve whole requests"
    )


def _by_flags(evidence: Evidence) -> str | None:
    mode = evidence.flag("disaggregation_mode")
    if mode in {"prefill", "decode"}:
        return str(mode)
    return _of_transfer(evidence.flag("kv_transfer_config"))


def _of_transfer(stated: object) -> str | None:
    """By the role that vLLM's kv_transfer_config gives, else by its connector.

    `{"kv_connector": "NixlConnector", "kv_role": "kv_both"}` is `part`; an OffloadingConnector keeps whole requests.
    """
    try:
        config = json.loads(stated) if isinstance(stated, str) else None
    except ValueError:
        return None
    if not isinstance(config, dict):
        return None
    told = {"kv_producer": "prefill", "kv_consumer": "decode"}.get(str(config.get("kv_role")))
    return told or ("part" if str(config.get("kv_connector")).lower().startswith(HANDING_OVER) else None)
