"""The own log of llama.cpp's server: what it prints of a request when its slot is done with it.

`eval time = ... / 224 tokens` tells the output, `stop processing: n_tokens = 1190` what the slot then holds: prompt and
output but for the last token, which was never put back in. So the prompt was 967 tokens, those that were still in the
cache among them. The two come one after the other, in either order, and name the slot and the task. They name no model
and no time of day: somebody else must have taken that down (the journal, a container runtime).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from ._json import NOT_A_REQUEST
from ._lines import NO_REQUEST, moment, tokens
from ._requests import LogFormat, Requests, Row, columns

ALONE = "about half a request: its other line was read at another time"

_OWN: Final = re.compile(
    rb"\bslot +(?:print_timing|release|launch_slot_|update_slots|get_availabl)\w*: id +\d+ \| task "
)
_OF_SLOT = re.compile(rb"\bid +(\d{1,5} \| task (\d{1,12})) \| ")
_OUTPUT = re.compile(rb"(?<!prompt) eval time = .{1,40} / +(?P<tokens>[^ ]{1,40}) tokens")
_HELD = re.compile(rb"stop processing: n_(?:tokens|past) = (?P<tokens>[^ ,]{1,40}), truncated = (?P<shifted>\S)")
_REFUSED = re.compile(
    rb"task id = (?P<task>\d{1,12}), error: "
    rb"(?P<message>request \(\d{1,12} tokens\) exceeds the available context size \(\d{1,12} tokens)"
)


class _Halves:
    """Requests of which one line was met, by slot and task. Releases up to 2025 leave the slot out of the output's."""

    def __init__(self) -> None:
        self._output: dict[bytes, int] = {}
        self._held: dict[bytes, tuple[int, float]] = {}
        self._refused: set[bytes] = set()
        self._slot = b""

    def __len__(self) -> int:
        return len(self._output) + len(self._held)

    def take(self, line: bytes) -> Row | None:
        """The request that this line makes whole, or refuses. Raises ValueError for figures that cannot be."""
        if refused := _REFUSED.search(line):
            self._refused.add(refused["task"])
            return Row(moment(line), "", "", 400, message=refused["message"].decode())
        if slot := _OF_SLOT.search(line):
            self._slot = slot[1]
            if slot[2] in self._refused:
                return None
        if told := _OUTPUT.search(line):
            self._output[self._slot] = tokens(told["tokens"])
        elif told := _HELD.search(line):
            held = -1 if told["shifted"] != b"0" else tokens(told["tokens"])
            self._held[self._slot] = held, moment(line)
        if not self._output.keys() & self._held.keys():
            return None
        return self._whole(self._slot)

    def _whole(self, slot: bytes) -> Row:
        output, (held, at) = self._output.pop(slot), self._held.pop(slot)
        prompt = held + 1 - output
        if held >= 0 and prompt < 0:
            raise ValueError("more output than the slot held")
        return Row(at, "", "", 200, -1 if held < 0 else prompt, output)


def _read(block: bytes, bad: Counter[str], unused: Counter[str]) -> Requests:
    rows: list[Row] = []
    halves = _Halves()
    for line in block.split(b"\n"):
        try:
            row = halves.take(line)
        except ValueError:
            bad[NOT_A_REQUEST] += 1
            continue
        if row is not None:
            rows.append(row)
        elif line and not line.isspace():
            unused[NO_REQUEST] += 1
    if halves:
        unused[ALONE] += len(halves)
    return columns(rows)


FORMAT = LogFormat("llamacpp", lambda line: bool(_OWN.search(line)), _read, takes_time=True)
