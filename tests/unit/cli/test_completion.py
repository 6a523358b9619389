"""What a shell asks for when somebody presses the tab key, asked of the real program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.cli import COMMANDS

ADVISOR = str(Path(sys.executable).with_name("advisor"))


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script_that_asks_the_program(shell: str) -> None:
    script = run(ADVISOR, "completion", shell)
    assert f"_ADVISOR_COMPLETE={shell}_complete" in script
    if shutil.which(shell):
        run(shell, "-n", "-c", script)


def test_commands_are_offered() -> None:
    offered = run(ADVISOR, _ADVISOR_COMPLETE="bash_complete", COMP_WORDS="advisor ", COMP_CWORD="1")
    assert {line.partition(",")[2] for line in offered.splitlines()} == set(COMMANDS)


def test_options_are_offered() -> None:
    words = {"COMP_WORDS": "advisor run --c", "COMP_CWORD": "2"}
    assert run(ADVISOR, _ADVISOR_COMPLETE="bash_complete", **words) == "plain,--config\n"
