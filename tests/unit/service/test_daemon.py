"""The daemon as its operator meets it: a real process, a real notify socket, signals, and a real clock that is set."""

from __future__ import annotations

import re
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from advisor.domain.errors import StoreError
from advisor.service.daemon import Daemon, _Clock
from advisor.store import Store
from tests.unit.service.running import configure, daemon, eventually

pytestmark = pytest.mark.slow


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
        with pytest.raises(StoreError, match="another process works with it"):
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
