"""A real journal, written by a real journald: `engine` logged as sglang.service and then as sglang2.service.

The first unit wrote its start, five finished requests, one whose text is not UTF-8, a decode batch, and one of 20 KB;
the second wrote two finished requests. Prompts have 1,000, 1,001, ... tokens, and every answer has 7.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from pydantic import ValidationError

from advisor.domain.cursor import Cursors
from advisor.domain.evidence import Window
from advisor.sources.request_log import Followed, LogOptions, follow, read_request_logs
from advisor.sources.request_log.journal import _FORBIDDEN, JournalReading, JournalStream
from tests.conftest import absent

PACKED = Path(__file__).parents[3] / "captures/journal/system.journal.zst"
WRITTEN = 1_795_990_052.43  # UNIX seconds, as `journalctl -o short-unix` shows
PROMPTS = list(range(1000, 1009))


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    if shutil.which("journalctl") is None:
        absent("journalctl, of Debian's package systemd")
    folder = tmp_path / "journal"
    folder.mkdir()
    with PACKED.open("rb") as packed, (folder / "system.journal").open("wb") as unpacked:
        zstandard.ZstdDecompressor().copy_stream(packed, unpacked)
    return folder


def options(folder: Path, *paths: Path, **more: object) -> LogOptions:
    journal = {"units": ["sglang.service", "sglang2.service"], "directory": str(folder)}
    return LogOptions.model_validate({"paths": list(map(str, paths)), "journal": journal, "aliases": {"": "m"}, **more})


def read_on(given: LogOptions, cursors: Cursors, **more: int) -> Followed:
    return follow(given, cursors, lambda model, _: model, lambda _: 0.0, WRITTEN + 60, **more)


def counted(followed: Followed) -> dict[int, int]:
    counts: dict[int, int] = {}
    for log in followed.slices.values():
        for prompt, count in zip(log.served.prompt.tolist(), log.served.counts.tolist(), strict=True):
            counts[prompt] = counts.get(prompt, 0) + count
    return counts


def test_it_reads_what_units_logged(journal: Path) -> None:
    window = Window(WRITTEN - 3600, WRITTEN + 3600)
    reading = read_request_logs(options(journal), window, lambda model, _: model, lambda _: 0.0)
    log = reading.logs["m"]
    assert log.served.prompt.tolist() == PROMPTS
    assert log.served.output.tolist() == [7] * 9
    # 13:46 stands in the lines; the journal took them down at 22:07 UTC, and its clock has a zone.
    assert (log.first_seconds, log.last_seconds) == pytest.approx((WRITTEN, WRITTEN), abs=2)
    assert reading.state.status == "ok"
    assert reading.state.detail == "9 requests in the journal (not used: 2 about no finished request)"


def test_it_reads_each_entry_once(journal: Path) -> None:
    given, cursors = options(journal), Cursors()
    first = read_on(given, cursors)
    assert counted(first) == dict.fromkeys(PROMPTS, 1)
    assert [cursor.format for cursor in first.cursors.streams] == ["sglang", "sglang"]
    again = read_on(given, first.cursors)
    assert counted(again) == {}
    assert again.cursors == first.cursors
    # A crash before the commit: the cursors of before, and so the same again.
    assert counted(read_on(given, cursors)) == counted(first)


def test_a_reading_is_bounded_and_goes_on_where_it_ended(journal: Path) -> None:
    given, cursors, counts = options(journal), Cursors(), dict.fromkeys(PROMPTS, 0)
    readings = 0
    while True:
        told = read_on(given, cursors, budget_bytes=1)
        cursors, readings = told.cursors, readings + 1
        for prompt, count in counted(told).items():
            counts[prompt] += count
        if not told.behind:
            break
    assert counts == dict.fromkeys(PROMPTS, 1)
    assert readings > 1


def test_a_place_that_journald_does_not_know_is_replaced_by_its_time(journal: Path) -> None:
    given = options(journal)
    first = read_on(given, Cursors())
    lost = tuple(replace(cursor, place="garbage") for cursor in first.cursors.streams)
    told = read_on(given, Cursors(streams=lost))
    assert "journal of sglang.service: journalctl: Failed to seek to cursor" in told.state.detail
    assert [cursor.place for cursor in told.cursors.streams] == ["", ""]
    assert counted(read_on(given, told.cursors)) == {}


def test_files_and_the_journal_are_read_together(journal: Path, tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    usage = '"usage": {"prompt_tokens": 5, "completion_tokens": 7}'
    path.write_text(f'{{"ts": {WRITTEN}, "model": "m", "status": 200, {usage}}}\n')
    told = read_on(options(journal, path), Cursors())
    assert counted(told) == dict.fromkeys([5, *PROMPTS], 1)
    assert told.state.detail.startswith("10 requests in 1 file and the journal")


def test_long_messages_are_skipped_and_counted(journal: Path) -> None:
    told = read_on(options(journal, max_line_bytes=4096), Cursors())
    assert sorted(counted(told)) == [p for p in PROMPTS if p != 1006]
    assert "1 over 0.00390625 MiB" in told.state.detail


def test_messages_of_no_known_format_wait(journal: Path) -> None:
    told = read_on(options(journal, format="litellm"), Cursors())
    assert told.state.status == "failed"
    unknown = LogOptions.model_validate({"journal": {"units": ["test.target"], "directory": str(journal)}})
    waiting = read_on(unknown, Cursors())
    assert waiting.cursors.streams == ()


def test_it_says_what_journalctl_said(journal: Path) -> None:
    gone = LogOptions.model_validate({"journal": {"identifiers": ["x"], "directory": "/nonexistent"}})
    state = read_on(gone, Cursors()).state
    assert state.status == "failed"
    assert "journal of x: journalctl: Failed to open /nonexistent: No such file or directory" in state.detail


def test_a_unit_that_never_logged_is_told(journal: Path) -> None:
    wrong = LogOptions.model_validate({"journal": {"units": ["sglan.service"], "directory": str(journal)}})
    state = read_on(wrong, Cursors()).state
    assert state.status == "failed"
    assert "journal of sglan.service: no messages; check the name" in state.detail


def test_whoever_may_not_read_the_journal_is_told_how_to(journal: Path) -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        absent("setpriv, of Debian's package util-linux")
    (journal / "system.journal").chmod(0o600)
    for folder in [journal, *journal.parents][:4]:
        folder.chmod(0o755)
    nobody = [str(setpriv), "--reuid=65534", "--regid=65534", "--clear-groups", "journalctl"]
    refused = subprocess.run(
        [*nobody, *JournalStream("unit", "x", journal).arguments("", 0.0)], capture_output=True, text=True, check=False
    )
    if "setpriv" in refused.stderr:
        absent("the right to become another user")
    assert any(words in refused.stderr for words in _FORBIDDEN)
    reading = JournalReading(JournalStream("unit", "x"), after="", since=0.0, max_line_bytes=1024)
    reading._hear(refused.returncode, refused.stderr)
    assert "add the account to the group systemd-journal" in reading.problem


def test_a_unit_on_the_command_line() -> None:
    given = LogOptions.model_validate({"paths": ["journal:sglang.service", "/var/log/x"]})
    assert given.paths == ("/var/log/x",)
    assert given.journal is not None
    assert [stream.key for stream in given.journal.streams] == ["unit=sglang.service"]
    with pytest.raises(ValidationError, match="name `units` or `identifiers`"):
        LogOptions.model_validate({"journal": {}})
    with pytest.raises(ValidationError, match="name `paths` of files, or a `journal`, or `loki`"):
        LogOptions.model_validate({})
    with pytest.raises(ValidationError, match="is no name of a unit"):
        LogOptions.model_validate({"paths": ["journal:a\nb"]})


def test_a_name_with_a_dash_is_no_option() -> None:
    assert "--unit=--flush" in JournalStream("unit", "--flush").arguments("", 0.0)
