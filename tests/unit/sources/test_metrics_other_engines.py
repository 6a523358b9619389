"""Series of engines other than vLLM become the same evidence; names and labels as the engines' sources define them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import Flag, HttpOutcomes, Window
from advisor.sources.metrics_assembly import assemble
from advisor.sources.metrics_canonical import settings_spells
from advisor.sources.metrics_reading import DeploymentMetrics, RawMetrics, Scope
from advisor.sources.metrics_series import RawSeries

SCOPE = Scope(("job", "model_name"), Window(0, 3600))
NOTHING = RawMetrics((), (), (), (), (), (), {})


def one(name: str, values: Sequence[float], start: float = 60, /, **labels: str) -> RawSeries:
    """One series of instance a:8000, a sample a minute."""
    found = {"job": "j", "instance": "a:8000"} | labels
    return RawSeries(name, found, start + 60.0 * np.arange(len(values), dtype=float), np.asarray(values, float))


def sglang(name: str, values: Sequence[float], **labels: str) -> RawSeries:
    return one(f"sglang:{name}", values, 60, model_name="m", **labels)


def only(**parts: object) -> DeploymentMetrics:
    (found,) = assemble(replace(NOTHING, **parts), SCOPE)  # type: ignore[arg-type]
    return found


def test_sglang_in_full() -> None:
    found = only(
        gauges=[
            sglang("num_running_reqs", [3, 4], tp_rank="0"),
            sglang("num_queue_reqs", [0, 2], tp_rank="0"),
            sglang("token_usage", [0.1, 0.2], tp_rank="0"),
        ],
        windows=[
            sglang("num_retracted_requests_total", [0, 2]),
            sglang("num_requests_total", [10, 30]),
            sglang("prompt_tokens_total", [0, 1000]),
            sglang("cached_tokens_total", [0, 100], cache_source="device"),
            sglang("cached_tokens_total", [0, 50], cache_source="host"),
            sglang("realtime_tokens_total", [0, 7], mode="decode"),
            sglang("realtime_tokens_total", [0, 800], mode="prefill_compute"),
            sglang("generation_tokens_total", [0, 400]),
            sglang("cuda_graph_passes_total", [0, 90], mode="decode_cuda_graph"),
            sglang("cuda_graph_passes_total", [0, 10], mode="decode_none"),
            sglang("cuda_graph_passes_total", [0, 5], mode="prefill_none"),
        ],
        configs=[
            sglang("max_total_num_tokens", [400_000, 400_000]),
            sglang("context_len", [32_768, 32_768]),
            sglang("page_size", [1, 1]),
        ],
        http=[
            sglang("http_responses_total", [5, 9], endpoint="/v1/chat/completions", method="POST", status_code="200"),
            sglang("http_responses_total", [0, 1], endpoint="/v1/chat/completions", method="POST", status_code="400"),
        ],
        present={("j", "a:8000"): frozenset({"sglang:context_len"})},
    )
    (engine,) = found.engines
    assert (found.engine_kind, found.version_hint, found.replicas) == ("sglang", ">=0.5.12", 1)
    assert engine.samples.waiting.tolist() == [0, 2]
    assert engine.samples.kv_usage is not None
    assert {name: gained.tolist() for name, gained in engine.windows.deltas.items()} == {
        "preemptions": [2],
        "finished": [20],
        "prompt_tokens": [1000],
        "prompt_tokens_computed": [800],
        "prefix_queries": [1000],
        "prefix_hits": [150],
        "generation_tokens": [7],
        "steps": [100],
    }
    assert found.flags["max_model_len"] == Flag(32_768, "metrics", engine.epoch_start)
    assert found.reported_pool is not None
    assert found.reported_pool.tokens == 400_000
    assert found.http == HttpOutcomes(4, 1, 0)


def test_older_sglang_counts_retractions_by_a_gauge_and_what_is_computed_by_difference() -> None:
    (engine,) = only(
        gauges=[sglang("num_running_reqs", [3, 4])],
        windows=[
            sglang("total_retracted_reqs", [1, 4]),
            sglang("prompt_tokens_total", [0, 1000]),
            sglang("cached_tokens_total", [0, 300]),
        ],
    ).engines
    assert engine.windows.total("preemptions") == 3
    assert engine.windows.total("prompt_tokens_computed") == 700


def test_the_tokenizers_figures_are_shared_out_among_the_ranks_it_serves() -> None:
    found = only(
        gauges=[sglang("num_running_reqs", [3, 4], dp_rank=rank) for rank in "01"],
        windows=[
            sglang("num_requests_total", [0, 30]),
            *(
                sglang("num_retracted_requests_total", [0, gained], dp_rank=rank)
                for rank, gained in (("0", 1), ("1", 4))
            ),
        ],
        configs=[sglang("max_total_num_tokens", [size, size], dp_rank=rank) for rank, size in (("0", 900), ("1", 800))],
    )
    assert [(e.engine, e.windows.total("finished"), e.windows.total("preemptions")) for e in found.engines] == [
        ("0", 15, 1),
        ("1", 15, 4),
    ]
    assert [e.pool_tokens for e in found.engines] == [900, 800]
    assert found.replicas == 1


def test_copies_of_tensor_parallel_ranks_are_one_engine_and_no_complaint() -> None:
    found = only(gauges=[sglang("num_running_reqs", [3, 4], tp_rank=rank) for rank in "0123"])
    assert [e.samples.running.tolist() for e in found.engines] == [[3, 4]]
    assert not any("taken for one" in note for note in found.notes)


def test_streamed_and_other_answers_are_added_up_bucket_by_bucket() -> None:
    name = "time_to_first_token_seconds_bucket"
    parts = [
        sglang(name, [0, gained], le=le, is_streaming=streamed)
        for streamed, row in (("True", (3, 5)), ("False", (10, 10)))
        for le, gained in zip(("0.1", "+Inf"), row, strict=True)
    ]
    (engine,) = only(gauges=[sglang("num_running_reqs", [1, 1])], windows=parts).engines
    assert engine.latencies["ttft"].counts.tolist() == [13, 2]


def test_a_config_gauge_that_changes_begins_an_epoch() -> None:
    found = only(
        gauges=[sglang("num_running_reqs", [1, 2, 3, 4])],
        configs=[sglang("max_total_num_tokens", [500, 500, 900, 900])],
    )
    assert found.engines[0].epoch_start == 180
    assert found.engines[0].samples.running.tolist() == [3, 4]
    assert found.reported_pool is not None
    assert found.reported_pool.tokens == 900


def test_a_config_gauge_is_a_series_for_each_value_it_had() -> None:
    spells = settings_spells(one("sglang:context_len", [4096, 4096, 8192]))
    assert [(s.labels["sglang:context_len"], s.times.tolist()) for s in spells] == [
        ("4096", [60, 120]),
        ("8192", [180]),
    ]


@pytest.mark.parametrize(("label", "role"), [("prefill", "prefill"), ("decode", "decode"), ("unified", None)])
def test_sglang_says_which_part_of_requests_it_serves(label: str, role: str | None) -> None:
    found = only(gauges=[sglang("num_running_reqs", [3, 4], engine_type=label)])
    assert [engine.role for engine in found.engines] == [role]


def test_vllm_with_a_connector_to_other_engines_serves_a_part() -> None:
    running = one("vllm:num_requests_running", [3, 4], 60, model_name="m", engine="0")
    handing = frozenset({"vllm:nixl_xfer_time_seconds_count", "vllm:kv_cache_usage_perc"})
    assert only(gauges=[running], present={("j", "a:8000"): handing}).engines[0].role == "part"
    assert only(gauges=[running], present={("j", "a:8000"): frozenset()}).engines[0].role is None


def test_an_engine_that_sleeps_is_no_replica_and_no_load() -> None:
    awake, asleep = (
        one("vllm:num_requests_running", [load, load], 60, model_name="m", engine="0", instance=instance)
        for instance, load in (("a:8000", 4), ("b:8000", 0))
    )
    found = only(gauges=[awake, asleep], present={("j", "b:8000"): frozenset({"vllm:engine_sleep_state"})})
    assert (found.replicas, found.instances) == (1, ("a:8000",))
    assert [engine.samples.running.tolist() for engine in found.engines] == [[4, 4], []]
    assert "1 engines sleep; only their lengths are used" in found.notes


def test_tgi_tells_its_cache_in_tokens_that_are_reserved() -> None:
    found = only(
        gauges=[
            one("tgi_batch_current_size", [2, 4]),
            one("tgi_queue_size", [0, 9]),
            one("tgi_batch_current_max_tokens", [3000, 6000]),
        ],
        windows=[
            one("tgi_request_success", [0, 12]),
            one("tgi_request_input_length_sum", [0, 5000]),
            one("tgi_batch_inference_count", [0, 400], method="decode"),
            one("tgi_batch_inference_count", [0, 12], method="prefill"),
        ],
        configs=[one("tgi_batch_max_total_tokens", [12_000, 12_000])],
        http=[
            one("tgi_request_success", [0, 12]),
            one("tgi_request_failure", [0, 3], err="validation"),
            one("tgi_request_failure", [0, 2], err="overloaded"),
        ],
    )
    (engine,) = found.engines
    assert (found.engine_kind, found.labels, found.version_hint) == ("tgi", {"job": "j", "model_name": ""}, ">=2.3.1")
    assert engine.samples.kv_usage is not None
    assert engine.samples.kv_usage.tolist() == [0.25, 0.5]
    assert engine.windows.total("steps") == 400
    assert engine.windows.total("prompt_tokens") == 5000
    assert engine.windows.total("preemptions") is None
    assert found.http == HttpOutcomes(12, 3, 2)


def test_tgi_before_it_told_its_pool_tells_no_usage() -> None:
    (engine,) = only(
        gauges=[one("tgi_batch_current_size", [2, 4]), one("tgi_batch_current_max_tokens", [3000, 6000])]
    ).engines
    assert engine.samples.kv_usage is None
    assert np.isnan(engine.samples.waiting).all()


def test_llamacpp_as_far_as_its_metrics_go() -> None:
    (engine,) = only(
        gauges=[one("llamacpp:requests_processing", [1, 2]), one("llamacpp:requests_deferred", [0, 3])],
        windows=[
            one("llamacpp:tokens_predicted_total", [0, 300]),
            one("llamacpp:tokens_predicted_seconds_total", [0, 6]),
            one("llamacpp:n_decode_total", [0, 100]),
        ],
    ).engines
    # 300 tokens in 100 calls: 3 sequences a call, 20 ms a token
    assert engine.windows.total("itl_count") == 300
    assert engine.windows.total("itl_sum") == pytest.approx(6)
    assert engine.windows.total("steps") == 100
    assert engine.latencies == {}


def test_a_front_end_gives_lengths_and_settings_and_no_load() -> None:
    found = only(
        gauges=[one("dynamo_frontend_inflight_requests", [5, 6], model="m")],
        configs=[
            one("dynamo_frontend_model_max_num_seqs", [256, 256], model="m"),
            one("dynamo_frontend_model_total_kv_blocks", [1000, 1000], model="m"),
            one("dynamo_frontend_model_kv_cache_block_size", [16, 16], model="m"),
        ],
    )
    assert found.labels == {"job": "j", "model_name": "m"}
    assert found.replicas == 0
    assert np.isnan(found.engines[0].samples.running).all()
    assert found.flags["max_num_seqs"].value == 256
    assert found.reported_pool is not None
    assert found.reported_pool.tokens == 16_000


def test_engines_of_two_kinds_under_one_name_are_two_deployments() -> None:
    gauges = [
        sglang("num_running_reqs", [1, 1]),
        one("vllm:num_requests_running", [2, 2], model_name="m", instance="b:8000"),
    ]
    found = assemble(replace(NOTHING, gauges=gauges), SCOPE)
    assert [(d.engine_kind, d.labels["serving_engine"]) for d in found] == [("sglang", "sglang"), ("vllm", "vllm")]


def test_series_of_no_known_engine_are_passed_over() -> None:
    assert assemble(replace(NOTHING, gauges=[one("node_load1", [1, 2])]), SCOPE) == ()
