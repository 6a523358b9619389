"""Lines that fit a width. Every text that reaches a terminal passes through here and is made plain on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from .plain import cells, plain

_BREAK = re.compile(r"(?<!\d) +| +(?!(?:%|[mµ]?s|min|h|d|[KMGT]?i?B|req/s)(?:[\s,;.:)]|$))")
"""Blanks to break a line at: not those between a number and its unit."""


def wrapped(text: str, width: int, *, most: int | None = None) -> list[str]:
    """Break at blanks into lines of at most `width` columns; a longer word is cut. At least one line, at most `most`.

    Where `most` lines do not hold it all, the last one ends with a whole word and an ellipsis.
    """
    lines = [""]
    for word in _words(plain(text), width):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cells(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    if most is None or len(lines) <= most:
        return lines
    return [*lines[: most - 1], _ended(lines[most - 1], width - 1) + "…"]


def fitted(text: str, width: int) -> str:
    """One line of at most `width` columns; a longer one loses its middle, since names differ at their ends."""
    line = plain(text)
    if cells(line) <= width:
        return line
    tail = _cut(line[::-1], (width - 1) // 2)[::-1]
    return _cut(line, width - 1 - cells(tail)) + "…" + tail


def left(text: str, width: int) -> str:
    """Fitted, and padded on the right to `width` columns."""
    line = fitted(text, width)
    return line + " " * (width - cells(line))


def right(text: str, width: int) -> str:
    """Fitted, and padded on the left to `width` columns."""
    line = fitted(text, width)
    return " " * (width - cells(line)) + line


def hanging(head: str, text: str, *, width: int, most: int | None = None) -> list[str]:
    """`text` after `head` (made of plain parts by the caller), wrapped to `width` and continued under itself."""
    indent = cells(head)
    first, *rest = wrapped(text, width - indent, most=most)
    return [(head + first).rstrip(), *(" " * indent + line for line in rest)]


def figures(rows: Iterable[tuple[str, str, str]], *, width: int) -> list[str]:
    """Rows of label, value (aligned right) and story; the story is continued under itself."""
    listed = list(rows)
    labels = width_of(label for label, _, _ in listed)
    values = min(width_of(value for _, value, _ in listed), width // 3)
    return [
        line
        for label, value, story in listed
        for line in hanging(f"  {left(label, labels)}  {right(value, values)}   ", story, width=width)
    ]


def grid(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of equal length under each other: the first column aligned left, the others right."""
    widths = [width_of(row[place] for row in rows) for place in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        parts = [left(first, widths[0]), *map(right, others, widths[1:])]
        lines.append("  " + "  ".join(parts))
    return lines


def width_of(texts: Iterable[str]) -> int:
    """Columns that the widest of the texts takes."""
    return max((cells(plain(text)) for text in texts), default=0)


def _words(text: str, width: int) -> Iterator[str]:
    for word in _BREAK.split(text):
        rest = word
        while cells(rest) > width:
            piece = _cut(rest, width)
            yield piece
            rest = rest[len(piece) :]
        yield rest


def _ended(line: str, width: int) -> str:
    """As many whole words of a line as take at most `width` columns; of a single longer word its beginning."""
    if cells(line) <= width:
        return line
    *kept, _ = _BREAK.split(line)
    return " ".join(kept) or _cut(line, width)


def _cut(text: str, width: int) -> str:
    """The longest beginning of at most `width` columns, but one character at least."""
    used = 0
    for place, character in enumerate(text):
        used += cells(character)
        if used > width and place:
            return text[:place]
    return text
