"""The command line as a process: errors in one line, exit codes, and a world that does not cooperate."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from socket import socket

import pytest

from advisor import rule_pack
from advisor.cli import main

pytestmark = pytest.mark.slow

ADVISOR = Path(sys.executable).parent / "advisor"
EXAMPLE = str(rule_pack.shipped_directory("config") / "examples" / "chat-70b.yaml")
HOSTILE = """deployments:
  "模型 <!channel>": {flags: {max_num_seqs: 8}, facts: {running_p95: 8}}
"""


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ADVISOR_", "PYTHON", "LC_"))}
    return subprocess.run([ADVISOR, *arguments], env=clean | variables, capture_output=True, timeout=120, check=False)


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    path = tmp_path / "fleet.yaml"
    path.write_text(HOSTILE, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["check", "--set", "max_num_seqs"], "--set 'max_num_seqs': write FLAG=VALUE or DEPLOYMENT:FLAG=VALUE"),
        (["check", "--set", ":max_num_seqs=5"], "--set ':max_num_seqs=5': write FLAG=VALUE or DEPLOYMENT:FLAG=VALUE"),
        (["check", "--set", "max_num_seqs=many"], "--set 'max_num_seqs=many': 'many' is not a quantity in tokens"),
        (["check", "--since", "0s"], "setting since: Input should be greater than 0"),
        (["check", "--until", "nan"], "--until 'nan': give ISO-8601 (2026-11-29T16:00:00Z) or UNIX seconds"),
        (["check", "--until", "inf"], "--until 'inf': give ISO-8601 (2026-11-29T16:00:00Z) or UNIX seconds"),
        (["check", "--until", "2026"], "--until '2026': give ISO-8601 (2026-11-29T16:00:00Z) or UNIX seconds"),
        (
            ["check", "--until", "1796054400000"],
            "--until '1796054400000': give ISO-8601 (2026-11-29T16:00:00Z) or UNIX seconds",
        ),
        (
            ["check", "--prometheus", "p:9090"],
            "setting prometheus.url: must be an address such as http://prometheus:9090",
        ),
        (["check", "--evidence", "none.yaml"], "none.yaml: no such file"),
        (["check", "--rules", "none"], "none: no such directory of rules: give one with --rules DIR"),
        (["check", "-o", "xml"], "Invalid value for '-o' / '--output': 'xml' is not one of "),
        (["chekc"], "No such command 'chekc'"),
        (
            ["explain", "cap-pinned-cache"],
            "no rule or fact is called 'cap-pinned-cache'; did you mean 'cap-pinned-cache-free'?",
        ),
        (["config", "check", "none.yaml"], "none.yaml: no such file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_is_one_line_on_stderr(
    arguments: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["advisor", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    assert end.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith(f"advisor: {line}")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_an_output_that_cannot_show_a_name_is_no_reason_to_stop(hostile: str, encoding: str) -> None:
    done = run("check", "--evidence", hostile, "-o", "json", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"<!channel>" in done.stdout


def test_a_terminal_without_a_locale(hostile: str) -> None:
    done = run(
        "check", "--evidence", hostile, "--deployment", "模", LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0"
    )
    assert done.returncode == 3
    assert done.stderr.startswith(b"advisor: no deployment is called ")


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    with subprocess.Popen([ADVISOR, "config", "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
        assert (process.wait(timeout=60), told) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([ADVISOR, "rules", "list"], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == b"advisor: standard output cannot be used: No space left on device\n"


def test_without_a_standard_output_it_still_ends_as_it_should(hostile: str) -> None:
    command = ["sh", "-c", 'exec "$0" check --evidence "$1" >&-', str(ADVISOR), hostile]
    done = subprocess.run(command, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_interrupt_ends_with_130() -> None:
    """It hangs on a server that takes the connection and never answers, until it is interrupted."""
    with socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.settimeout(60)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with subprocess.Popen([ADVISOR, "check", "--prometheus", url], stderr=subprocess.PIPE) as process:
            connection, _ = silent.accept()
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            told = process.stderr.read()
            code = process.wait(timeout=60)
            connection.close()
    assert (code, told.strip()) == (130, b"advisor: interrupted")


def test_nul_bytes_in_a_log_are_lines_that_are_skipped(tmp_path: Path) -> None:
    line = b'{"ts":1795946400,"model":"chat","status":200,"usage":{"prompt_tokens":9,"completion_tokens":5}}\n'
    (tmp_path / "log.jsonl").write_bytes(line + b"\0" * 5000 + b"\n" + b'{"ts":\0}\n' + b"\xff\xfe\n" + line)
    done = run("check", "--logs", str(tmp_path / "log.jsonl"), "--until", "2026-11-29T16:00:00Z", "-v")
    assert done.returncode == 0
    assert b"2 requests in 1 file (3 of 5 lines skipped" in done.stdout
    assert b"\0" not in done.stdout + done.stderr


def test_verbose_tells_the_steps_on_stderr_and_quiet_does_not(hostile: str) -> None:
    told = run("check", "--evidence", hostile, "-v")
    assert [line.split(b":")[1].strip() for line in told.stderr.splitlines()][:2] == [b"rules", b"gather"]
    assert run("check", "--evidence", hostile, "-v", "-q").stderr == b""


@pytest.mark.parametrize(("fail_on", "code"), [(None, 0), ("critical", 0), ("warning", 0)])
def test_advice_for_information_fails_nothing(fail_on: str | None, code: int) -> None:
    more = ["--fail-on", fail_on] if fail_on else []
    assert run("check", "--evidence", EXAMPLE, *more).returncode == code
