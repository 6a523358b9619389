"""The daemon as its operator meets it: a real process, a real notify socket, signals, and a real clock that is set."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from advisor.domain.errors import StoreError
from advisor.service.daemon import Daemon, _Clock
from advisor.store import Store

EVIDENCE = Path(__file__).parents[3] / "config" / "examples" / "chat-70b.yaml"
PATIENCE_SECONDS = 60.0


@dataclass
class Running:
    """A daemon and everything it said so far to systemd and to its log."""

    process: subprocess.Popen[bytes]
    manager: socket.socket
    log_file: Path
    told: list[str]

    def hears(self, text: str) -> None:
        """Wait until systemd hears something that holds `text`."""
        self.manager.settimeout(PATIENCE_SECONDS)
        while not any(text in one for one in self.told):
            self.told.append(self.manager.recv(4096).decode())

    def says(self, text: str) -> None:
        """Wait until the log holds `text`."""
        eventually(lambda: text in self.log, f"{text!r} in the log")

    @property
    def log(self) -> str:
        """What it wrote to stderr."""
        return self.log_file.read_text(encoding="utf-8")

    @property
    def url(self) -> str:
        """Where its page is."""
        return next(word.partition("=")[2] for word in self.log.split() if word.startswith("web=http"))

    def get(self, path: str) -> str:
        """What its page answers."""
        with urllib.request.urlopen(self.url + path, timeout=20) as answer:
            body: bytes = answer.read()
        return body.decode()


def eventually(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def configure(folder: Path, more: str = "") -> Path:
    path = folder / "advisor.yaml"
    path.write_text(
        f"evidence: [{EVIDENCE}]\nstore: {{path: {folder}/advisor.db}}\nweb: {{listen: '127.0.0.1:0'}}\n{more}",
        encoding="utf-8",
    )
    return path


@contextmanager
def daemon(config: Path) -> Iterator[Running]:
    with ExitStack() as held:
        manager = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        address, log_file = config.with_name("notify"), config.with_name("log")
        address.unlink(missing_ok=True)
        manager.bind(str(address))
        environment = {**os.environ, "NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "60000000"}
        log = held.enter_context(log_file.open("wb"))
        command = [sys.executable, "-m", "advisor", "run", "-c", str(config)]
        process = held.enter_context(subprocess.Popen(command, env=environment, stderr=log))
        try:
            yield Running(process, manager, log_file, [])
        finally:
            process.kill()


def test_from_start_to_stop(tmp_path: Path) -> None:
    with daemon(configure(tmp_path)) as running:
        running.hears("READY=1")
        running.hears("WATCHDOG=1")
        running.hears("STATUS=1 deployment, 1 with advice")
        assert running.get("/readyz") == "ready\n"
        assert 'advisor_recommended_value{deployment="chat-70b",knob="max_num_seqs"} 40.0' in running.get("/metrics")
        assert "chat-70b" in running.get("/api/v1/deployments")

        began = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        running.hears("STOPPING=1")
        assert running.process.wait(20) == 0
        assert time.monotonic() - began < 15
    assert "event=step kind=evaluate outcome=ok" in running.log
    assert "Traceback" not in running.log
    assert all(line.startswith("level=") for line in running.log.splitlines())


def test_a_wrong_configuration_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    config = configure(tmp_path)
    with daemon(config) as running:
        running.hears("READY=1")
        running.told.clear()
        configure(tmp_path, "schedule: {report_weekday: 1}\n")
        running.process.send_signal(signal.SIGHUP)
        running.hears("RELOADING=1")
        running.hears("configuration refused")
        assert "advisor.yaml:4:" in running.log
        assert "advisor_config_good 0.0" in running.get("/metrics")

        configure(tmp_path, "schedule: {report_weekday: tue}\n")
        running.process.send_signal(signal.SIGHUP)
        running.says('event="configuration read anew"')
        assert "advisor_config_good 1.0" in running.get("/metrics")

        config.write_text(config.read_text(encoding="utf-8").replace("advisor.db", "other.db"), encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        running.says("store cannot change while the daemon runs")


def test_two_daemons_do_not_share_a_store(tmp_path: Path) -> None:
    with daemon(configure(tmp_path)) as running:
        running.hears("READY=1")
        with pytest.raises(StoreError, match="another daemon works with it"):
            Daemon(configure(tmp_path)).run()


def test_after_a_kill_it_goes_on_from_its_memory(tmp_path: Path) -> None:
    config = configure(tmp_path)
    with daemon(config) as running:
        running.says("kind=evaluate outcome=ok")
        running.process.kill()
        running.process.wait(20)
    with daemon(config) as running:
        running.hears("READY=1\nSTATUS=1 deployment, 1 with advice")
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(30) == 0
    assert "kind=evaluate" not in running.log, "nothing is due within the hour"
    with closing(Store.open(tmp_path / "advisor.db", readonly=True)) as store:
        assert len(store.records()) == 2


def test_a_step_that_cannot_be_done_does_not_stop_the_others(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "broken.yaml").write_text("id: [", encoding="utf-8")
    with daemon(configure(tmp_path, f"rules: [{rules}]\n")) as running:
        running.says("kind=evaluate outcome=failed")
        running.says("kind=prune outcome=ok")
        assert "broken.yaml:1:" in running.log
        assert 'advisor_runs_total{outcome="failed",stage="evaluate"} 1.0' in running.get("/metrics")


def test_a_report_that_was_missed_follows_the_first_evaluation_once(tmp_path: Path) -> None:
    config = configure(tmp_path)
    with closing(Store.open(tmp_path / "advisor.db")) as store:
        weeks_ago = time.time() - 15 * 86_400
        store.end_run(store.begin_run("report", weeks_ago), weeks_ago, "ok", ())
    with daemon(config) as running:
        running.says("kind=prune")
        eventually(lambda: "kind=report" in running.log, "the report")
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(30) == 0
    kinds = [kind for line in running.log.splitlines() for kind in re.findall(r"kind=(\w+) outcome=ok", line)]
    assert kinds.index("evaluate") < kinds.index("report")
    assert kinds.count("report") == 1


def test_a_clock_that_is_set_is_noticed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = [1_795_968_000.0]
    monkeypatch.setattr(time, "time", lambda: wall[0] + time.monotonic())
    clock = _Clock()
    assert clock.jumped() == 0
    wall[0] -= 86_400
    assert clock.jumped() == pytest.approx(-86_400, abs=1)
    assert clock.jumped() == 0
