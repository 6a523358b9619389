"""Every line of a log counts once, whatever rotation does to its file."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.sources.request_log.budget import Budget
from advisor.sources.request_log.files import open_log
from advisor.sources.request_log.follow_content import Contents
from advisor.sources.request_log.follow_file import FollowedFile
from tests.unit.sources.request_log.rotating_log import T0, Reader, RotatingLog, line


def once(lines: int) -> dict[int, int]:
    return dict.fromkeys(range(1, lines + 1), 1)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RotatingLog]:
    log = RotatingLog(tmp_path)
    yield log
    log.close()


def test_a_log_that_grows_is_read_on(log: RotatingLog) -> None:
    reader = Reader(log.path)
    for _ in range(3):
        log.append(2)
        reader.read()
    assert reader.counted == once(6)
    assert len(reader.cursors.files) == 1


def test_a_line_without_its_end_waits(log: RotatingLog) -> None:
    reader = Reader(log.path)
    log.append(1)
    log.append_half()
    reader.read()
    assert reader.counted == once(1)
    log.append(1)
    reader.read()
    assert reader.counted == once(2)


def test_the_renamed_file_is_finished_before_the_new_one(log: RotatingLog) -> None:
    reader = Reader(log.path)
    log.append(2)
    reader.read()
    log.append(1)
    log.rename()
    log.append(3)
    reader.read()
    assert reader.counted == once(6)


def test_a_compressed_file_is_read_on_from_where_the_plain_one_was_left(log: RotatingLog) -> None:
    reader = Reader(log.path)
    log.append(2)
    reader.read()
    log.append(3)
    log.rename(compress=True)
    log.append(1)
    reader.read()
    assert reader.counted == once(6)
    reader.read()
    assert reader.counted == once(6)


def test_the_rest_of_a_truncated_log_is_in_its_copy(log: RotatingLog) -> None:
    reader = Reader(log.path)
    log.append(2)
    reader.read()
    log.append(2)
    log.copy_truncate()
    log.truncate()
    log.append(1)
    reader.read()
    assert reader.counted == once(5)


def test_a_log_that_grew_between_copy_and_truncation_is_not_counted_again_from_the_copy(log: RotatingLog) -> None:
    reader = Reader(log.path)
    log.append(2)
    log.copy_truncate(grows=3)
    reader.read()  # sees five lines in the log and two of them in the copy
    log.truncate(compress=True)
    log.append(1)
    for _ in range(2):
        reader.read()
    assert reader.counted == once(6)


def test_a_truncated_log_that_has_grown_beyond_the_old_place_is_read_from_its_beginning(log: RotatingLog) -> None:
    reader = Reader(log.path)
    log.append(2)
    reader.read()
    log.truncate()
    log.append(5)
    reader.read()
    assert reader.counted == once(7)


def test_three_days_off(log: RotatingLog) -> None:
    reader = Reader(log.path)
    log.append(2)
    reader.read()
    log.append(2)
    for _ in range(3):
        log.rename()
        log.compress_all()
        log.append(4)
    reader.read()
    assert reader.counted == once(2 + 2 + 12)


def test_a_freed_inode_that_another_log_took_is_another_log(log: RotatingLog) -> None:
    reader = Reader(log.path)
    log.append(5)
    reader.read()
    inode = log.path.stat().st_ino
    # As if it had been deleted and its inode given to a new file: another content in place, of the same length.
    content = b"".join(line(serial, serial) for serial in (101, 102, 103, 104, 105))
    with log.path.open("r+b") as file:
        file.write(content)
        file.truncate()
    assert log.path.stat().st_ino == inode
    reader.read()
    assert reader.counted == once(5) | dict.fromkeys(range(101, 106), 1)


def test_two_logs_with_one_long_beginning_are_two_logs(tmp_path: Path) -> None:
    header = b"".join(b'{"comment": %d}\n' % n for n in range(100))
    for name, serial in (("a.log", 1), ("b.log", 2)):
        (tmp_path / name).write_bytes(header + line(serial, serial))
    reader = Reader(tmp_path, format="openai_gateway")
    reader.read()
    assert reader.counted == once(2)


def test_an_old_file_that_appears_is_read_within_reach(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "access.log-20261129.gz", "wb") as packed:
        packed.write(line(1, 0) + line(2, -86_400 * 3) + line(3, 10).rstrip())
    reader = Reader(tmp_path / "access.log")
    told = reader.read(reach_seconds=86_400)
    assert reader.counted == {1: 1, 3: 1}
    assert "1 outside the window" in told.state.detail


@pytest.mark.parametrize(
    "name",
    [
        *("access.log.1", "access.log.1.gz", "access.log.1.zst", "access.log-20261129", "access.log-20261129.zst"),
        *("access-20261129.log", "access-2026-11-29.log.gz", "access.1.log.zst", "access.log.2026-11-29_13"),
    ],
)
def test_what_rotation_made_of_a_log_is_found_and_not_counted_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / "access.log"
    pack: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstandard.compress}
    path.write_bytes(line(1) + line(2, 1))
    reader = Reader(path)
    reader.read()
    late = path.read_bytes() + line(3, 2)
    path.with_name(name).write_bytes(pack.get(name.rpartition(".")[2], bytes)(late))
    path.write_bytes(line(4, 3))
    # Another engine's log, though its name has a number too.
    (tmp_path / "access-8000.log").write_bytes(line(9))
    reader.read()
    assert reader.counted == once(4)


def test_files_from_before_the_reach_are_not_opened(log: RotatingLog) -> None:
    log.append(1)
    log.rename()
    log.append(1)
    os.utime(log.path.with_name("access.log.1"), (T0 - 2e6, T0 - 2e6))
    os.utime(log.path, (T0, T0))
    reader = Reader(log.path)
    assert reader.read().state.detail == "1 requests in 1 file"
    assert reader.counted == {2: 1}


def test_a_reading_is_bounded_and_says_that_it_is_behind(log: RotatingLog) -> None:
    log.append(60_000)  # 8.6 MB
    log.rename()
    log.append(1)
    reader = Reader(log.path)
    first = reader.read(budget_bytes=1 << 20)
    assert first.behind
    assert first.state.status == "partial"
    assert first.state.detail.endswith("behind: the rest is read next time")
    assert 20_000 < len(reader.counted) < 40_000  # one piece of 4 MiB at 143 bytes a line
    while reader.read(budget_bytes=1 << 20).behind:
        pass
    assert reader.counted == once(60_001)


def test_a_line_that_is_too_long_is_skipped_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(line(1) + b"x" * 3_000)
    reader = Reader(path, max_line_bytes=1024)
    reader.read()
    with path.open("ab") as file:
        file.write(b"y" * 5_000_000)
    reader.read()
    with path.open("ab") as file:
        file.write(b"\n" + line(2, 1))
    told = reader.read()
    assert reader.counted == once(2)
    assert told.state.detail == "1 requests in 1 file"


def test_a_file_of_no_known_format_is_named_and_read_once_it_can_be(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(b"starting\n")
    reader = Reader(path)
    assert "no known log format" in reader.read().state.detail
    with path.open("ab") as file:
        file.write(line(1))
    reader.read()
    assert reader.counted == once(1)


def test_the_format_of_a_file_is_remembered(log: RotatingLog) -> None:
    reader = Reader(log.path)
    log.append(1)
    reader.read()
    with log.path.open("ab") as file:
        file.write(b"not a request\n")
    told = reader.read()
    assert told.state.detail == "0 requests in 1 file (1 of 1 lines skipped: 1 not JSON)"


def test_a_compressed_file_that_is_still_written_is_read_as_far_as_it_is_there(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(line(serial, serial * 0.01) for serial in range(1, 20_001)))
    path = tmp_path / "access.log.1.gz"
    path.write_bytes(whole[: len(whole) // 2])
    reader = Reader(tmp_path / "access.log")
    assert "breaks off" in reader.read().state.detail
    assert 0 < len(reader.counted) < 20_000
    path.write_bytes(whole)
    reader.read()
    assert reader.counted == once(20_000)


def test_cursors_of_files_long_gone_are_forgotten(log: RotatingLog) -> None:
    reader = Reader(log.path)
    log.append(1)
    reader.read()
    log.path.unlink()
    reader.now += 29 * 86_400
    reader.read()
    assert len(reader.cursors.files) == 1
    reader.now += 2 * 86_400
    reader.read()
    assert not reader.cursors.files


def test_lines_are_told_by_the_hour_in_which_they_ended(log: RotatingLog) -> None:
    with log.path.open("ab") as file:
        file.write(line(1, 3599.5) + line(2, 3600) + line(3, 3600.5, model="other"))
    told = Reader(log.path, now=T0 + 2 * 3600).read()
    requests = {key: log.requests for key, log in told.slices.items()}
    assert requests == {("m", T0): 1, ("m", T0 + 3600): 1, ("other", T0 + 3600): 1}


def test_what_is_read_while_somebody_truncates_does_not_count(log: RotatingLog) -> None:
    log.append(3)
    with closing(open_log(log.path)) as stream:
        file = FollowedFile(stream)
        file.find(Contents([]))
        log.truncate()
        log.append(5)
        assert list(file.chunks(1 << 20, Budget(1 << 20))) == []
        assert file.cursor(T0, "") is None
        assert file.unread


OPERATIONS = ("append", "half", "read", "crash", "rename", "rename and compress", "copytruncate", "compress")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 40), st.integers(0, 2)), min_size=5, max_size=40),
    st.sampled_from([1 << 10, 1 << 14, 1 << 28]),
)
def test_every_line_counts_once_whatever_happens(steps: list[tuple[str, int, int]], budget: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log, reader = RotatingLog(Path(folder)), Reader(Path(folder) / "access.log")
        rotations = 0
        for name, size, reads in steps:
            if rotations and name in {"rename", "rename and compress", "copytruncate"}:
                # More rotations without a reading than files are kept lose lines for everybody.
                while reader.read(budget_bytes=budget).behind:
                    pass
            step(log, reader, name, size, reads, budget)
            rotations = (rotations + name.startswith(("rename", "copy"))) % 4
        while reader.read(budget_bytes=budget).behind:
            pass
        log.close()
        assert reader.counted == once(log.written)


def step(log: RotatingLog, reader: Reader, name: str, size: int, reads: int, budget: int) -> None:
    match name:
        case "append":
            log.append(size)
        case "half":
            log.append_half()
        case "read":
            reader.read(budget_bytes=budget)
        case "crash":
            reader.read_and_crash(budget_bytes=budget)
        case "compress":
            log.compress_all()
        case "copytruncate":
            log.copy_truncate()
            for _ in range(reads):
                reader.read(budget_bytes=budget)
            log.truncate(compress=size % 2 == 0)
        case _:
            log.rename(compress=name != "rename")
