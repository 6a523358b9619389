"""What holds for the project as a whole: its files, its package, and what its command loads."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import advisor
from tests.conftest import absent

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "advisor").rglob("*.py"))
LONGEST_FILE_LINES = 400

# Written in pieces, so that this file does not hold what it looks for.
FORBIDDEN = ("/wo" + "rk/", "/fa" + "rm", "." + "library", "fleet" + "sim", "../" + "shared")

SLOW_TO_LOAD = {"pandas", "scipy", "matplotlib", "slack_sdk", "requests"}
LOADED_BY = """
import json, sys
from advisor.cli import main
sys.argv = ["advisor", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    print(json.dumps([end.code, sorted(sys.modules)]), file=sys.stderr)
"""


def project_files() -> Iterator[Path]:
    """What is in the repository or would be after `git add`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return (ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file())


def test_the_newest_changelog_entry_is_the_version() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == advisor.__version__


def test_no_file_mentions_the_machine_it_was_written_on() -> None:
    files = list(project_files())
    mentions = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in files
        for word in FORBIDDEN
        if word.encode() in path.read_bytes()
    ]
    assert len(files) > 20
    assert mentions == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_files_are_short_and_say_what_they_are_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= LONGEST_FILE_LINES
    assert ast.get_docstring(ast.parse(text)) is not None


def test_the_wheel_carries_rules_and_configuration(tmp_path: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        absent("uv builds the wheel; `make setup` installs it")
    command = [str(uv), "build", "--wheel", "--out-dir", str(tmp_path), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if re.search("dns error|error sending request|Failed to fetch", built.stderr):
        absent("the build backend cannot be downloaded: no network")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    # The demo plays a recording with tools of the checkout, so it stays there.
    folders = ("rules", "config/examples", "systemd")
    shipped = {path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()}
    shipped.add(ROOT / "config" / "advisor.schema.json")
    assert packed >= {f"advisor/_data/{path.relative_to(ROOT).as_posix()}" for path in shipped}


@pytest.mark.parametrize("arguments", [["--version"], ["check", "--help"]], ids=" ".join)
def test_answers_that_need_no_evidence_load_no_heavy_library(arguments: list[str]) -> None:
    command = [sys.executable, "-c", LOADED_BY, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip(), done.stderr
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0
    assert SLOW_TO_LOAD.isdisjoint(modules)
