"""The SQLite file itself: found, checked, and every failure told in one line."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from advisor.domain.errors import StoreError

_BUSY_SECONDS = 10.0
_FILE_MODE = 0o660
_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full: nothing is recorded until there is room",
    sqlite3.SQLITE_READONLY: "may not be written: use an account of the service's group, or sudo",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check that it exists and that this account may read it",
    sqlite3.SQLITE_BUSY: f"is in use by another process for over {_BUSY_SECONDS:g} s: try again",
    sqlite3.SQLITE_NOTADB: "is not a store: move it away, or restore it from a backup; it was left as it is",
    sqlite3.SQLITE_CORRUPT: "is damaged: move it away, or restore it from a backup; it was left as it is",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk may be full or failing",
}


class Database:
    """A connection that several threads may share: each call and each transaction has it for itself."""

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self.path, self.readonly = path, readonly
        self._lock = threading.RLock()
        with told(path):
            self._connection = _readable(path) if readonly else _writable(path)

    def close(self) -> None:
        """Give the file back; a second time does nothing."""
        with self._lock, told(self.path):
            self._connection.close()

    def rows(self, statement: str, *values: object) -> list[sqlite3.Row]:
        """What a statement yields."""
        with self._lock, told(self.path):
            return self._connection.execute(statement, values).fetchall()

    def row(self, statement: str, *values: object) -> sqlite3.Row | None:
        """The first of what a statement yields."""
        found = self.rows(statement, *values)
        return found[0] if found else None

    def change(self, statement: str, *values: object) -> int:
        """Run one statement; how many rows it changed."""
        with self._lock, told(self.path):
            return self._connection.execute(statement, values).rowcount

    def insert(self, statement: str, *values: object) -> int:
        """Run one INSERT; the number of the new row."""
        with self._lock, told(self.path):
            return self._connection.execute(statement, values).lastrowid or 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; waits for other writers at its beginning, so that what it reads stays true."""
        with self._lock, told(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk has rolled back already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def copy_to(self, path: Path) -> None:
        """A consistent copy, complete when it is there at all."""
        partial = path.with_name(f"{path.name}.partial")
        with self._lock, told(partial):
            partial.unlink(missing_ok=True)
            create(partial)
            copy = sqlite3.connect(partial)
            try:
                self._connection.backup(copy)
            finally:
                copy.close()
            partial.replace(path)


def create(path: Path) -> None:
    """An empty file that the group may write, unless it is there. SQLite gives its own files the same mode."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _FILE_MODE)
    except FileExistsError:
        return
    try:
        os.fchmod(descriptor, _FILE_MODE)  # whatever the umask is
    finally:
        os.close(descriptor)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system raise into a StoreError."""
    try:
        yield
    except sqlite3.Error as problem:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        raise StoreError(f"{path}: {_ADVICE.get(code, problem)}") from problem
    except OSError as problem:
        raise StoreError(f"{path}: {problem.strerror}: check the directory and its permissions") from problem


def _writable(path: Path) -> sqlite3.Connection:
    create(path)
    connection = _connected(path, "rw")
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        # A report that is noted as sent must still be so after a power failure, or it is sent twice.
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _readable(path: Path) -> sqlite3.Connection:
    at_rest = not path.with_name(f"{path.name}-wal").exists()
    if at_rest and not os.access(path.parent, os.W_OK):
        # SQLite cannot read without files of its own, unless nobody writes: as in a backup on a read-only disk.
        return _connected(path, "ro&immutable=1")
    # A connection that may write takes its files away again at the end; SQLite's `ro` leaves them behind.
    connection = _connected(path, "rw")
    try:
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.row_factory = sqlite3.Row
    return connection
