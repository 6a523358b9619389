"""The line that vLLM prints of its load every 10 s, 0.6 to 0.33; nothing while it idles."""

from __future__ import annotations

import re

from advisor.engines.load_line import LoadLine, LoadLines

_LINE = re.compile(
    rb"\.py:\d{1,5}\] (?:Engine (?P<rank>\d{1,5}): )?Avg prompt throughput: [\d.]{1,20} tokens/s, .{0,80}?"
    rb"Running: (?P<running>\d{1,9}) reqs, (?:Swapped: \d{1,9} reqs, )?(?:Waiting|Pending): (?P<waiting>\d{1,9}) reqs,"
    rb".{0,200}?KV cache usage: (?P<usage>\d{1,3}(?:\.\d{1,6})?)%"
)


def _read(line: bytes) -> LoadLine | None:
    """One engine's line. What stands for several engines is of none, and what stands in a prompt is nobody's."""
    found = None if b"Received request" in line else _LINE.search(line)
    if found is None:
        return None
    rank = (found["rank"] or b"0").decode().lstrip("0") or "0"
    usage = min(float(found["usage"]) / 100, 1.0)
    return LoadLine(rank, int(found["running"]), int(found["waiting"]), usage)


LOAD_LINES = LoadLines(
    telling=re.compile(rb"\] (?:Engine \d{1,5}: )?Avg prompt throughput: |\] Initializing an? "),
    starts=re.compile(rb"\.py:\d{1,5}\] Initializing an? (?:V\d )?LLM engine \(v"),
    read=_read,
    slot_seconds=10.0,
)
