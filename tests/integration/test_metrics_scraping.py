"""What a real Prometheus makes of one page when it scrapes it: edges by version, native histograms, federation."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler

import pytest

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Window
from advisor.sources.metrics_reading import MetricsReading
from advisor.sources.prometheus import PrometheusOptions, read_prometheus
from tests import prometheus_server
from tests.conftest import absent
from tests.prometheus_server import PrometheusMissingError
from tests.unit.sources.http_server import answering, reply

pytestmark = pytest.mark.integration
LABELS = 'engine="0",model_name="tiny"'
PAGE = f"""\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{{LABELS}}} 2
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{{{LABELS},block_size="16",num_gpu_blocks="100"}} 1
# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_bucket{{{LABELS},le="1"}} 0
vllm:request_prompt_tokens_bucket{{{LABELS},le="2.0"}} 3
vllm:request_prompt_tokens_bucket{{{LABELS},le="500"}} 7
vllm:request_prompt_tokens_bucket{{{LABELS},le="+Inf"}} 8
vllm:request_prompt_tokens_sum{{{LABELS}}} 1234
vllm:request_prompt_tokens_count{{{LABELS}}} 8
"""
SCRAPES = """\
scrape_configs:
  - job_name: vllm
    scrape_interval: 300ms
    scrape_timeout: 300ms
    metrics_path: {path}
    static_configs: [{{targets: ["{target}"]}}]
"""
RULE, SUM = "engine:vllm_num_requests_running:max", "model:vllm_num_requests_running:sum"
RULES = f"""\
groups:
  - name: vllm
    interval: 300ms
    rules:
      - record: {RULE}
        expr: max by (job, instance, model_name, engine) (vllm:num_requests_running)
      - record: {SUM}
        expr: sum by (job, model_name) (vllm:num_requests_running)
"""
SERVERS = {
    "2": ("prometheus", "rule_files: [{rules}]\n", ()),
    "3": (
        "prometheus-3",
        '    relabel_configs: [{{target_label: "k8s.cluster.name", replacement: eu-1}}]\n',
        (),
    ),
    "3 native": (
        "prometheus-3",
        "    convert_classic_histograms_to_nhcb: true\n",
        ("--enable-feature=native-histograms",),
    ),
}


FEDERATION = """\
scrape_configs:
  - job_name: federate
    scrape_interval: 300ms
    scrape_timeout: 300ms
    metrics_path: /federate
    params: {{"match[]": ['{{job="vllm"}}']}}
    static_configs: [{{targets: ["{target}"]}}]
"""


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Servers that have scraped the page several times; they start together, as each waits 5 seconds before it does."""
    scraped: Counter[str] = Counter()
    rules = tmp_path_factory.mktemp("rules") / "rules.yml"
    rules.write_text(RULES)
    start_line = f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {time.time() - 60}\n"

    def expose(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        scraped[handler.path] += 1
        reply(handler, (start_line + PAGE).encode(), headers={"Content-Type": "text/plain; version=0.0.4"})

    with ExitStack() as servers:
        target = servers.enter_context(answering(expose)).removeprefix("http://")
        running: dict[str, str] = {}

        def start(name: str, program: str, configuration: str, *flags: str) -> None:
            try:
                server = prometheus_server.serve(None, *flags, program=program, configuration=configuration)
                running[name] = servers.enter_context(server)
            except PrometheusMissingError as error:
                absent(str(error), program)

        for number, (name, (program, more, flags)) in enumerate(SERVERS.items()):
            scrapes = (SCRAPES + more).format(target=target, path=f"/{number}", rules=rules)
            start(name, program, scrapes, *flags)
        start("federated", "prometheus", FEDERATION.format(target=running["2"].removeprefix("http://")))
        deadline = time.monotonic() + 40
        while (len(scraped) < len(SERVERS) or min(scraped.values()) < 4) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield running


def reading(url: str, **settings: object) -> MetricsReading:
    now = time.time()
    return read_prometheus(PrometheusOptions.model_validate({"url": url, **settings}), Window(now - 900, now))


def seen(url: str, **settings: object) -> MetricsReading:
    """The first reading that finds the engine: it is so young that a scrape which is a second late hides it."""
    deadline = time.monotonic() + 20
    while not (found := reading(url, **settings)).deployments and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("server", ["2", "3"])
def test_edges_are_numbers_however_a_version_writes_them(urls: dict[str, str], server: str) -> None:
    found = seen(urls[server])
    assert found.state.status == "ok", found.state.detail
    lengths = found.deployments[0].engines[0].lengths["prompt_tokens"]
    assert (lengths.edges.tolist(), lengths.n, lengths.total) == ([1, 2, 500], 8, 1234)


def test_labels_may_have_dots(urls: dict[str, str]) -> None:
    cluster = {"k8s.cluster.name": "eu-1"}
    found = seen(urls["3"], matchers=cluster, identity_labels=["model_name", *cluster])
    assert found.deployments[0].labels == {"model_name": "tiny", **cluster}
    assert found.deployments[0].reported_pool is not None
    assert reading(urls["3"], matchers={"k8s.cluster.name": "us-1"}).deployments == ()
    with pytest.raises(SourceError, match="cannot answer"):
        reading(urls["2"], matchers=cluster)


def test_a_federated_engine_is_the_one_that_was_scraped(urls: dict[str, str]) -> None:
    (scraped,), (federated,) = seen(urls["2"]).deployments, seen(urls["federated"]).deployments
    assert federated.labels == {"job": "vllm", "model_name": "tiny"}
    assert federated.instances == scraped.instances
    assert federated.reported_pool == scraped.reported_pool
    assert federated.engines[0].lengths["prompt_tokens"].total == 1234
    assert federated.engines[0].epoch_cause == "restarted"
    assert federated.engines[0].epoch_start == scraped.engines[0].epoch_start


def test_a_rule_stands_for_a_series_when_it_keeps_engines_apart(urls: dict[str, str]) -> None:
    (found,) = seen(urls["2"], names={"vllm:num_requests_running": RULE}).deployments
    assert set(found.engines[0].samples.running.tolist()) == {2}
    with pytest.raises(SourceError, match="have no label instance"):
        reading(urls["2"], names={"vllm:num_requests_running": SUM})


def test_native_histograms_are_found_and_what_to_set_is_said(urls: dict[str, str]) -> None:
    found = seen(urls["3 native"])
    assert found.state.status == "partial"
    assert "vllm:request_prompt_tokens is a native histogram" in found.state.detail
    assert "convert_classic_histograms_to_nhcb" in found.state.detail
    assert "prompt_tokens" not in found.deployments[0].engines[0].lengths
