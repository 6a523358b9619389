"""Finding, making, migrating and refusing the file."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from advisor.domain.errors import StoreError
from advisor.store import Store
from advisor.store.database import Database
from advisor.store.migration import migrate, shipped
from tests.unit.store.test_memory import RECORD

NOW = max(shipped())
NEWER = shipped() | {
    NOW + 1: "CREATE TABLE later (x); INSERT INTO later VALUES (';');",
    NOW + 2: "ALTER TABLE later ADD y;",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "advisor.db"


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


def version(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        (found,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(found)


def test_a_new_store_is_writable_for_the_group_whatever_the_umask(path: Path, umask: None) -> None:
    store = Store.open(path)
    store.begin_run("gather", 1.0)
    assert names(path) == ["advisor.db", "advisor.db-shm", "advisor.db-wal"]
    assert {mode(file) for file in path.parent.iterdir()} == {0o660}
    store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes other users' ids")
def test_an_account_of_the_group_writes_without_locking_the_daemon_out(path: Path, umask: None) -> None:
    path.parent.chmod(0o2770)
    os.chown(path.parent, 4001, 4000)
    Store.open(path).close()
    os.chown(path, 4001, 4000)
    for parent in path.parents[1:-2]:
        parent.chmod(0o755)
    script = (
        "import os, sys, pathlib; from advisor.store import Store\n"
        "os.setgroups([4000]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2])); os.umask(0o077)\n"
        "store = Store.open(pathlib.Path(sys.argv[1])); store.begin_run('gather', 1.0)\n"
        "for file in sorted(pathlib.Path(sys.argv[1]).parent.iterdir()):\n"
        "    print(file.name, oct(file.stat().st_mode)[-3:], file.stat().st_gid)\n"
        "store.close()"
    )
    for account in ("4002", "4001"):  # somebody on call, then the daemon
        run = subprocess.run([sys.executable, "-c", script, path, account], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        assert run.stdout.strip() == "\n".join(f"advisor.db{end} 660 4000" for end in ("", "-shm", "-wal"))
    store = Store.open(path, readonly=True)
    assert len(store.last_runs()) == 2
    store.close()


def test_reading_makes_no_files(path: Path) -> None:
    with pytest.raises(StoreError, match=r"advisor\.db: cannot be opened: check that it exists"):
        Store.open(path, readonly=True)
    assert names(path) == []
    Store.open(path).close()
    store = Store.open(path, readonly=True)
    assert store.latest_report() is None
    store.close()
    assert names(path) == ["advisor.db"]


def test_reading_does_not_write(path: Path) -> None:
    writer = Store.open(path)
    reader = Store.open(path, readonly=True)
    with pytest.raises(StoreError, match="may not be written"):
        reader.begin_run("gather", 1.0)
    reader.close()
    writer.close()


def test_an_older_store_is_migrated_after_a_copy(path: Path) -> None:
    store = Store.open(path)
    store.begin_run("gather", 1.0)
    store.close()
    database = Database(path, readonly=False)
    migrate(database, NEWER)
    assert [tuple(row) for row in database.rows("SELECT x, y FROM later")] == [(";", None)]
    assert database.row("SELECT count(*) FROM run") is not None
    database.close()
    copy = path.with_name(f"advisor.db.version-{NOW}")
    assert names(path) == ["advisor.db", copy.name]
    assert (version(path), version(copy), mode(copy)) == (NOW + 2, NOW, 0o660)
    restored = Store.open(copy)
    assert len(restored.last_runs()) == 1
    restored.close()


def test_a_store_of_the_first_version_opens_with_all_it_held(path: Path) -> None:
    """As the first release left it: its record has a score without `hours`, and there is no table of hours."""
    database = Database(path, readonly=False)
    migrate(database, {1: shipped()[1]})
    score = asdict(RECORD.scores[0])
    del score["hours"]
    body = json.dumps(asdict(RECORD) | {"scores": [score]})
    database.change("INSERT INTO advice VALUES (?, ?, ?, ?, ?, ?)", "chat", "a", 1.0, 1.0, "verified", body)
    database.close()
    with pytest.raises(StoreError, match="is of an older version: restart the daemon"):
        Store.open(path, readonly=True)
    store = Store.open(path)
    assert store.records() == (RECORD,)
    assert store.hours("chat", 0.0) == ()
    store.close()
    copy = path.with_name("advisor.db.version-1")
    assert (version(path), version(copy)) == (NOW, 1)


def test_a_migration_that_fails_leaves_the_version_before(path: Path) -> None:
    Store.open(path).close()
    database = Database(path, readonly=False)
    with pytest.raises(StoreError, match="no such table: nowhere"):
        migrate(database, shipped() | {NOW + 1: "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);"})
    assert database.row("SELECT 1 FROM sqlite_master WHERE name = 'half'") is None
    database.close()
    Store.open(path).close()
    assert version(path) == NOW


@pytest.mark.parametrize("readonly", [False, True])
def test_a_newer_store_is_refused_and_left_alone(path: Path, readonly: bool) -> None:
    database = Database(path, readonly=False)
    migrate(database, NEWER)
    database.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"newer version of the advisor \({NOW + 2}, this one knows {NOW}\)"):
        Store.open(path, readonly=readonly)
    assert path.read_bytes() == before


@pytest.mark.parametrize("readonly", [False, True])
def test_another_file_is_refused_and_left_alone(path: Path, readonly: bool) -> None:
    path.write_bytes(b"not a database, but long enough to be looked at " * 100)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is not a store"):
        Store.open(path, readonly=readonly)
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE cookies (x)")
    connection.close()
    with pytest.raises(StoreError, match="is a database of another program"):
        Store.open(path)


def test_a_damaged_store_is_refused_and_left_alone(path: Path) -> None:
    store = Store.open(path)
    for at in range(500):
        store.save_report(float(at), "x" * 1000, {"chat": {"ttft_p99": 1.0}})
    store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 8 :] = b"\xff" * (len(content) - 4096 * 8)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged: move it away, or restore it from a backup"):
        Store.open(path)
    assert path.read_bytes() == content


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file or directory: check the directory"):
        Store.open(tmp_path / "nowhere" / "advisor.db")


def test_readers_see_whole_commits_while_somebody_writes(path: Path) -> None:
    writer = Store.open(path)
    writer.save_report(0.0, "0", {})
    seen: list[tuple[float, str]] = []

    def read() -> None:
        reader = Store.open(path, readonly=True)
        while not seen or seen[-1][1] != "200":
            latest = reader.latest_report()
            assert latest is not None
            seen.append(latest)
        reader.close()

    thread = threading.Thread(target=read)
    thread.start()
    for at in range(1, 201):
        writer.save_report(float(at), str(at), {})
    thread.join(30)
    assert not thread.is_alive()
    assert all(at == float(document) for at, document in seen)
    assert seen == sorted(seen)
    writer.close()


def test_a_full_disk_stops_the_recording_and_nothing_else(path: Path) -> None:
    store = Store.open(path)
    store.save_report(1.0, "small", {})
    store._database.rows("PRAGMA max_page_count = 40")
    big = os.urandom(200_000).hex()
    with pytest.raises(StoreError, match="the disk is full: nothing is recorded until there is room"):
        store.save_report(2.0, big, {})
    assert store.latest_report() == (1.0, "small")
    store._database.rows("PRAGMA max_page_count = 1000000")
    store.save_report(3.0, big, {})
    assert store.latest_report() == (3.0, big)
    store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_file_system_without_room(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path], check=False)
    if mounted.returncode:
        pytest.skip("may not mount")
    try:
        store = Store.open(tmp_path / "advisor.db")
        store.save_report(1.0, "small", {})
        with pytest.raises(StoreError, match=r"the disk is full|may be full"):
            store.save_report(2.0, os.urandom(400_000).hex(), {})
        assert store.latest_report() == (1.0, "small")
        store.save_report(3.0, "small again", {})
        store.close()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes other users' ids")
def test_somebody_who_may_only_read_can_read(path: Path) -> None:
    store = Store.open(path)
    store.save_report(1.0, "document", {})
    store.close()
    path.chmod(0o644)
    for parent in path.parents[:-2]:
        parent.chmod(0o755)
    script = (
        "import os, sys, pathlib; from advisor.store import Store\n"
        "os.setgroups([]); os.setgid(4003); os.setuid(4003)\n"
        "store = Store.open(pathlib.Path(sys.argv[1]), readonly=True); print(store.latest_report()); store.close()"
    )
    run = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "(1.0, 'document')", run.stderr
    assert names(path) == ["advisor.db"]
