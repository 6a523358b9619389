"""How the lines of a file are written, told by its first ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.sources.log_formats import FORMATS, LogFormat, lengthless, mapped_format, unwrapping

from .options import LogOptions

_LINES_LOOKED_AT = 100


def formats_of(options: LogOptions) -> list[LogFormat]:
    """The formats that lines may have, in the order in which to try them."""
    # A map that somebody wrote for this log knows better than recognition.
    own = [mapped_format(options.fields)] if options.fields else []
    known = [*own, *FORMATS.values()]
    if options.format != "auto":
        known = own if options.format == "mapped" else [FORMATS[options.format]]
    return [unwrapping(written) for written in known]


def recognise(block: bytes, formats: Sequence[LogFormat]) -> LogFormat | None:
    """The first format that one of the first lines looks like; None when none does."""
    seen = (known for line in _first(block) for known in formats if known.recognises(line))
    return next(seen, None)


def told_apart(block: bytes) -> str:
    """What to say of lines that no format recognises."""
    known = (told for line in _first(block) if (told := lengthless(line)))
    return next(known, "no known log format; name one, or map its fields")


def _first(block: bytes) -> Iterator[bytes]:
    return iter(block.split(b"\n", _LINES_LOOKED_AT)[:_LINES_LOOKED_AT])
