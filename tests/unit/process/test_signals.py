"""Real signals, sent to this process."""

from __future__ import annotations

import os
import signal
import threading
import time

from advisor.process.signals import caught


def test_a_signal_ends_the_wait_and_is_told_once() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    with caught(signal.SIGUSR1, signal.SIGUSR2) as signals:
        began = time.monotonic()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert signals.wait(30) == {signal.SIGUSR1}
        assert time.monotonic() - began < 10
        assert signals.wait(0) == frozenset()
    assert signal.getsignal(signal.SIGUSR1) is before


def test_signals_that_come_together_are_told_together() -> None:
    with caught(signal.SIGUSR1, signal.SIGUSR2) as signals:
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1):
            os.kill(os.getpid(), number)
        assert signals.wait(30) == {signal.SIGUSR1, signal.SIGUSR2}


def test_without_a_signal_the_wait_ends_by_itself() -> None:
    with caught(signal.SIGUSR1) as signals:
        assert signals.wait(0.05) == frozenset()
