"""Whole-program tests. Every tests/scripts/*.txt holds one run of the command, in one readable format:

    Any text until the command: what the script is about.
    $ advisor check --evidence chat.yaml -o json
    -- input chat.yaml --
    deployments: ...
    -- exit 0 --
    -- stdout --
    what is printed, exactly
    ...
    -- stderr --

The command runs without a shell in an empty folder that holds the inputs; `$ROOT` stands for the repository, in the
command and in what is printed. A line of three dots stands for any lines, or none. A section that is missing expects
exit code 0 and no output. `make snapshots` rewrites the expected sections of scripts that do not hold any more.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "tests" / "scripts").glob("*.txt"))
SECTION = re.compile(r"^-- (input (?P<file>[\w.-][\w./-]*)|exit (?P<code>\d+)|stdout|stderr) --\n", re.MULTILINE)
ANY_LINES = "..."
RUN_SECONDS = 120


@dataclass(frozen=True)
class Outcome:
    """What a run ends with."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Script:
    """A parsed script; `head` is everything before the expected sections, as it is written."""

    head: str
    command: list[str]
    inputs: dict[str, str]
    expected: Outcome


def parse(text: str) -> Script:
    """Read a script; a ValueError says what it lacks."""
    commands = re.findall(r"^\$ (advisor(?: .*)?)$", text, re.MULTILINE)
    if len(commands) != 1:
        raise ValueError(f"a script has one line that begins with '$ advisor', this one has {len(commands)}")
    sections = list(SECTION.finditer(text))
    strays = set(re.findall(r"^-- .* --\n", text, re.MULTILINE)) - {section[0] for section in sections}
    if strays:
        raise ValueError(f"not a section: {' '.join(sorted(strays)).strip()}")
    ends = [section.start() for section in sections[1:]] + [len(text)]
    bodies = {section[1]: text[section.end() : end] for section, end in zip(sections, ends, strict=True)}
    inputs = {name.removeprefix("input "): body for name, body in bodies.items() if name.startswith("input ")}
    codes = [int(section["code"]) for section in sections if section["code"]]
    expected = Outcome(codes[0] if codes else 0, bodies.get("stdout", ""), bodies.get("stderr", ""))
    head_ends = min((section.start() for section in sections if not section["file"]), default=len(text))
    return Script(text[:head_ends], shlex.split(commands[0]), inputs, expected)


def matches(expected: str, actual: str) -> bool:
    """True when the texts are equal, a line of three dots in `expected` standing for any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == ANY_LINES else re.escape(line) + "\n" for line in expected.splitlines())
    return re.fullmatch(pattern, actual if actual.endswith("\n") or not actual else actual + "\n") is not None


def run(script: Script, folder: Path) -> Outcome:
    """Run the command over its inputs in `folder`, in an environment of which nothing is inherited but the PATH."""
    for name, body in script.inputs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(body, encoding="utf-8")
    program = str(Path(sys.executable).parent / "advisor")
    command = [program, *(word.replace("$ROOT", str(ROOT)) for word in script.command[1:])]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TZ": "UTC", "LC_ALL": "C.UTF-8", "COLUMNS": "120"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    return Outcome(done.returncode, *(text.replace(str(ROOT), "$ROOT") for text in (done.stdout, done.stderr)))


def holds(expected: Outcome, actual: Outcome) -> bool:
    """True when a run ended as expected."""
    texts = ((expected.stdout, actual.stdout), (expected.stderr, actual.stderr))
    return expected.code == actual.code and all(matches(*pair) for pair in texts)


def written(script: Script, outcome: Outcome) -> str:
    """The script with `outcome` as what it expects."""
    text = f"{script.head}-- exit {outcome.code} --\n"
    for name, output in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        text += f"-- {name} --\n{output}" if output else ""
    return text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    script = parse(path.read_text(encoding="utf-8"))
    outcome = run(script, tmp_path)
    if request.config.getoption("update_snapshots"):
        if not holds(script.expected, outcome):
            path.write_text(written(script, outcome), encoding="utf-8")
        return
    assert holds(script.expected, outcome), f"{path.name} now ends with:\n{written(script, outcome)}"


EXAMPLE = """What it is about.
$ advisor check --evidence 'a file.yaml'
-- input a.yaml --
x: 1
-- exit 3 --
-- stdout --
one
...
-- stderr --
two
"""


def test_a_script_is_read() -> None:
    script = parse(EXAMPLE)
    assert script.command == ["advisor", "check", "--evidence", "a file.yaml"]
    assert script.inputs == {"a.yaml": "x: 1\n"}
    assert script.expected == Outcome(3, "one\n...\n", "two\n")


def test_a_rewritten_script_expects_what_was_seen() -> None:
    seen = Outcome(2, "", "wrong\n")
    rewritten = written(parse(EXAMPLE), seen)
    assert parse(rewritten).expected == seen
    assert rewritten.startswith(EXAMPLE[: EXAMPLE.index("-- exit")])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("$ ls\n-- stdout --\n", "one line that begins"),
        ("$ advisor\n-- stdot --\n", "not a section: -- stdot --"),
    ],
)
def test_a_script_that_cannot_be_meant_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(text)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\n", True),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nb\nc\n", False),
        ("a.c\n", "abc\n", False),
        ("", "a\n", False),
        ("a\n", "a", True),
    ],
)
def test_expected_text_is_matched(expected: str, actual: str, *, same: bool) -> None:
    assert matches(expected, actual) is same
