"""A daemon in a process of its own, with a notify socket that listens to it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

EVIDENCE = Path(__file__).parents[3] / "config" / "examples" / "chat-70b.yaml"
PATIENCE_SECONDS = 120.0
NOTHING: Mapping[str, str] = {}


@dataclass
class Running:
    """A daemon and everything it said so far to systemd and to its log."""

    process: subprocess.Popen[bytes]
    manager: socket.socket
    log_file: Path
    told: list[str]

    def hears(self, text: str) -> None:
        """Wait until systemd hears something that holds `text`."""
        self.manager.settimeout(PATIENCE_SECONDS)
        while not any(text in one for one in self.told):
            self.told.append(self.manager.recv(4096).decode())

    def says(self, text: str) -> None:
        """Wait until the log holds `text`."""
        eventually(lambda: text in self.log, f"{text!r} in the log")

    @property
    def log(self) -> str:
        """What it wrote to stderr."""
        return self.log_file.read_text(encoding="utf-8")

    @property
    def url(self) -> str:
        """Where its page is."""
        return next(word.partition("=")[2] for word in self.log.split() if word.startswith("web=http"))

    def get(self, path: str) -> str:
        """What its page answers."""
        with urllib.request.urlopen(self.url + path, timeout=20) as answer:
            body: bytes = answer.read()
        return body.decode()


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait until it holds, and fail when that takes too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def configure(folder: Path, more: str = "") -> Path:
    """A configuration over the worked example, with a store and an address of its own."""
    path = folder / "advisor.yaml"
    path.write_text(
        f"evidence: [{EVIDENCE}]\nstore: {{path: {folder}/advisor.db}}\nweb: {{listen: '127.0.0.1:0'}}\n{more}",
        encoding="utf-8",
    )
    return path


@contextmanager
def daemon(config: Path, environment: Mapping[str, str] = NOTHING) -> Iterator[Running]:
    """A daemon that runs until the block ends; its files lie beside its configuration."""
    with ExitStack() as held:
        manager = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        address, log_file = config.with_name("notify"), config.with_name("log")
        address.unlink(missing_ok=True)
        manager.bind(str(address))
        told = {**os.environ, "NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "60000000", **environment}
        log = held.enter_context(log_file.open("wb"))
        command = [sys.executable, "-m", "advisor", "run", "-c", str(config)]
        process = held.enter_context(subprocess.Popen(command, env=told, stderr=log))
        try:
            yield Running(process, manager, log_file, [])
        finally:
            process.kill()
