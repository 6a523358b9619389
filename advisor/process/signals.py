"""Signals as something to wait for. Handlers that take locks can meet themselves; these only note a number."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


class Signals:
    """The signals that arrived and were not asked for yet. For the main thread only."""

    def __init__(self, receiver: socket.socket) -> None:
        self._receiver = receiver
        self._arrived: set[int] = set()

    def wait(self, seconds: float) -> frozenset[int]:
        """Those that arrived since the last call; returns early when one does."""
        select.select([self._receiver], [], [], seconds)
        with suppress(BlockingIOError):
            self._receiver.recv(4096)
        arrived = frozenset(self._arrived)
        self._arrived -= arrived
        return arrived

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._arrived.add(number)


@contextmanager
def caught(*numbers: int) -> Iterator[Signals]:
    """Catch these signals until the block ends, instead of what was done with them before."""
    receiver, sender = socket.socketpair()
    with receiver, sender:
        for end in (receiver, sender):
            end.settimeout(0)
        signals = Signals(receiver)
        # Python writes a byte for each signal at once, which ends the wait; the handler runs soon after.
        wakeup = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, signals._note) for number in numbers}  # noqa: SLF001
        try:
            yield signals
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
