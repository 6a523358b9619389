"""A whole life: first advice, weekly report, the flag changed as advised, applied, verified, and the next report.

The steps are the daemon's own, driven with explicit times over a recorded deployment: a real Prometheus has its
metrics, its request log grows as time goes by, and a local server speaks Slack's Web API.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from advisor.domain.evidence import Window
from advisor.domain.life import AdviceRecord
from advisor.owners import Owners
from advisor.service.account import Account
from advisor.service.steps import evaluate, gather, prune, report
from advisor.settings import Settings, read_settings
from advisor.store import Store
from tests.conftest import Served
from tests.recording.deployment import Deployment, Restart
from tests.recording.situations import DEMO
from tests.slack_server import CHANNEL, TOKEN, SlackState, slack

pytestmark = pytest.mark.integration

HOUR, DAY = 3600.0, 86_400.0
CHANGED = 1.0 * DAY
FOLLOWED = replace(DEMO, seconds=2.25 * DAY, restart=Restart(at=CHANGED, engine=replace(DEMO.engine, max_num_seqs=24)))
"""The demo's deployment: its cap of 16 throttles it for a day, then it is restarted with the 24 that are advised."""


STEPS: Mapping[str, Callable[[Settings, float, Owners | None], Account]] = {
    "gather": gather.run,
    "evaluate": evaluate.run,
    "report": report.run,
    "prune": prune.run,
}


@dataclass
class House:
    """Everything the daemon has: its sources, its memory, and a channel to post to."""

    folder: Path
    prometheus: str
    slack: str
    log: list[str]
    start: float
    owners: Owners | None = None
    cap: int = 16
    written: int = field(default=0)

    @property
    def settings(self) -> Settings:
        """The configuration; the cap in it is what the operator says runs."""
        return read_settings(
            None,
            {
                "prometheus": {"url": self.prometheus},
                "logs": {"paths": [str(self.folder / "requests.jsonl")]},
                "store": {"path": str(self.folder / "advisor.db")},
                "since": "1d",
                "slo": {"tpot": "40ms", "ttft": "2s"},
                "deployments": {"chat-70b": {"flags": {"max_num_seqs": self.cap, "max_num_batched_tokens": 2048}}},
                "slack": {
                    "channel": CHANNEL,
                    "token_file": str(self.folder / "token"),
                    "api_url": f"{self.slack}/api/",
                    "collecting_days": 0,
                },
            },
        )

    def step(self, kind: str, after: float) -> Account:
        """Do a step of the daemon `after` seconds, with the log until then, and note it as the daemon does."""
        now = self.start + after
        with (self.folder / "requests.jsonl").open("a", encoding="utf-8") as log:
            while self.written < len(self.log) and json.loads(self.log[self.written])["ts"] <= now:
                log.write(self.log[self.written] + "\n")
                self.written += 1
        with closing(Store.open(self.folder / "advisor.db")) as store:
            number = store.begin_run(kind, now)
            account = STEPS[kind](self.settings, now, self.owners)
            store.end_run(number, now, "failed" if account.problems else "ok", account.parts)
        self.owners = account.owners
        return account

    def advice(self, rule: str) -> AdviceRecord:
        """What is remembered of the advice of a rule."""
        with closing(Store.open(self.folder / "advisor.db", readonly=True)) as store:
            (record,) = [r for r in store.records() if r.advice.rule == rule]
        return record

    def requests(self) -> int:
        """Requests of the deployment in the store's log."""
        with closing(Store.open(self.folder / "advisor.db", readonly=True)) as store:
            window = Window(self.start - DAY, self.start + 10 * DAY)
            log = store.request_log("chat-70b", window, self.start)
        return log.requests if log else 0


@pytest.fixture
def workspace() -> Iterator[tuple[str, SlackState]]:
    """A local Slack: its address and what it holds."""
    with slack() as held:
        yield held


@pytest.fixture
def house(tmp_path: Path, served: Callable[[Deployment], Served], workspace: tuple[str, SlackState]) -> House:
    fleet = served(FOLLOWED)
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    lines = fleet.recording.log.read_text(encoding="utf-8").splitlines()
    return House(tmp_path, fleet.url, workspace[0], lines, fleet.recording.start)


def parents(state: SlackState) -> list[dict[str, Any]]:
    return [m for m in state.messages if "thread_ts" not in m]


def test_a_whole_life(house: House, workspace: tuple[str, SlackState]) -> None:
    rule, state = "concurrency/cap-pinned-cache-free", workspace[1]

    assert house.step("gather", CHANGED - 600).parts == [], "nobody knows yet whose the requests are"
    assert house.step("evaluate", CHANGED - 300).problems == []
    first = house.advice(rule)
    assert (first.state, first.advice.current, first.advice.recommended) == ("open", 16, 24)
    assert house.requests() == house.written > 40_000

    assert house.step("report", CHANGED - 200).problems == []
    (posted,) = parents(state)
    assert "raise max_num_seqs from 16 to 24" in posted["text"]
    assert "--max-num-seqs 24" in json.dumps(posted["blocks"])
    assert len(state.shares()) == 1
    before = len(state.messages)
    assert house.step("report", CHANGED - 100).problems == []
    assert len(state.messages) == before, "a report that is tried again is posted once"

    house.cap = 24  # the operator follows, and says so
    assert house.step("gather", CHANGED + HOUR).problems == []
    assert house.step("evaluate", CHANGED + 2 * HOUR).problems == []
    assert house.advice(rule).state == "applied"
    assert house.requests() == house.written

    assert house.step("evaluate", CHANGED + 1.2 * DAY).problems == []
    judged = house.advice(rule)
    assert judged.state == "verified", [score.note for score in judged.scores]
    assert judged.id == first.id
    assert any((s.hours or 0) >= 20 and "same hours of the day" in s.note for s in judged.scores)
    assert {s.metric for s in judged.scores if s.held} >= {"time_at_sequence_cap", "itl_mean"}

    assert house.step("report", CHANGED - 100 + 7 * DAY).problems == []
    told = json.dumps(parents(state)[1]["blocks"])
    assert "16" in told
    assert "24" in told
    assert "as predicted" in told

    assert house.step("prune", CHANGED + 8 * DAY).problems == []
    assert house.advice(rule).state == "verified"


def test_prometheus_gone_for_an_hour_and_back(house: House) -> None:
    house.step("evaluate", CHANGED - 3 * HOUR)
    url, house.prometheus = house.prometheus, "http://127.0.0.1:1"
    gone = house.step("evaluate", CHANGED - 2 * HOUR)
    # The log is still followed, for the deployments that were known, and what is known of the fleet stays in sight.
    assert house.requests() == house.written
    with closing(Store.open(house.folder / "advisor.db", readonly=True)) as store:
        kept = store.latest_report()
    assert kept is not None
    shown = json.loads(kept[1])
    assert [d["name"] for d in shown["deployments"]] == ["chat-70b"]
    assert "failed" in {s["status"] for s in shown["sources"]}
    assert house.advice("concurrency/cap-pinned-cache-free").state in {"open", "queued"}
    assert gone.owners == house.owners

    house.prometheus = url
    assert house.step("evaluate", CHANGED - HOUR).problems == []
    assert house.advice("concurrency/cap-pinned-cache-free").state == "open"
    assert house.requests() == house.written


def test_before_anything_is_known_the_log_waits(house: House) -> None:
    house.prometheus = "http://127.0.0.1:1"
    blind = house.step("evaluate", CHANGED - HOUR)
    assert any("nobody knows which deployment" in problem for problem in blind.problems)
    assert house.requests() == 0
