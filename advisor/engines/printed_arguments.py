"""Arguments as engines print them: a dict, a Namespace, or `name=value, name=value`; none of it is ever evaluated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

MAX_CHARACTERS = 32_768
MAX_DEPTH = 12
MAX_VALUE = 4_096

_OPEN, _CLOSE = "([{", ")]}"
_KEY = re.compile(r"\s*(?:'(\w+)'\s*:|(\w+)\s*=)\s*")


def printed_arguments(text: str) -> dict[str, object]:
    """Every argument at the top level of `text`; a value that is no literal, such as `<Mode.NONE: 0>`, as its text.

    >>> printed_arguments("'max_num_seqs': 8, 'mode': <Mode.NONE: 0>, 'names': ['a', 'b']")
    {'max_num_seqs': 8, 'mode': '<Mode.NONE: 0>', 'names': ['a', 'b']}
    """
    found: dict[str, object] = {}
    for piece in _pieces(text[:MAX_CHARACTERS]):
        if key := _KEY.match(piece):
            found[key[1] or key[2]] = _value(piece[key.end() :].strip())
    return found


def _pieces(text: str) -> Iterator[str]:
    """The text between commas that no bracket and no quote encloses."""
    start, depth, quote, escaped = 0, 0, "", False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\"
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _value(raw: str) -> object:
    nested = max(raw.count(bracket) for bracket in _OPEN)
    if len(raw) > MAX_VALUE or nested > MAX_DEPTH:
        return raw[:MAX_VALUE]
    try:
        value: object = ast.literal_eval(raw)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return raw
    return value
