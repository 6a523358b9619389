"""An engine's own log out of a real journal."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import zstandard

from advisor.domain.errors import SourceError
from advisor.sources.engine_log import engine_lines
from advisor.sources.startup_log import read_startup_log
from tests.conftest import absent

PACKED = Path(__file__).parents[2] / "captures/journal/system.journal.zst"
WRITTEN = 1_795_990_052.43  # UNIX seconds, as `journalctl -o short-unix` shows
UNIT = Path("journal:sglang.service")


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    if shutil.which("journalctl") is None:
        absent("journalctl, of Debian's package systemd")
    with PACKED.open("rb") as packed, (tmp_path / "system.journal").open("wb") as unpacked:
        zstandard.ZstdDecompressor().copy_stream(packed, unpacked)
    return tmp_path


def test_a_units_messages_stand_behind_the_time_they_were_taken_down(journals: Path) -> None:
    (line,) = engine_lines(UNIT, re.compile(rb"server_args="), 0.0, journals)
    seconds, _, message = line.partition(b" ")
    assert float(seconds) == pytest.approx(WRITTEN, abs=1)
    assert message == b"[2026-11-29 13:46:00] server_args=ServerArgs(model_path='m')"
    assert list(engine_lines(UNIT, re.compile(rb"server_args="), WRITTEN + 60, journals)) == []


def test_a_start_is_read_out_of_the_journal(journals: Path) -> None:
    facts = read_startup_log(UNIT, 0.0, journals)
    assert (facts.engine, facts.model) == ("sglang", "m")


def test_a_unit_without_any_line_is_said_to_be_called_otherwise_or_not_readable(journals: Path) -> None:
    with pytest.raises(SourceError, match=r"journal:vllm\.service: the journal shows no line .*group systemd-journal"):
        read_startup_log(Path("journal:vllm.service"), 0.0, journals)


def test_a_journal_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"journal of sglang\.service: "):
        list(engine_lines(UNIT, re.compile(rb"x"), 0.0, tmp_path / "gone"))
