"""One engine asked directly: real captures served over HTTP, and servers that are not what they should be."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from advisor.domain.errors import SourceError
from advisor.domain.evidence import Flag, HttpOutcomes
from advisor.sources.engine_endpoint import EngineOptions, read_engine
from advisor.sources.metrics_reading import DeploymentMetrics, MetricsReading
from tests.unit.sources.http_server import Answering, answering, reply

CAPTURES = Path(__file__).parents[2] / "captures"
LLAMACPP = CAPTURES / "llamacpp-b11549"
NEW, OLD = CAPTURES / "vllm-0.32.0", CAPTURES / "vllm-0.16.0"
NOW = 1795969000.0


def served(pages: Mapping[str, bytes]) -> Answering:
    """Answers with these pages, and with 404 for all others."""
    return lambda handler, _: reply(handler, pages.get(handler.path, b""), 200 if handler.path in pages else 404)


def read(pages: Mapping[str, bytes], now: float = NOW) -> MetricsReading:
    with answering(served(pages)) as url:
        return read_engine(EngineOptions(url=f"{url}/metrics", read_timeout_seconds=0.5), now)


def only(pages: Mapping[str, bytes], now: float = NOW) -> DeploymentMetrics:
    (deployment,) = read(pages, now).deployments
    return deployment


def test_a_real_engine_in_full() -> None:
    pages = {
        "/metrics": (NEW / "metrics_dp2.txt").read_bytes(),
        "/v1/models": (NEW / "v1_models.json").read_bytes(),
        "/version": (NEW / "version.json").read_bytes(),
        "/server_info?config_format=json": (NEW / "server_info.json").read_bytes(),
    }
    reading = read(pages)
    (found,) = reading.deployments
    assert reading.state.status == "ok"
    assert reading.queries == 4
    assert found.labels == {"model_name": "tiny-llama"}
    assert found.version_hint == "0.32.0"
    assert found.replicas == 1
    assert [e.engine for e in found.engines] == ["0", "1"]
    assert found.flags["max_num_seqs"] == Flag(4, "server_info")
    assert found.flags["max_model_len"] == Flag(2048, "server_info")
    assert found.disagreements == ()
    assert found.reported_pool is not None
    assert found.reported_pool.tokens == 8192
    assert found.http == HttpOutcomes(163, 0, 0)
    assert found.notes == ()


def test_counters_of_one_scrape_count_from_the_start_of_the_process() -> None:
    first, second = only({"/metrics": (NEW / "metrics_dp2.txt").read_bytes()}).engines
    assert first.lifetime
    assert first.epoch_start == 1795968804.95  # process_start_time_seconds of the capture
    assert (first.windows.start.tolist(), first.windows.end.tolist()) == ([1795968804.95], [NOW])
    assert first.samples.time.tolist() == [NOW]
    assert first.samples.running.tolist() == [0]
    # vllm:request_success_total{reason="length"}, generation_tokens_total, iteration_tokens_total_count as printed
    assert [first.windows.total(c) for c in ("finished", "generation_tokens", "steps")] == [81, 7314, 2051]
    assert [second.windows.total(c) for c in ("finished", "prompt_tokens_computed")] == [82, 8924]
    assert first.windows.total("preemptions") == 0
    assert first.lengths["output_tokens"].mean == pytest.approx(7314 / 81)
    assert first.latencies["ttft"].mean == pytest.approx(12.552364349365234 / 81)
    assert first.latencies["itl"].n == 7233


def test_blocks_of_an_engine_with_cache_metrics() -> None:
    # 200 s with --kv-cache-metrics at a sample of 1.0: 12,288 tokens of cache, ten sessions and fresh prompts
    (engine,) = only({"/metrics": (NEW / "metrics_cache_residency.txt").read_bytes()}, 1796011999.0).engines
    idle, gaps = (engine.latencies[name] for name in ("block_idle_before_evict", "block_reuse_gap"))
    assert (idle.n, gaps.n) == (1658, 24)
    assert idle.quantile_bounds(0.5) == (10, 20)
    assert gaps.quantile_bounds(0.9) == (20, 30)
    assert engine.windows.total("prefix_hits") == 14_592
    # Nobody is asked beyond its own cache.
    assert engine.windows.total("external_prefix_queries") is None


def test_an_engine_that_says_nothing_but_metrics() -> None:
    found = only({"/metrics": (OLD / "metrics.txt").read_bytes()})
    assert found.version_hint == ">=0.16,<0.20"
    assert found.flags["gpu_memory_utilization"] == Flag(0.9, "metrics", 1795968585.55)
    assert "max_model_len" not in found.flags
    assert "max_num_seqs" not in found.flags
    assert found.http == HttpOutcomes(24, 1, 0)
    assert found.reported_pool is not None
    assert found.reported_pool.tokens == 771377 * 32
    assert found.notes == ()


def test_answers_of_the_cap_pinned_engine_leave_out_listing_models() -> None:
    # POST 2xx: 735 completions and 1 chat; 4xx: 3 and 1. GET /v1/models is no generation request.
    assert only({"/metrics": (NEW / "metrics_cap_pinned.txt").read_bytes()}).http == HttpOutcomes(736, 4, 0)


SMALL = b"""process_start_time_seconds 1000
vllm:num_requests_running{engine="0",model_name="m"} 3
vllm:generation_tokens_total{engine="0",model_name="m"} 50
"""


def test_flags_that_disagree_are_reported_and_the_more_trusted_is_believed() -> None:
    config = b'vllm:cache_config_info{engine="0",kv_cache_size_tokens="8192",kv_cache_max_concurrency="2.0"} 1\n'
    models = b'{"data":[{"id":"m","max_model_len":2048}]}'
    found = only({"/metrics": SMALL + config, "/v1/models": models})
    assert found.flags["max_model_len"] == Flag(2048, "models_endpoint")
    (disagreement,) = found.disagreements
    assert (disagreement.other.value, disagreement.other.source) == (4096, "metrics")


def test_endpoints_that_answer_nonsense_are_noted_and_do_no_harm() -> None:
    pages = {
        "/metrics": SMALL,
        "/v1/models": b"<html>",
        "/version": b'{"version":"<!channel>"}',
        "/server_info?config_format=json": b'{"vllm_config":"model=m, max_num_seqs=4"}',
    }
    found = only(pages)
    assert found.version_hint is None
    assert found.flags == {}
    assert [n for n in found.notes if "no answer in a known form" in n] == [
        "/server_info gives no answer in a known form; not used",
        "/v1/models gives no answer in a known form; not used",
    ]


def test_an_endpoint_that_hangs_is_noted() -> None:
    def answer(handler: object, body: bytes) -> None:
        if handler.path == "/version":  # type: ignore[attr-defined]
            time.sleep(0.8)
        served({"/metrics": SMALL})(handler, body)  # type: ignore[arg-type]

    with answering(answer) as url:
        reading = read_engine(EngineOptions(url=url, read_timeout_seconds=0.3), NOW)
    assert any("does not answer in time" in note for note in reading.deployments[0].notes)


def test_several_api_processes_do_not_tell_when_they_began() -> None:
    text = SMALL.replace(b"process_start_time_seconds 1000\n", b"")
    found = only({"/metrics": text})
    assert found.engines[0].windows.deltas == {}
    assert found.engines[0].samples.running.tolist() == [3]
    assert any("does not tell when the process began" in note for note in found.notes)
    created = b'vllm:generation_tokens_created{engine="0",model_name="m"} 2000\n'
    assert only({"/metrics": text + created}).engines[0].epoch_start == 2000


SGLANG = b"""sglang:num_running_reqs{model_name="chat",tp_rank="0"} 3
sglang:num_queue_reqs{model_name="chat",tp_rank="0"} 1
sglang:max_total_num_tokens{model_name="chat",tp_rank="0"} 367404
"""
TGI = b"""# TYPE tgi_request_success counter
tgi_request_success 12
tgi_batch_current_size 3
tgi_queue_size 1
"""


def test_sglang_is_asked_under_the_old_name_where_the_new_one_is_missing() -> None:
    info = b'{"model_path":"org/chat","served_model_name":"chat","max_running_requests":64,"version":"0.5.2"}'
    for path in ("/server_info", "/get_server_info"):
        found = only({"/metrics": SGLANG, path: info})
        assert (found.engine_kind, found.version_hint) == ("sglang", "0.5.2")
        assert found.flags["max_num_seqs"] == Flag(64, "server_info")
        assert found.reported_pool is not None
        assert found.reported_pool.tokens == 367_404


def test_tgi_tells_by_its_info_which_model_it_serves_and_its_limits() -> None:
    info = b'{"model_id":"org/chat","max_total_tokens":8192,"max_input_tokens":8191,"version":"3.3.7"}'
    found = only({"/metrics": TGI, "/info": info})
    assert (found.engine_kind, found.labels, found.version_hint) == ("tgi", {"model_name": "org/chat"}, "3.3.7")
    assert found.flags["max_model_len"] == Flag(8192, "server_info")
    assert found.flags["max_input_tokens"] == Flag(8191, "server_info")


def test_trtllm_keeps_its_prometheus_page_elsewhere() -> None:
    page = b'trtllm_num_requests_running{model_name="m"} 2\ntrtllm_max_batch_size_static{model_name="m"} 64\n'
    found = only({"/metrics": b'[{"iter": 1}]', "/prometheus/metrics": page})
    assert found.engine_kind == "trtllm"
    assert found.flags["max_num_seqs"].value == 64


def test_llamacpp_tells_its_slots() -> None:
    props = b'{"total_slots":4,"default_generation_settings":{"n_ctx":4096}}'
    found = only({"/metrics": b"llamacpp:requests_processing 2\n", "/props": props})
    assert (found.engine_kind, found.flags["max_num_seqs"].value) == ("llamacpp", 4)


@pytest.mark.parametrize(("awake", "replicas"), [(1, 1), (0, 0)])
def test_vllm_says_that_it_sleeps(awake: int, replicas: int) -> None:
    state = b'vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="awake"} %d\n' % awake
    state += b'vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="discard_all"} 0\n'
    assert only({"/metrics": SMALL + state}).replicas == replicas


def test_a_real_llamacpp_under_load() -> None:
    files = {"/metrics": "metrics_slots_full.txt", "/props": "props.json", "/v1/models": "v1_models.json"}
    found = only({path: (LLAMACPP / name).read_bytes() for path, name in files.items()})
    assert found.labels == {"model_name": "tiny"}
    assert {name: flag.value for name, flag in found.flags.items()} == {"max_num_seqs": 4, "max_model_len": 2048}
    (engine,) = found.engines
    assert (engine.samples.running.tolist(), engine.samples.waiting.tolist()) == ([4.0], [6.0])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "shows none of vllm:num_requests_running, sglang:num_running_reqs, tgi_batch_current_size"),
        (b"<html>vllm:</html>", "shows none of vllm:num_requests_running"),
        (b'vllm:num_requests_running{model_name="m"} NaN\n', "shows none of vllm:num_requests_running"),
        (b'vllm:num_requests_running{model_name="m} 1\n', "is not in Prometheus's text format"),
        (b'vllm:num_requests_running{model_name="m"} many\n', "is not in Prometheus's text format"),
    ],
)
def test_a_page_that_is_no_engines(body: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=r"/metrics") as caught:
        read({"/metrics": body})
    assert message in str(caught.value)


@pytest.mark.parametrize(("status", "advice"), [(401, "set bearer_token_file"), (404, "path prefix"), (503, "status")])
def test_metrics_that_cannot_be_had(status: int, advice: str) -> None:
    with (
        answering(lambda handler, _: reply(handler, b"", status)) as url,
        pytest.raises(SourceError, match=f"answers with status {status}.*{advice}|{advice} {status}"),
    ):
        read_engine(EngineOptions(url=url), NOW)


def test_hostile_labels_come_through_as_they_are() -> None:
    text = SMALL.replace(b'model_name="m"', b'model_name="<!channel>\\"}{\\\\\\n"')
    assert only({"/metrics": text}).labels == {"model_name": '<!channel>"}{\\\n'}


@settings(max_examples=300)
@given(st.text(alphabet='vlm:x{}="\\, 1eN+.#\n\t', max_size=60))
def test_the_parser_refuses_in_two_ways_only(text: str) -> None:
    """What the reader catches is all that the library raises on foreign text."""
    try:
        assert sum(len(family.samples) for family in text_string_to_metric_families("vllm:x" + text)) >= 0
    except (ValueError, IndexError):
        return
