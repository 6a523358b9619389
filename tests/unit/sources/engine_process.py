"""A real process under the words of an engine: what it does is listen, until the test has looked at it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LISTENER = """import socket, sys
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def running(folder: Path, *words: str, variables: Mapping[str, str] | None = None) -> Iterator[tuple[int, int]]:
    """A process whose first words are the interpreter and a program called `words[0]`; its id and its port."""
    (folder / words[0]).write_text(LISTENER)
    process = subprocess.Popen(
        [sys.executable, str(folder / words[0]), *words[1:]],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **(variables or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.pid, int(process.stdout.readline())
    finally:
        process.communicate()
