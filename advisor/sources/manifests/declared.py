"""What every kind of manifest yields, and how its parts are read."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.engines.command_line import Launch

MAX_TEXT = 65_536
MAX_NAME = 256
MOST_WORDS = 4_096


@dataclass(frozen=True, slots=True)
class Declared:
    """An engine that a manifest starts. replicas, gpus (of one replica), version: None where it does not say."""

    name: str
    launch: Launch
    replicas: int | None = None
    gpus: int | None = None
    version: str | None = None


def text(value: object) -> str:
    """A name or an image; the empty text for what is none."""
    return value[:MAX_NAME] if isinstance(value, str) else ""


def words(value: object) -> list[str]:
    """A list of arguments; numbers among them as text."""
    listed = value if isinstance(value, list) else []
    return [str(word)[:MAX_TEXT] for word in listed[:MOST_WORDS] if isinstance(word, str | int | float)]


def whole(value: object) -> int | None:
    """A number of replicas or GPUs, written as a number or as text; None for what is none."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 7:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**6 else None
