"""What an engine tells of itself over HTTP, in terms that hold for every engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from advisor.domain.evidence import FlagSource, FlagValue


@dataclass(frozen=True, slots=True)
class Told:
    """What one answer says; flags are under canonical names. `pool_tokens` is the KV pool of one engine."""

    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    version: str | None = None
    model: str | None = None
    pool_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One question: the paths under which releases answer it, newest first, and how to read the JSON that comes back.

    read: None when the answer has another shape.
    """

    paths: tuple[str, ...]
    source: FlagSource
    read: Callable[[object], Told | None]


def models(document: object) -> Told | None:
    """The first base model in the answer of `/v1/models`, and its limit where `max_model_len` tells it."""
    model = served_model(document)
    if model is None:
        return None
    name, limit = model
    return Told({} if limit is None else {"max_model_len": limit}, model=name)


def served_model(document: object) -> tuple[str, int | None] | None:
    """The first base model in the answer of `/v1/models` and its `max_model_len`; LoRA adapters carry a `parent`.

    None when the answer has another shape.
    """
    cards = document.get("data") if isinstance(document, Mapping) else None
    for card in cards if isinstance(cards, list) else ():
        if isinstance(card, Mapping) and isinstance(card.get("id"), str) and not card.get("parent"):
            return card["id"], whole(card.get("max_model_len"))
    return None


def version(document: object) -> Told | None:
    """The answer of `/version`; what is no version says nothing."""
    number = document.get("version") if isinstance(document, Mapping) else None
    return Told(version=number if isinstance(number, str) and number[:1].isdigit() else None)


def whole(value: Any) -> int | None:
    """A whole number above zero, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


MODELS = Endpoint(("/v1/models",), "models_endpoint", models)
VERSION = Endpoint(("/version",), "server_info", version)
