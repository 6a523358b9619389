"""Four replicas behind a real Prometheus, one of them with another cap and pool: check, show, and both engines' word.

Two replicas answer for themselves: the canary and one sibling tell their caps, which no metric carries. Of the other
two only the pool is known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from advisor.cli import cli
from advisor.service.steps import evaluate
from advisor.settings import read_settings
from advisor.store import Store
from tests.conftest import absent
from tests.prometheus_server import PrometheusMissingError, serve
from tests.recording.deployment import Deployment, record
from tests.recording.situations import CAP_PINNED, RECORDED_AT
from tests.unit.sources.http_server import Answering, answering, reply

pytestmark = pytest.mark.integration

TRIED = Deployment(
    model="acme/tried",
    traffic=replace(CAP_PINNED.traffic, requests_per_second=4 * 2.35),
    engine=CAP_PINNED.engine,
    canary=replace(CAP_PINNED.engine, max_num_seqs=24, kv_pool_tokens=400_000),
    replicas=4,
    seconds=7 * 3600,
    scrape_seconds=60,
)
"""CAP_PINNED on four replicas; on the last one a cap of 24 is being tried."""


def engine(model: str, cap: int) -> Answering:
    """A replica that tells its cap: as many of its endpoints as the advisor asks for."""
    labels = f'model_name="{model}",engine="0"'
    info = {"vllm_config": {"scheduler_config": {"max_num_seqs": cap, "max_num_batched_tokens": 2048}}}
    pages = {
        "/metrics": f"vllm:num_requests_running{{{labels}}} 3\nvllm:num_requests_waiting{{{labels}}} 0\n",
        "/server_info?config_format=json": json.dumps(info),
    }
    return lambda handler, _: reply(
        handler, pages.get(handler.path, "").encode(), 200 if handler.path in pages else 404
    )


@dataclass(frozen=True)
class Fleet:
    """The configuration that reads it, and where its replicas answer: the sibling, and the canary."""

    config: Path
    sibling: str
    canary: str


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    recording = record(TRIED, RECORDED_AT, folder)
    with ExitStack() as servers:
        urls = [servers.enter_context(answering(engine(TRIED.model, cap))) for cap in (16, 24)]
        sibling, canary = (urlsplit(url).netloc for url in urls)
        for file in (recording.metrics, recording.log):
            text = file.read_text().replace("10.0.0.1:8000", sibling).replace("10.0.0.4:8000", canary)
            file.write_text(text)
        try:
            prometheus = servers.enter_context(serve(recording.metrics))
        except PrometheusMissingError as error:
            absent(str(error))
        config = folder / "advisor.yaml"
        stated = {
            "prometheus": {"url": prometheus},
            "engines": [{"url": url} for url in urls],
            "logs": {"paths": [str(recording.log)]},
            "since": "1d",
            "slo": {"tpot": "40ms", "ttft": "2s"},
            "store": {"path": str(folder / "advisor.db")},
        }
        config.write_text(json.dumps(stated))
        yield Fleet(config, sibling, canary)


def run(*words: str) -> str:
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def checked(fleet: Fleet) -> Any:
    told = run("check", "-c", str(fleet.config), "--until", str(int(RECORDED_AT)), "-o", "json")
    (deployment,) = json.loads(told)["deployments"]
    return deployment


def test_the_canary_is_found_and_does_not_speak_for_the_deployment(fleet: Fleet, checked: Any) -> None:
    (canary,) = checked["canaries"]
    assert canary["instances"] == [fleet.canary]
    assert {d["setting"]: (d["canary"], d["siblings"]) for d in canary["differences"]} == {
        "max_num_seqs": (24, 16),
        "pool_tokens": (400_000, 500_000),
    }
    assert checked["flags"]["max_num_seqs"]["value"] == 16
    assert checked["facts"]["kv_pool_tokens"]["value"] == 500_000
    assert checked["replicas"] == 4


def test_ceilings_are_of_the_others_and_traffic_is_of_all(checked: Any) -> None:
    facts = checked["facts"]
    assert facts["running_max"]["value"] == 16, "the canary ran up to 24"
    # 9.4 requests/s come to the four replicas; three of them see 7.05
    assert facts["demand_requests_per_second_mean"]["value"] == pytest.approx(9.4, rel=0.03)
    assert facts["length_coverage"]["value"] == pytest.approx(1, abs=0.02), "the log and the metrics of all replicas"


def test_the_comparison_says_what_the_cap_does(checked: Any) -> None:
    (canary,) = checked["canaries"]
    told = {r["metric"]: r["outcome"] for r in canary["readings"]}
    assert canary["hours"] == 7
    assert told["requests_per_second_per_replica"] == "same", "the front end deals in turn"
    assert told["waiting_share"] == "lower"
    assert told["ttft_mean"] == "lower"


def test_the_advice_points_at_the_canary_that_tries_it(fleet: Fleet, checked: Any) -> None:
    raised = next(a for a in checked["advice"] if a["knob"] == "max_num_seqs")
    assert (raised["current"], raised["recommended"]) == (16, 24)
    assert raised["trial"].startswith(f"{fleet.canary} runs already with max_num_seqs 24")


def test_show_tells_it_from_the_store(fleet: Fleet) -> None:
    settings = read_settings(fleet.config)
    with closing(Store.open(settings.store.path)) as store:
        number = store.begin_run("evaluate", RECORDED_AT)
        account = evaluate.run(settings, RECORDED_AT, None)
        store.end_run(number, RECORDED_AT, "ok", account.parts)
    shown = run("show", TRIED.model, "-c", str(fleet.config), "--no-color")
    text = " ".join(shown.split())
    assert f"CANARY {fleet.canary} runs with max_num_seqs 24 (others 16), pool_tokens 400,000 (others 500,000)" in text
    assert "no difference beyond noise in" in text
    assert f"try {fleet.canary} runs already with max_num_seqs 24" in text
    assert "measuring since Thu 26 Nov 2026 17:00 UTC" in text
