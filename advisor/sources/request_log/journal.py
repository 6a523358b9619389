"""The systemd journal by `journalctl`: the messages of one unit or identifier after a place in it, within bounds."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any, Literal, cast

import msgspec

from .files import LineBlocks, shown
from .stream import Entry, Reached

TIMEOUT_SECONDS = 120.0
# A message that is not UTF-8 is an array of numbers: up to four characters a byte.
_CHARACTERS_A_BYTE, _OTHER_FIELDS_BYTES = 4, 1 << 14
_MOST_SAID_BYTES = 4096
_FORBIDDEN = ("insufficient permissions", "not seeing messages from other users", "Permission denied")
_PERMISSION = (
    "no permission to read it: add the account to the group systemd-journal (a service: "
    "SupplementaryGroups=systemd-journal in a drop-in)"
)
_BAD_ENTRY = (msgspec.DecodeError, ValueError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True)
class JournalStream:
    """The messages of one unit or identifier; `directory` holds journal files that are not this machine's own."""

    kind: Literal["unit", "identifier"]
    name: str
    directory: Path | None = None

    @property
    def key(self) -> str:
        """The name under which is kept how far it is read."""
        return f"{self.kind}={self.name} {self.directory or ''}".rstrip()

    @property
    def source(self) -> str:
        """The kind of place."""
        return "the journal"

    @property
    def title(self) -> str:
        """Which one it is."""
        return f"journal of {shown(self.name)}"

    @property
    def silence(self) -> str:
        """What to say where there was nothing."""
        return "no messages; check the name, and that this account may read the journal"

    def read(self, after: str, since: float, max_line_bytes: int) -> JournalReading:
        """Entries after a place where one is known, else since UNIX seconds."""
        return JournalReading(self, after=after, since=since, max_line_bytes=max_line_bytes)

    def arguments(self, after: str, since: float) -> list[str]:
        """What to call journalctl with: for entries after a place where one is known, else since UNIX seconds."""
        return [
            *("--output=json", "--all", "--no-pager", "--output-fields=MESSAGE", f"--{self.kind}={self.name}"),
            *([f"--directory={self.directory}"] if self.directory else []),
            f"--after-cursor={after}" if after else f"--since=@{since:.6f}",
        ]


class _Printed(msgspec.Struct, gc=False):
    place: str = msgspec.field(name="__CURSOR")
    microseconds: str = msgspec.field(name="__REALTIME_TIMESTAMP")
    message: str | list[Any] | None = msgspec.field(name="MESSAGE", default=None)


_decode = msgspec.json.Decoder(_Printed).decode


class JournalReading:
    """Entries in order, some at a time; what was dropped and what went wrong are known after the last ones."""

    def __init__(self, stream: JournalStream, *, after: str, since: float, max_line_bytes: int) -> None:
        self._arguments = stream.arguments(after, since)
        self._max_line_bytes = max_line_bytes
        self.unreadable, self.too_long = 0, 0
        self.problem = ""
        self.reached: Reached | None = None

    @property
    def lost(self) -> bool:
        """Whether to go on by time: which problem it was journalctl tells in words only."""
        return bool(self.problem)

    def pieces(self) -> Generator[list[Entry], None, None]:
        """The entries, once. Closing it stops journalctl."""
        program = shutil.which("journalctl")
        if program is None:
            self.problem = "there is no journalctl on this machine; give log files instead"
            return
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "SYSTEMD_COLORS": "0"}
        with (
            tempfile.TemporaryFile() as said,
            subprocess.Popen(  # noqa: S603  no shell, and what users name is only ever the value of an option
                [program, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment,
            ) as process,
        ):
            timer = Timer(TIMEOUT_SECONDS, self._give_up, [process])
            timer.start()
            try:
                yield from self._entries(cast(io.BufferedReader, process.stdout))
                process.wait()
            finally:
                timer.cancel()
                process.kill()
            said.seek(0)
            self._hear(process.returncode, said.read(_MOST_SAID_BYTES).decode("utf-8", "replace"))

    def _give_up(self, process: subprocess.Popen[bytes]) -> None:
        self.problem = f"not read to its end within {TIMEOUT_SECONDS:.0f} s"
        process.kill()

    def _entries(self, printed: io.BufferedReader) -> Iterator[list[Entry]]:
        blocks = LineBlocks(printed, _CHARACTERS_A_BYTE * self._max_line_bytes + _OTHER_FIELDS_BYTES)
        for block in blocks:
            told = (self._entry(line) for line in block.split(b"\n") if line.startswith(b"{"))
            if entries := [entry for entry in told if entry]:
                yield entries
        self.too_long += blocks.too_long

    def _entry(self, line: bytes) -> Entry | None:
        try:
            told = _decode(line)
            message = _bytes(told.message)
            entry = Entry(int(told.microseconds) / 1e6, message.replace(b"\n", b" "))
        except _BAD_ENTRY:
            self.unreadable += 1
            return None
        self.reached = Reached(told.place[:1000], entry.seconds)
        if len(message) > self._max_line_bytes:
            self.too_long += 1
            return None
        return entry

    def _hear(self, exit_code: int, said: str) -> None:
        if self.problem:
            return
        if any(words in said for words in _FORBIDDEN):
            self.problem = _PERMISSION
        elif exit_code:
            last = (said.strip().splitlines() or [f"exit code {exit_code}"])[-1]
            self.problem = "journalctl: " + "".join(c if c.isprintable() else "?" for c in last[:200])


def _bytes(message: str | list[Any] | None) -> bytes:
    if isinstance(message, str):
        return message.encode("utf-8", "replace")
    return bytes(message or ())
