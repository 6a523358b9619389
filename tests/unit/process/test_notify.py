"""What systemd is told, read from a real datagram socket."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advisor.process.notify import MOST_SECONDS, Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """The address of a service manager's socket, as it stands in NOTIFY_SOCKET, and the socket."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@advisor-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(name.replace("@", "\0") if request.param == "abstract" else name)
        channel.settimeout(5)
        yield name, channel


@pytest.mark.parametrize(
    ("say", "heard"),
    [
        (lambda n: n.ready("3 deployments"), b"READY=1\nSTATUS=3 deployments"),
        (lambda n: n.status("evaluating"), b"STATUS=evaluating"),
        (lambda n: n.alive(), b"WATCHDOG=1"),
        (lambda n: n.stopping(), b"STOPPING=1\nSTATUS=stopping"),
    ],
    ids=["ready", "status", "alive", "stopping"],
)
def test_states(manager: tuple[str, socket.socket], say: Callable[[Notifier], None], heard: bytes) -> None:
    say(Notifier(manager[0]))
    assert manager[1].recv(4096) == heard


def test_a_reload_says_when(manager: tuple[str, socket.socket]) -> None:
    Notifier(manager[0]).reloading()
    first, second = manager[1].recv(4096).decode().split("\n")
    assert first == "RELOADING=1"
    assert second.startswith("MONOTONIC_USEC=")
    assert second.split("=")[1].isdecimal()


def test_a_status_cannot_smuggle_a_state(manager: tuple[str, socket.socket]) -> None:
    Notifier(manager[0]).status("model a\nSTOPPING=1")
    assert manager[1].recv(4096) == b"STATUS=model a STOPPING=1"


def test_children_do_not_inherit_the_socket(manager: tuple[str, socket.socket]) -> None:
    environment = {"NOTIFY_SOCKET": manager[0], "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7", "PATH": "/bin"}
    Notifier.from_environment(environment).alive()
    assert manager[1].recv(4096) == b"WATCHDOG=1"
    assert environment == {"PATH": "/bin"}


def test_a_manager_that_is_gone_is_no_error(tmp_path: Path) -> None:
    Notifier(str(tmp_path / "gone")).alive()
    Notifier().alive()


def test_a_manager_that_does_not_listen_holds_nobody_up(manager: tuple[str, socket.socket]) -> None:
    notifier = Notifier(manager[0])
    began = time.monotonic()
    while time.monotonic() - began < MOST_SECONDS:  # until its queue is full, and a message has waited in vain
        notifier.alive()
    assert time.monotonic() - began < 10
