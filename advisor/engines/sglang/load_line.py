"""The lines that SGLang prints of prefill batches and every 40 decode steps, 0.3 to 0.5.23; nothing while it idles.

A prompt may say anything, so lines of request logs are left out.
"""

from __future__ import annotations

import re

from advisor.engines.load_line import LoadLine, LoadLines

_LINE = re.compile(rb"\] (?P<kind>Decode|Prefill) batch[,. \[].{0,400}?#running-req: (?P<running>\d{1,9}),")
_NEW, _QUEUED = re.compile(rb"#new-seq: (\d{1,9})"), re.compile(rb"#queue-req: (\d{1,9})")
_USAGE = re.compile(rb"token usage: (\d(?:\.\d{1,6})?)")
_RANK = re.compile(rb"\bDP(\d{1,5})\b")
_SPOKEN = re.compile(rb"Receive: obj=|Finish: obj=|request\.(?:received|finished)")


def _read(line: bytes) -> LoadLine | None:
    """A line with the running, the waiting and the cache in use; sequences that a prefill batch adds run from then on.

    Of several kinds of cache (full and sliding-window attention) the fuller one counts.
    """
    found, queued, usage = _LINE.search(line), _QUEUED.search(line), _USAGE.findall(line)
    if not found or not queued or not usage or _SPOKEN.search(line):
        return None
    rank, new = _RANK.search(line), _NEW.search(line) if found["kind"] == b"Prefill" else None
    running = int(found["running"]) + (int(new[1]) if new else 0)
    return LoadLine(rank[1].decode() if rank else "0", running, int(queued[1]), min(max(map(float, usage)), 1.0))


LOAD_LINES = LoadLines(
    telling=re.compile(rb"#running-req: |\] server_args="),
    starts=re.compile(rb"\A(?!.{0,200}(?:Receive|Finish): obj=).{0,120}\[\d{4}-[^\]]{10,60}\] server_args="),
    read=_read,
    slot_seconds=15.0,
)
