"""What host agents counted, back out of a real Prometheus, against the log that they counted it from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from advisor.domain.evidence import Evidence, Window
from advisor.domain.exported import ExportedLengths, LengthCounts
from advisor.domain.policy import Policy
from advisor.estimates import estimate
from advisor.exporter.follower import Follower, Shown
from advisor.exporter.metrics import Metrics
from advisor.gather import Gathered, gather
from advisor.settings import Settings
from advisor.sources.exporter_histograms import read_exporters
from advisor.sources.prometheus import PrometheusOptions
from advisor.sources.request_log import LogOptions
from advisor.store import Store
from tests import victoria_metrics_server
from tests.conftest import absent
from tests.prometheus_server import PrometheusMissingError, serve
from tests.recording.deployment import Deployment, Recording
from tests.recording.situations import REFUSING, TWO_REPLICAS

pytestmark = pytest.mark.integration

STEP_SECONDS = 3600.0
HOSTS = ("gpu-1:9110", "gpu-2:9110")
Sample = tuple[str, float, float]


@dataclass(frozen=True)
class Scraped:
    """Agents of two hosts, each with half of the log's lines, as Prometheus knows them beside the engines."""

    url: str
    text: Path
    recording: Recording
    model: str
    first: LengthCounts
    last: LengthCounts

    @property
    def window(self) -> Window:
        return Window(self.recording.end - 86_400, self.recording.end)


def scrapes(agent: Follower, log: Path, lines: list[str], times: list[float]) -> Iterator[tuple[float, Shown]]:
    """The agent's log grows as the recording did; it is scraped every hour."""
    waiting = sorted((float(line.split('"ts":')[1].split(",")[0]), line) for line in lines)
    place = 0
    for now in times:
        with log.open("a", encoding="utf-8") as file:
            while place < len(waiting) and waiting[place][0] <= now:
                file.write(waiting[place][1])
                place += 1
        while agent.step(now):
            pass
        yield now, agent.shown


def exposition(shown: Shown) -> str:
    return Metrics(lambda: shown).text().decode()


def openmetrics(exposed: dict[str, list[tuple[float, Shown]]]) -> Iterator[str]:
    """The texts of /metrics at their times, family by family as promtool wants them."""
    series: dict[str, list[Sample]] = defaultdict(list)
    kinds: dict[str, str] = {}
    for host, shown in exposed.items():
        for now, one in shown:
            for family in text_string_to_metric_families(exposition(one)):
                if family.name.startswith("advisor_request"):
                    kinds[family.name] = family.type
                    labelled = {"job": "advisor-exporter", "instance": host}
                    for sample in family.samples:
                        pairs = ",".join(f'{k}="{v}"' for k, v in sorted((sample.labels | labelled).items()))
                        series[family.name].append((f"{sample.name}{{{pairs}}}", sample.value, now))
    for name, samples in series.items():
        yield f"# TYPE {name} {kinds[name]}\n"
        yield from (f"{head} {value} {now:.0f}\n" for head, value, now in sorted(samples))


@pytest.fixture(scope="module")
def scraped(
    recorded: Callable[[Deployment], Recording], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Deployment], Scraped]]:
    known: dict[str, Scraped] = {}
    with ExitStack() as servers:

        def once(deployment: Deployment) -> Scraped:
            if deployment.model not in known:
                folder, recording = tmp_path_factory.mktemp("agents"), recorded(deployment)
                known[deployment.model] = _scraped(deployment.model, recording, folder, servers)
            return known[deployment.model]

        yield once


def _scraped(model: str, recording: Recording, folder: Path, servers: ExitStack) -> Scraped:
    lines = recording.log.read_text(encoding="utf-8").splitlines(keepends=True)
    times = np.arange(recording.start + STEP_SECONDS, recording.end + 1, STEP_SECONDS).tolist()
    exposed = {}
    for number, host in enumerate(HOSTS):
        log = folder / f"{number}.log"
        log.touch()
        with closing(Store.open(folder / f"{number}.db")) as store:
            agent = Follower(LogOptions(paths=(str(log),)), store, 20, recording.start)
            exposed[host] = list(scrapes(agent, log, lines[number :: len(HOSTS)], times))
    text = folder / "metrics.om"
    engines = recording.metrics.read_text(encoding="utf-8").removesuffix("# EOF\n")
    text.write_text(engines + "".join(openmetrics(exposed)) + "# EOF\n", encoding="utf-8")
    try:
        url = servers.enter_context(serve(text))
    except PrometheusMissingError as error:
        absent(str(error))
    first, last = ([shown[place][1].counts[model] for shown in exposed.values()] for place in (0, -1))
    return Scraped(url, text, recording, model, first[0].plus(first[1]), last[0].plus(last[1]))


def read_from(found: Scraped, *, by: str, **more: object) -> Gathered:
    settings: dict[str, object] = {"prometheus": {"url": found.url, **more}}
    if by == "log":
        settings["logs"] = {"paths": [str(found.recording.log)]}
    return gather(Settings.model_validate(settings), found.window)


def of(gathered: Gathered, found: Scraped) -> Evidence:
    return gathered.deployments[found.model]


def assert_as_counted(told: ExportedLengths | None, found: Scraped) -> None:
    assert told is not None
    for quantity, last in found.last.histograms.items():
        first, histogram = found.first.histograms[quantity], told.histograms[quantity]
        assert histogram.counts.tolist() == (last.counts - first.counts).tolist()
        assert histogram.total == pytest.approx((last.total or 0) - (first.total or 0))
    assert told.requests == sum(found.last.outcomes.values()) - sum(found.first.outcomes.values())
    assert told.slots.sum() == told.histograms["total"].n


def test_every_bucket_comes_back_as_it_was_counted(scraped: Callable[[Deployment], Scraped]) -> None:
    found = scraped(TWO_REPLICAS)
    assert_as_counted(of(read_from(found, by="agents"), found).exported, found)


def test_victoria_metrics_gives_the_same(scraped: Callable[[Deployment], Scraped]) -> None:
    found = scraped(TWO_REPLICAS)
    try:
        with victoria_metrics_server.serve(found.text) as url:
            reading = read_exporters(PrometheusOptions(url=url), found.window, lambda model: model)
    except PrometheusMissingError as error:
        absent(str(error))
    assert_as_counted(reading.lengths.get(found.model), found)


def test_it_advises_as_the_log_does(scraped: Callable[[Deployment], Scraped]) -> None:
    found = scraped(TWO_REPLICAS)
    by_log, by_agents = (estimate(of(read_from(found, by=by), found), Policy()) for by in ("log", "agents"))
    for name in ("total_tokens_p50", "total_tokens_p99", "prompt_tokens_p99", "output_tokens_p50"):
        exact, told = by_log[name].number, by_agents[name]
        assert exact is not None
        assert told.low is not None
        assert told.high is not None
        assert told.low <= exact <= told.high, name
        assert told.number == pytest.approx(exact, rel=0.05)
    limit, by_bucket = (facts["recommended_max_model_len"].number for facts in (by_log, by_agents))
    assert limit is not None
    assert by_bucket is not None
    # a bucket of 4.4 % and rounding up to 1,024
    assert limit <= by_bucket <= limit * 1.0443 + 1024
    # What was counted before the first scrape nobody knows: one hour of those recorded.
    hours = (found.recording.end - found.recording.start) / 3600
    assert by_agents["length_coverage"].number == pytest.approx(1 - 1 / hours, abs=0.05)
    assert by_agents["observed_days"].number == pytest.approx((hours - 1) / 24)
    assert by_agents["refused_share_now"].number == 0


def test_the_log_is_believed_before_agents(scraped: Callable[[Deployment], Scraped]) -> None:
    found = scraped(TWO_REPLICAS)
    evidence = of(read_from(found, by="log"), found)
    assert evidence.exported is not None
    assert "request log" in (estimate(evidence, Policy())["total_tokens_p999"].source or "")


def test_refusals_reach_the_advisor(scraped: Callable[[Deployment], Scraped]) -> None:
    found = scraped(REFUSING)
    by_log, by_agents = (estimate(of(read_from(found, by=by), found), Policy()) for by in ("log", "agents"))
    share = by_log["refused_share_now"].number
    assert share is not None
    assert share > 0.001
    assert by_agents["refused_share_now"].number == pytest.approx(share, rel=0.1)
    limit, by_bucket = (facts["recommended_max_model_len"].number for facts in (by_log, by_agents))
    assert limit is not None
    assert by_bucket is not None
    assert 4096 < by_bucket <= limit * 1.0443 + 1024


def test_it_costs_two_queries_and_says_so(scraped: Callable[[Deployment], Scraped]) -> None:
    found = scraped(TWO_REPLICAS)
    reading = read_exporters(PrometheusOptions(url=found.url), found.window, lambda model: model)
    assert reading.queries == 2
    assert reading.state is not None
    assert reading.state.status == "ok"
    assert reading.state.detail.startswith(f"{reading.lengths[found.model].requests:,.0f} requests of 1 deployment,")


def test_whoever_has_no_agents_hears_nothing_of_them(scraped: Callable[[Deployment], Scraped]) -> None:
    found = scraped(TWO_REPLICAS)
    gathered = read_from(found, by="agents", matchers={"cluster": "elsewhere"})
    assert not any(source.name.startswith("exporter") for source in gathered.sources)


def test_models_that_nobody_claims_become_a_line(scraped: Callable[[Deployment], Scraped]) -> None:
    found = scraped(TWO_REPLICAS)
    reading = read_exporters(PrometheusOptions(url=found.url), found.window, lambda _: None)
    assert reading.lengths == {}
    assert list(reading.strangers) == [found.model]


def test_a_matcher_of_engines_does_not_hide_agents(scraped: Callable[[Deployment], Scraped]) -> None:
    found = scraped(TWO_REPLICAS)
    assert of(read_from(found, by="agents", matchers={"job": "vllm"}), found).exported is not None
