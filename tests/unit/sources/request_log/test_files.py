from __future__ import annotations

import gzip
import io
import itertools
import os
import tempfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from advisor.sources.request_log.files import LineBlocks, log_files, open_log, shown


def lines_of(content: bytes, max_line_bytes: int) -> tuple[list[bytes], int]:
    blocks = LineBlocks(io.BytesIO(content), max_line_bytes)
    return b"".join(blocks).split(b"\n")[:-1], blocks.too_long


@given(st.lists(st.binary(max_size=60).map(lambda b: b.replace(b"\n", b"")), min_size=1), st.integers(1, 40))
def test_it_drops_long_lines_and_no_others(lines: list[bytes], limit: int) -> None:
    content = b"\n".join(lines)
    read, too_long = lines_of(content, limit)
    # An empty piece after the last newline is no line.
    expected = lines if lines[-1] else lines[:-1]
    assert read == [line for line in expected if len(line) <= limit]
    assert too_long == sum(len(line) > limit for line in expected)


def test_a_line_without_end_is_not_held() -> None:
    class Endless(io.RawIOBase):
        left = 100 << 20

        def read1(self, size: int = -1, /) -> bytes:
            self.left -= size
            return b"x" * size if self.left > 0 else b""

    blocks = LineBlocks(Endless(), 1 << 20)
    assert list(blocks) == []
    assert blocks.too_long == 1


def test_it_finds_files_once_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.jsonl", "a.jsonl", "deep/c.jsonl", ".hidden"):
        (tmp_path / name).write_text("x")
    (tmp_path / "current").symlink_to(tmp_path / "b.jsonl")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    files, problems = log_files([str(tmp_path), str(tmp_path / "*.jsonl")])
    assert [file.name for file in files] == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert problems == []


def test_a_path_to_nothing_is_told(tmp_path: Path) -> None:
    files, problems = log_files([str(tmp_path / "*.jsonl")])
    assert files == []
    assert problems == [f"{shown(tmp_path / '*.jsonl')}: no such file; check the path or glob"]


def test_it_tells_gzip_by_content(tmp_path: Path) -> None:
    path = tmp_path / "no-suffix"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    stream = open_log(path)
    assert b"".join(LineBlocks(stream, 100)) == b"one\ntwo\n"
    stream.close()


def test_it_tells_zstd_by_content(tmp_path: Path) -> None:
    path = tmp_path / "no-suffix"
    path.write_bytes(zstandard.compress(b"one\n") + zstandard.compress(b"") + zstandard.compress(b"two\n"))
    stream = open_log(path)
    assert b"".join(LineBlocks(stream, 100)) == b"one\ntwo\n"
    stream.close()


@given(
    content=st.binary(max_size=300).map(lambda piece: piece * 50),
    cuts=st.lists(st.integers(1, 15_000), max_size=3),
    places=st.lists(st.integers(0, 20_000), max_size=5),
)
def test_a_zstd_file_can_be_read_from_any_place(content: bytes, cuts: list[int], places: list[int]) -> None:
    edges = [0, *sorted(cuts), len(content)]
    parts = [content[start:end] for start, end in itertools.pairwise(edges)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.zst")
        path.write_bytes(b"".join(zstandard.compress(part) for part in parts) or zstandard.compress(b""))
        stream = open_log(path)
        for place in [*places, 0]:
            assert stream.seek(place) == min(place, len(content))
            assert b"".join(iter(lambda: stream.read1(1000), b"")) == content[place:]
        stream.close()


def test_a_zstd_file_that_breaks_off_says_so(tmp_path: Path) -> None:
    content = os.urandom(5000) + b"\n"
    path = tmp_path / "log.zst"
    path.write_bytes(zstandard.compress(content)[:-1])
    stream = open_log(path)
    with pytest.raises(EOFError):
        list(LineBlocks(stream, 100_000))
    stream.close()


def test_a_damaged_zstd_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log.zst"
    path.write_bytes(zstandard.compress(b"x" * 100)[:4] + b"\xff" * 50)
    stream = open_log(path)
    with pytest.raises(OSError, match="damaged zstd"):
        stream.read1(10)
    stream.close()


def test_it_opens_regular_files_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_log(tmp_path / "pipe")


def test_paths_are_shown_on_one_line() -> None:
    assert shown("a\nb\x1b[31m") == "a?b?[31m"
    assert len(shown("x" * 5000)) == 100
