"""Text from outside, made safe to show: whatever could move, hide or reorder characters is written out as an escape."""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_STACKED = frozenset({"Mn", "Me"})


def plain(text: str, *, limit: int = 2_000) -> str:
    r"""One line of printable characters, at most `limit` of them; a longer text ends with an ellipsis.

    White space of any kind becomes one blank. Control characters (and so terminal escape sequences), bidirectional
    overrides, zero-width and unassigned characters and lone surrogates are spelled out: a name that tries to blank the
    screen with ESC c reads `\x1bc`. Applying it twice changes nothing more.
    """
    line = " ".join(text[: limit + 1].split())
    shown = line if line.isascii() and line.isprintable() else "".join(map(_visible, line))
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def cells(text: str) -> int:
    """Terminal columns that a plain text takes: East Asian wide characters two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _cells(character: str) -> int:
    if unicodedata.category(character) in _STACKED:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
