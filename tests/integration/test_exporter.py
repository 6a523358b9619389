"""The host agent: killed at any moment, as a process that systemd starts, and scraped by a real Prometheus."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.domain.errors import StoreError
from advisor.exporter.agent import STATE_FILE
from advisor.exporter.follower import Follower
from advisor.process.alone import alone
from advisor.sources.request_log import LogOptions
from advisor.store import Store
from tests.conftest import absent
from tests.integration import test_systemd
from tests.integration.follower import NOW
from tests.integration.test_kill import Followers, kill, live
from tests.prometheus_server import PrometheusMissingError, serve
from tests.unit.exporter.logs import row
from tests.unit.service.running import eventually
from tests.unit.sources.request_log.rotating_log import T0, RotatingLog

pytestmark = pytest.mark.integration

ROUNDS = 20
PROGRAM = Path(__file__).with_name("exporting.py")
UNIT = Path(__file__).parents[2] / "systemd" / "serving-advisor-exporter.service"
COUNT = "advisor_request_total_tokens_count"


@pytest.fixture
def rotating(tmp_path: Path) -> Iterator[RotatingLog]:
    log = RotatingLog(tmp_path, keep=4 * ROUNDS)
    yield log
    log.close()


def test_every_line_counts_once_though_the_agent_is_killed(tmp_path: Path, rotating: RotatingLog) -> None:
    seed = random.randrange(1 << 32)
    rng, path = random.Random(seed), tmp_path / "exporter.db"
    store = Store.open(path)
    store.counting_since(T0 - 1)
    agents, shown = Followers(path, rotating.path, PROGRAM), [0.0]
    for _ in range(ROUNDS):
        process = agents.start()
        live(rotating, rng)
        kill(process)
        shown += [counts.histograms["prompt"].n for counts in store.exported().values()]
    agents.close()
    assert shown == sorted(shown), f"seed {seed}: a counter fell"
    assert shown[-1] > 0, f"seed {seed}: nothing was committed before a kill"
    last = Follower(LogOptions(paths=(str(rotating.path),)), store, 20, NOW)
    while last.step(NOW):
        pass
    prompts = last.shown.counts["m"].histograms["prompt"]
    store.close()
    # Every line has its serial number as its prompt tokens: 1 + 2 + ... + n.
    assert (prompts.n, prompts.total) == (rotating.written, rotating.written * (rotating.written + 1) / 2), (
        f"seed {seed}"
    )


class Agent:
    """An agent in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.log, self._said = folder / "access.log", folder / "stderr"
        self.log.touch()
        self.config = folder / "advisor.yaml"
        self.config.write_text(
            f"logs: {{paths: [{self.log}]}}\nexporter: {{listen: '127.0.0.1:0', state: {folder}}}\n", encoding="utf-8"
        )
        with self._said.open("wb") as said:
            command = [sys.executable, "-m", "advisor", "exporter", "-c", str(self.config)]
            self.process = subprocess.Popen(command, stderr=said)

    @property
    def url(self) -> str:
        eventually(lambda: "web=http" in self._said.read_text(encoding="utf-8"), "the agent's address")
        return next(word[4:] for word in self._said.read_text(encoding="utf-8").split() if word.startswith("web="))

    def served(self) -> float:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
        return sum(float(n) for n in re.findall(rf"^{COUNT}{{.*}} (\S+)$", text, re.MULTILINE))

    def append(self, requests: int) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.writelines(row(1000, 24, at=time.time() - T0) for _ in range(requests))


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    started = Agent(tmp_path)
    yield started
    started.process.kill()
    started.process.wait(20)


def test_a_life(agent: Agent, tmp_path: Path) -> None:
    assert agent.served() == 0
    agent.append(300)
    eventually(lambda: agent.served() == 300, "300 requests")
    agent.process.kill()
    agent.process.wait(20)
    again = Agent(tmp_path)
    try:
        assert again.served() == 300
        with pytest.raises(StoreError, match="another process works with it"), alone(tmp_path / STATE_FILE):
            pass
        again.process.send_signal(signal.SIGTERM)
        assert again.process.wait(30) == 0
    finally:
        again.process.kill()


def ask(url: str, query: str) -> list[list[str]]:
    with urllib.request.urlopen(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=10) as answer:
        return [found["value"] for found in json.load(answer)["data"]["result"]]


def test_a_real_prometheus_scrapes_it(agent: Agent) -> None:
    target = agent.url.removeprefix("http://")
    configuration = (
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: advisor-exporter, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    try:
        with serve(None, configuration=configuration) as url:
            agent.append(50)
            eventually(lambda: [v for _, v in ask(url, f'{COUNT}{{model="m"}}')] == ["50"], "50 requests")
            (within,) = ask(url, 'advisor_request_total_tokens_bucket{model="m", le="1024.0"}')
            assert within[1] == "50"
    except PrometheusMissingError as error:
        absent(str(error))


def test_the_unit_is_verified_and_hardened(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace(test_systemd.PROGRAM, "/bin/true"), encoding="utf-8")
    verified = test_systemd.analyze("verify", "--man=no", str(unit))
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")
    scored = test_systemd.analyze("security", "--offline=true", "--threshold=20", "--no-pager", str(UNIT))
    assert scored.returncode == 0, scored.stdout[-200:]
