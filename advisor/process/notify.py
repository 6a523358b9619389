"""What systemd hears from the daemon: ready, status, watchdog, reloading, stopping. Silent where nobody listens."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping
from contextlib import suppress

MOST_SECONDS = 0.5


class Notifier:
    """Sends states to the service manager's socket; without one (`address` empty) it does nothing."""

    def __init__(self, address: str = "") -> None:
        # A leading @ stands for the abstract namespace, in which a name begins with a NUL byte.
        self._address = "\0" + address[1:] if address.startswith("@") else address

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str] = os.environ) -> Notifier:
        """The notifier that NOTIFY_SOCKET asks for.

        What systemd says is taken out of the environment: a child that inherited it could speak for the daemon.
        """
        for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
            environment.pop(name, None)
        return cls(environment.pop("NOTIFY_SOCKET", ""))

    def ready(self, status: str) -> None:
        """Started, or reloaded."""
        self._send("READY=1", f"STATUS={status}")

    def status(self, text: str) -> None:
        """One line for `systemctl status`."""
        self._send(f"STATUS={text}")

    def alive(self) -> None:
        """Feed the watchdog."""
        self._send("WATCHDOG=1")

    def reloading(self) -> None:
        """Between this and `ready` the configuration is read anew."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """The daemon ends of its own accord."""
        self._send("STOPPING=1", "STATUS=stopping")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        message = "\n".join(" ".join(line.splitlines()) for line in lines).encode()
        # A manager that restarts or hangs must not take the daemon with it.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.settimeout(MOST_SECONDS)
            channel.sendto(message, self._address)
