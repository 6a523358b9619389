"""Lines of a log as columns: format recognised, and a bad line costs one line and is counted by its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from advisor.sources.log_formats import LogFormat, NoEngineError, Requests

_LINES_LOOKED_AT = 100
_BAD_LINE = (msgspec.DecodeError, ValueError, RecursionError)

NOT_JSON = "not JSON"
NOT_A_REQUEST = "with a missing or impossible value"
FROM_CACHE = "answered by the gateway's cache"


def recognise(block: bytes, formats: Sequence[LogFormat]) -> LogFormat | None:
    """The first format that one of the first lines looks like; None when none does."""
    for line in block.split(b"\n", _LINES_LOOKED_AT)[:_LINES_LOOKED_AT]:
        try:
            decoded = msgspec.json.decode(line)
        except _BAD_LINE:
            continue
        for known in formats:
            if isinstance(decoded, dict) and known.recognises(decoded):
                return known
    return None


def requests(block: bytes, written: LogFormat, bad: Counter[str], unused: Counter[str]) -> Requests:
    """The requests of a block of whole lines. What is none is counted in `bad` or `unused`, by reason."""
    try:
        return written.requests(written.decoder.decode_lines(block))
    except _BAD_LINE:
        return written.requests(list(_good_lines(block, written, bad, unused)))


def _good_lines(block: bytes, written: LogFormat, bad: Counter[str], unused: Counter[str]) -> Iterator[Any]:
    for line in block.split(b"\n"):
        if not line or line.isspace():
            continue
        try:
            decoded = written.decoder.decode(line)
            written.requests([decoded])
        except NoEngineError:
            unused[FROM_CACHE] += 1
        except (msgspec.DecodeError, ValueError, RecursionError) as problem:
            bad[NOT_JSON if _is_syntax(problem) else NOT_A_REQUEST] += 1
        else:
            yield decoded


def _is_syntax(problem: Exception) -> bool:
    return type(problem) in {msgspec.DecodeError, RecursionError}
