"""The unit: what systemd-analyze says of it, and the service under a real systemd, with a colleague who is on call."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import absent
from tests.systemd_machine import Machine, MachineError, boot

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "systemd" / "serving-advisor.service"
NAME = UNIT.name
PROGRAM = "/opt/serving-advisor/bin/advisor"
STORE = "/var/lib/serving-advisor"
PATIENCE_SECONDS = 60.0
WATCHDOG_SECONDS = 10
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"

# The service cannot see /root and /home, where the Python of the tests may lie; so all of it is shown under /opt.
LAUNCHER = f"""#!/bin/sh
LD_LIBRARY_PATH=/opt/serving-advisor/python/lib \\
PYTHONPATH=/opt/serving-advisor/source:/opt/serving-advisor/packages PYTHONDONTWRITEBYTECODE=1 \\
    exec /opt/serving-advisor/python/bin/{PYTHON} -m advisor "$@"
"""
# What the unit waits for in minutes, a test waits for in seconds.
FASTER = f"[Service]\nWatchdogSec={WATCHDOG_SECONDS}s\nRestartSec=1s\nTimeoutStopSec=10s\nTimeoutAbortSec=2s\n"
TOKEN = "xoxb-only-the-service-may-read-this"
WITH_TOKEN = "[Service]\nLoadCredential=slack-token:/etc/advisor/slack.token\n"
CREDENTIAL = f"/run/credentials/{NAME}/slack-token"
CONFIG = f"""evidence: [/etc/advisor/chat-70b.yaml]
web: {{listen: '127.0.0.1:0'}}
slack: {{channel: C0123ABCD, token_file: {CREDENTIAL}, api_url: 'http://127.0.0.1:1/api/', collecting_days: 0}}
"""
FILES = {
    f"/etc/systemd/system/{NAME}": UNIT.read_text(encoding="utf-8"),
    f"/etc/systemd/system/{NAME}.d/faster.conf": FASTER,
    f"/etc/systemd/system/{NAME}.d/slack.conf": WITH_TOKEN,
    "/usr/lib/sysusers.d/serving-advisor.conf": (ROOT / "systemd/serving-advisor.sysusers").read_text(encoding="utf-8"),
    "/usr/lib/tmpfiles.d/serving-advisor.conf": (ROOT / "systemd/serving-advisor.tmpfiles").read_text(encoding="utf-8"),
    "/etc/advisor/advisor.yaml": CONFIG,
    "/etc/advisor/slack.token": TOKEN,
    "/etc/advisor/chat-70b.yaml": (ROOT / "config/examples/chat-70b.yaml").read_text(encoding="utf-8"),
    PROGRAM: LAUNCHER,
}
SHOWN = {
    ROOT: "/opt/serving-advisor/source",
    Path(sysconfig.get_path("purelib")): "/opt/serving-advisor/packages",
    Path(sys.base_prefix): "/opt/serving-advisor/python",
}


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        absent("systemd-analyze, of Debian's package systemd")
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)


def test_the_unit_is_verified(tmp_path: Path) -> None:
    unit = tmp_path / NAME
    unit.write_text(UNIT.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true"), encoding="utf-8")
    verified = analyze("verify", "--man=no", str(unit))
    # It exits 0 for unknown keys: silence is what counts.
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


def test_the_unit_is_hardened() -> None:
    scored = analyze("security", "--offline=true", "--threshold=20", "--no-pager", str(UNIT))
    assert scored.returncode == 0, scored.stdout[-200:]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine on which the advisor was installed as the README says, and a colleague in its group."""
    try:
        with boot(tmp_path_factory.mktemp("machine"), FILES, SHOWN) as booted:
            booted.run("systemd-sysusers")
            booted.run("systemd-tmpfiles", "--create", "serving-advisor.conf")
            booted.run("useradd", "--create-home", "--groups", "serving-advisor", "oncall")
            booted.run("useradd", "--create-home", "stranger")
            yield booted
    except MachineError as error:
        pytest.skip(f"no systemd can be booted here: {error}")


def eventually(holds: Callable[[], bool], machine: Machine) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, machine.run("journalctl", "-u", NAME, "-n", "20", check=False).stdout
        time.sleep(0.2)


def as_user(machine: Machine, user: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return machine.run("runuser", "-u", user, "--", PROGRAM, *arguments, check=False)


def judged(machine: Machine) -> bool:
    return "1 deployment, 1 with advice" in machine.property(NAME, "StatusText")


def test_a_life_under_systemd(machine: Machine) -> None:
    # `start` returns once the daemon says that it is ready.
    machine.run("systemctl", "start", NAME)
    assert machine.property(NAME, "ActiveState") == "active"
    eventually(lambda: judged(machine), machine)

    status = as_user(machine, "oncall", "status")
    assert status.returncode == 0, status.stderr
    (advice,) = re.findall(r"chat-70b .* ([0-9a-f]{8,}) ", status.stdout)
    snoozed = as_user(machine, "oncall", "snooze", advice, "--until", "2199-01-01", "--reason", "holidays")
    assert snoozed.returncode == 0, snoozed.stderr
    modes = machine.run("find", STORE, "-printf", "%m %g %f\n").stdout.splitlines()
    assert "2770 serving-advisor serving-advisor" in modes
    assert all(re.match(r"(2770|660) serving-advisor ", line) for line in modes), modes
    assert as_user(machine, "stranger", "status").returncode != 0

    # The token reaches the service, and nobody else: not even a colleague of its group, whose post is refused at once.
    within = ("nsenter", "-t", machine.property(NAME, "MainPID"), "-m", "setpriv", "--clear-groups")
    reads = ("--reuid=serving-advisor", "--regid=serving-advisor", "cat", CREDENTIAL)
    seen = machine.run(*within, *reads, check=False)
    assert seen.stdout == TOKEN, seen.stderr
    refused = as_user(machine, "oncall", "report", "--post", "-c", "/etc/advisor/advisor.yaml")
    assert refused.returncode == 3
    assert "cannot be read; nothing was posted" in refused.stderr
    assert TOKEN not in refused.stderr
    assert "delivery" not in as_user(machine, "oncall", "status").stdout

    before = machine.property(NAME, "MainPID")
    machine.run("kill", "-STOP", before)
    eventually(lambda: machine.property(NAME, "NRestarts") == "1" and judged(machine), machine)
    assert machine.property(NAME, "MainPID") != before
    assert "holidays" in as_user(machine, "oncall", "history").stdout

    machine.run("systemctl", "reload", NAME)
    machine.run("systemctl", "stop", NAME)
    assert machine.property(NAME, "Result") == "success"
    lines = machine.run("journalctl", "-u", NAME, "-o", "cat", f"_COMM={PYTHON}", check=False).stdout.splitlines()
    assert any("event=stopping" in line for line in lines)
    assert all(re.match(r"level=\w+ event=", line) for line in lines), lines


def test_a_wrong_configuration_is_not_tried_again_and_again(machine: Machine) -> None:
    machine.run("sh", "-c", "echo 'evidance: []' > /etc/advisor/advisor.yaml")
    started = machine.run("systemctl", "start", NAME, check=False)
    assert started.returncode != 0
    assert machine.property(NAME, "ExecMainStatus") == "2"
    assert machine.property(NAME, "ActiveState") == "failed"
    assert "unknown key 'evidance'" in machine.run("journalctl", "-u", NAME, "-o", "cat", "-n", "5").stdout
