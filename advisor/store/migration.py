"""The shape of the store over versions: numbered SQL files, each applied once, whole, after a copy was made."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

from advisor.domain.errors import StoreError

from .database import Database

APPLICATION_ID = 0x41445652
"""`ADVR`: tells a store from the databases of other programs."""

_FOLDER = Path(__file__).with_name("migrations")


def shipped() -> dict[int, str]:
    """The migrations of this version of the program, by the version of the store that they lead to."""
    return {int(file.name[:4]): file.read_text(encoding="utf-8") for file in sorted(_FOLDER.glob("*.sql"))}


def migrate(database: Database, migrations: Mapping[int, str]) -> None:
    """Bring a store to the newest of `migrations`. Raises StoreError for one that is newer, damaged or not a store."""
    version = checked_version(database, newest=max(migrations))
    damage = database.row("PRAGMA quick_check(1)")
    if damage is None or damage[0] != "ok":
        raise StoreError(
            f"{database.path}: is damaged: move it away, or restore it from a backup; it was left as it is"
        )
    if version == max(migrations):
        return
    if version:
        database.copy_to(database.path.with_name(f"{database.path.name}.version-{version}"))
    else:
        database.rows("PRAGMA journal_mode = WAL")
    for number in sorted(n for n in migrations if n > version):
        _apply(database, number, migrations[number])


def checked_version(database: Database, *, newest: int) -> int:
    """The version of a store that this program can read; 0 is a store that is empty yet. Raises StoreError."""
    application, version = _number(database, "application_id"), _number(database, "user_version")
    empty = database.row("SELECT 1 FROM sqlite_master") is None
    if application != APPLICATION_ID and not (empty and version == 0):
        raise StoreError(f"{database.path}: is a database of another program; name another path (store.path)")
    if version > newest:
        raise StoreError(
            f"{database.path}: was written by a newer version of the advisor ({version}, this one knows {newest}): "
            "install that version, or name another path (store.path); it was left as it is"
        )
    return version


def _number(database: Database, pragma: str) -> int:
    row = database.row(f"PRAGMA {pragma}")
    return int(row[0]) if row else 0


def _apply(database: Database, number: int, script: str) -> None:
    with database.transaction():
        # Another process may have been faster.
        if _number(database, "user_version") >= number:
            return
        for statement in _statements(script):
            database.change(statement)
        database.change(f"PRAGMA user_version = {number}")
        database.change(f"PRAGMA application_id = {APPLICATION_ID}")


def _statements(script: str) -> list[str]:
    """Statements one by one: `executescript` would commit between them."""
    statements, pending = [], ""
    for part in script.split(";"):
        pending += part + ";"
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements
