"""One process a store: a second one would work as if the first were not there."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.domain.errors import StoreError


@contextmanager
def alone(store: Path) -> Iterator[None]:
    """Hold the lock beside the store until the block ends. Raises StoreError where another process holds it."""
    path = store.with_name(f"{store.name}.lock")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o660)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}: create the directory, or name one that exists") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise StoreError(f"{store}: another process works with it: stop that one first") from None
    try:
        yield
    finally:
        os.close(descriptor)
