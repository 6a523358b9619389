"""From raw series to deployments: joins, epochs, replicas that differ or left, two names for one thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from advisor.domain.evidence import HttpOutcomes, Window
from advisor.sources.metrics_assembly import assemble
from advisor.sources.metrics_reading import DeploymentMetrics, RawMetrics, Scope
from advisor.sources.metrics_series import RawSeries

SCOPE = Scope(("job", "model_name"), Window(0, 3600))
CONFIG = {"block_size": "16", "num_gpu_blocks": "1000", "cache_dtype": "auto"}


def one(name: str, values: Sequence[float], start: float = 60, /, **labels: str) -> RawSeries:
    """One series, a sample a minute."""
    found = {"job": "vllm", "instance": "a:8000", "model_name": "m", "engine": "0"} | labels
    kept = {k: v for k, v in found.items() if v}
    return RawSeries(name, kept, start + 60.0 * np.arange(len(values), dtype=np.float64), np.asarray(values, float))


def running(values: Sequence[float], **labels: str) -> RawSeries:
    return one("vllm:num_requests_running", values, **labels)


def config(values: Sequence[float], start: float = 60, **labels: str) -> RawSeries:
    return one("vllm:cache_config_info", values, start, model_name="", **(CONFIG | labels))


def process_start(value: float, count: int = 3, start: float = 60, **labels: str) -> RawSeries:
    return one("process_start_time_seconds", [value] * count, start, model_name="", engine="", **labels)


NOTHING = RawMetrics((), (), (), (), (), (), {})


def deployments(scope: Scope = SCOPE, **parts: object) -> tuple[DeploymentMetrics, ...]:
    return assemble(replace(NOTHING, **parts), scope)  # type: ignore[arg-type]


def only(scope: Scope = SCOPE, **parts: object) -> DeploymentMetrics:
    (found,) = deployments(scope, **parts)
    return found


def test_no_series_no_deployment() -> None:
    assert deployments() == ()


def test_deployments_are_told_apart_by_their_labels() -> None:
    gauges = [running([1]), running([1], model_name="n"), running([1], job="other"), running([1], instance="b:8000")]
    found = deployments(gauges=gauges)
    assert [d.labels for d in found] == [
        {"job": "other", "model_name": "m"},
        {"job": "vllm", "model_name": "m"},
        {"job": "vllm", "model_name": "n"},
    ]
    assert [d.instances for d in found] == [("a:8000",), ("a:8000", "b:8000"), ("a:8000",)]


def test_series_without_model_name_join_on_job_instance_and_engine() -> None:
    found = deployments(
        gauges=[running([1]), running([1], model_name="n", instance="b:8000")],
        configs=[config([1]), config([1], instance="b:8000", block_size="32"), config([1], job="x", block_size="64")],
    )
    assert [d.flags["block_size"].value for d in found] == [16, 32]
    assert [d.flags["block_size"].source for d in found] == ["metrics", "metrics"]


def test_one_engine_that_two_servers_scrape_is_one_engine() -> None:
    gauges = [running([1, 3], prometheus_replica="a"), running([2, 2], prometheus_replica="b")]
    found = only(gauges=gauges)
    assert (found.replicas, found.engines[0].samples.running.tolist()) == (1, [2, 3])
    assert not any("taken for one" in note for note in found.notes)


def test_engines_of_two_clusters_at_one_address_are_said_to_be_taken_for_one() -> None:
    found = only(gauges=[running([1], cluster="eu"), running([2], cluster="us")])
    assert "engines differ only in cluster and were taken for one: put it in identity_labels" in found.notes
    apart = Scope((*SCOPE.identity_labels, "cluster"), SCOPE.window)
    assert len(deployments(apart, gauges=[running([1], cluster="eu"), running([2], cluster="us")])) == 2


def test_an_engine_of_before_the_engine_label_is_engine_0() -> None:
    found = only(gauges=[running([1], engine="")], configs=[config([1], engine="")])
    assert [e.engine for e in found.engines] == ["0"]
    assert found.flags["block_size"].value == 16


def test_an_epoch_begins_with_the_process() -> None:
    finished = one("vllm:request_success_total", [90, 100, 4, 10], finished_reason="stop")
    found = only(gauges=[running([5, 6, 7, 8])], windows=[finished], starts=[process_start(150)])
    (engine,) = found.engines
    assert engine.epoch_start == 150
    assert engine.epoch_cause == "restarted"
    assert engine.samples.running.tolist() == [7, 8]
    assert engine.windows.start.tolist() == [150, 180]
    assert engine.windows.end.tolist() == [180, 240]
    assert engine.windows.deltas["finished"].tolist() == [4, 6]


def test_what_a_server_repeats_after_a_restart_is_of_the_process_before() -> None:
    # started at 110; at 120 and 180 Prometheus still gave the last readings before it
    finished = one("vllm:request_success_total", [90, 90, 90, 4], finished_reason="stop")
    found = only(gauges=[running([16, 16, 16, 7])], windows=[finished], starts=[process_start(110)])
    (engine,) = found.engines
    assert engine.epoch_start == 110
    assert engine.samples.running.tolist() == [7]
    assert engine.windows.deltas["finished"].tolist() == [4]


def test_a_start_before_the_time_read_dates_the_epoch_and_is_no_reading() -> None:
    finished = one("vllm:request_success_total", [90, 100], finished_reason="stop")
    scope = replace(SCOPE, window=Window(50, 3600))
    (engine,) = only(scope, gauges=[running([5, 6])], windows=[finished], starts=[process_start(20)]).engines
    assert engine.epoch_start == 20
    assert engine.windows.deltas["finished"].tolist() == [10]


def test_without_process_start_a_reset_begins_an_epoch() -> None:
    counters = [one("vllm:generation_tokens_total", [90, 100, 4, 10]), one("vllm:prompt_tokens_total", [9, 10, 1, 2])]
    (engine,) = only(gauges=[running([5, 6, 7, 8])], windows=counters).engines
    assert engine.epoch_start == 180
    assert engine.epoch_cause == "counters_reset"
    assert engine.samples.running.tolist() == [7, 8]
    assert engine.windows.deltas["generation_tokens"].tolist() == [6]


def test_a_change_of_the_cache_configuration_begins_an_epoch() -> None:
    changed = [config([1, 1]), config([1, 1], start=180, num_gpu_blocks="900")]
    (engine,) = only(gauges=[running([5, 6, 7, 8])], configs=changed).engines
    assert engine.epoch_start == 180
    assert engine.epoch_cause == "changed"
    relabelled = [config([1, 1]), config([1, 1], start=180, sliding_window="None")]
    (engine,) = only(gauges=[running([5, 6, 7, 8])], configs=relabelled).engines
    assert engine.epoch_start == 60
    assert engine.epoch_cause == "first_seen"


def test_a_restart_explains_the_new_configuration_that_is_seen_later() -> None:
    changed = [config([1]), config([1], start=1260, num_gpu_blocks="900")]
    found = only(
        gauges=[running([5] * 30)], configs=changed, starts=[process_start(100), process_start(400, start=600)]
    )
    assert found.engines[0].epoch_start == 400
    assert found.engines[0].epoch_cause == "changed"
    assert found.reported_pool is not None
    assert found.reported_pool.tokens == 900 * 16


def test_lengths_survive_the_epoch_and_latencies_do_not() -> None:
    def buckets(name: str) -> list[RawSeries]:
        return [
            one(f"{name}_bucket", [10, 20, 3], le="1"),
            one(f"{name}_bucket", [10, 30, 4], le="+Inf"),
            one(f"{name}_sum", [10, 100, 9]),
        ]

    whole = [*buckets("vllm:request_prompt_tokens"), *buckets("vllm:request_queue_time_seconds")]
    (engine,) = only(gauges=[running([1, 1, 1])], whole=whole, starts=[process_start(150)]).engines
    assert engine.lengths["prompt_tokens"].counts.tolist() == [13, 11]  # 10 + 3 within 1, (30 - 10) + 4 in all
    assert engine.lengths["prompt_tokens"].total == 99  # 90 + 9
    assert engine.latencies["queue"].counts.tolist() == [3, 1]
    assert set(engine.lengths) == {"prompt_tokens"}
    assert set(engine.latencies) == {"queue"}


def test_what_only_some_settings_expose_is_read_and_not_missed() -> None:
    name = "vllm:kv_block_reuse_gap_seconds"
    gaps = [one(f"{name}_bucket", [0, 6], le="30"), one(f"{name}_bucket", [0, 9], le="+Inf")]
    far = [
        one("vllm:external_prefix_cache_queries_total", [0, 40]),
        one("vllm:external_prefix_cache_hits_total", [0, 10]),
    ]
    found = only(gauges=[running([1, 1])], whole=gaps, windows=far)
    assert found.engines[0].latencies["block_reuse_gap"].counts.tolist() == [6, 3]
    assert found.engines[0].windows.total("external_prefix_queries") == 40
    assert found.engines[0].windows.total("external_prefix_hits") == 10
    (note,) = only(gauges=[running([1, 1])]).notes
    assert "block_reuse_gap" not in note
    assert "external_prefix" not in note


def test_windows_carry_the_new_observations_of_the_histograms() -> None:
    name = "vllm:request_time_per_output_token_seconds"
    buckets = [
        one(f"{name}_bucket", [0, 1, 3], le="0.025"),
        one(f"{name}_bucket", [0, 2, 6], le="0.05"),
        one(f"{name}_bucket", [0, 2, 7], le="+Inf"),
    ]
    (engine,) = only(gauges=[running([1, 1, 1])], windows=buckets).engines
    assert engine.windows.tpot_edges is not None
    assert engine.windows.tpot is not None
    assert engine.windows.tpot_edges.tolist() == [0.025, 0.05]
    assert engine.windows.tpot.tolist() == [[1, 1, 0], [2, 2, 1]]
    assert engine.windows.ttft is None
    assert engine.latencies["tpot"].counts.tolist() == [3, 3, 1]


def test_two_names_for_one_thing_are_never_added() -> None:
    old, new = "vllm:time_per_output_token_seconds_sum", "vllm:inter_token_latency_seconds_sum"
    gauges = [
        running([1, 1]),
        one("vllm:gpu_cache_usage_perc", [0.4, 0.5]),
        one("vllm:kv_cache_usage_perc", [0.4, 0.5]),
    ]
    (engine,) = only(gauges=gauges, windows=[one(old, [1, 3]), one(new, [1, 3])]).engines
    assert engine.windows.deltas["itl_sum"].tolist() == [2]
    assert engine.samples.kv_usage is not None
    assert engine.samples.kv_usage.tolist() == [0.4, 0.5]
    (engine,) = only(gauges=gauges[:2], windows=[one(old, [1, 3])]).engines
    assert engine.windows.deltas["itl_sum"].tolist() == [2]
    assert engine.samples.kv_usage is not None


def test_gauges_of_several_api_processes_show_one_engine() -> None:
    found = only(gauges=[running([3, 3], pid="1"), running([5, 2], pid="2")])
    assert found.engines[0].samples.running.tolist() == [5, 3]
    assert found.notes == only(gauges=[running([5, 3])]).notes


def test_replicas_that_only_another_label_tells_apart_are_reported() -> None:
    gauges = [running([3, 3], pod="p1"), running([5, 2], pod="p2")]
    assert any("only in pod" in note for note in only(gauges=gauges).notes)
    scope = replace(SCOPE, identity_labels=("job", "model_name", "pod"))
    assert len(deployments(scope, gauges=gauges)) == 2


def test_prompt_tokens_computed_come_from_their_own_counter_or_by_difference() -> None:
    counters = [
        one("vllm:prompt_tokens_total", [0, 100]),
        one("vllm:prefix_cache_hits_total", [0, 30]),
        one("vllm:prompt_tokens_by_source_total", [0, 60], source="local_compute"),
        one("vllm:prompt_tokens_by_source_total", [0, 40], source="local_cache_hit"),
    ]
    (engine,) = only(gauges=[running([1, 1])], windows=counters).engines
    assert engine.windows.deltas["prompt_tokens_computed"].tolist() == [60]
    (engine,) = only(gauges=[running([1, 1])], windows=counters[:2]).engines
    assert engine.windows.deltas["prompt_tokens_computed"].tolist() == [70]
    in_blocks = [counters[0], one("vllm:gpu_prefix_cache_hits_total", [0, 30])]
    (engine,) = only(gauges=[running([1, 1])], windows=in_blocks).engines
    assert "prompt_tokens_computed" not in engine.windows.deltas


def test_what_is_not_exposed_is_absent_and_told() -> None:
    found = only(gauges=[running([1, 1])], windows=[one("vllm:generation_tokens_total", [1, 5])])
    assert set(found.engines[0].windows.deltas) == {"generation_tokens"}
    assert found.engines[0].samples.kv_usage is None
    assert np.isnan(found.engines[0].samples.waiting).all()
    assert found.engines[0].windows.total("finished") is None
    assert found.notes[0].startswith("nothing counted for: preemptions, finished")
    assert found.http is None
    assert found.reported_pool is None


def test_ranks_share_the_blocks_and_count_as_one_replica() -> None:
    ranks = [running([1], engine="0"), running([2], engine="1")]
    found = only(gauges=ranks, configs=[config([1], engine="0"), config([1], engine="1")])
    assert found.replicas == 1
    assert len(found.engines) == 2
    assert found.reported_pool is not None
    assert found.reported_pool.tokens == 8000  # 1,000 blocks x 16 / 2


def test_replicas_that_differ_are_reported_and_the_least_pool_counts() -> None:
    names = [f"{i}:8000" for i in range(3)]
    found = only(
        gauges=[running([1], instance=name) for name in names],
        configs=[
            config([1], instance=name, gpu_memory_utilization=share, num_gpu_blocks=blocks)
            for name, share, blocks in zip(names, ("0.9", "0.9", "0.8"), ("1000", "1000", "900"), strict=True)
        ],
    )
    assert found.flags["gpu_memory_utilization"].value == 0.9
    assert [(d.flag, d.believed.value, d.other.value) for d in found.disagreements] == [
        ("gpu_memory_utilization", 0.9, 0.8)
    ]
    assert found.reported_pool is not None
    assert found.reported_pool.tokens == 14400
    assert "least of 3 engines" in found.reported_pool.source


def test_a_replica_that_left_before_the_present_epoch_gives_lengths_only() -> None:
    def lengths(instance: str) -> list[RawSeries]:
        name = "vllm:request_prompt_tokens_bucket"
        return [one(name, [0, 5], le="100", instance=instance), one(name, [0, 5], le="+Inf", instance=instance)]

    old, new = running([9, 9], instance="old:8000"), one("vllm:num_requests_running", [1, 1], 2000, instance="new:8000")
    starts = [process_start(10, instance="old:8000"), process_start(1900, start=2000, instance="new:8000")]
    found = only(gauges=[old, new], whole=[*lengths("old:8000"), *lengths("new:8000")], starts=starts)
    assert found.instances == ("new:8000",)
    gone = next(e for e in found.engines if e.instance == "old:8000")
    assert gone.samples.time.size == 0
    assert gone.windows.start.size == 0
    assert gone.lengths["prompt_tokens"].n == 5
    assert any("1 engines left" in note for note in found.notes)


def test_a_replica_that_came_and_went_within_the_present_epoch_counts() -> None:
    stays = running([1] * 50, instance="stays:8000")
    burst = running([9, 9], instance="burst:8000")
    starts = [process_start(10, instance="stays:8000"), process_start(30, instance="burst:8000")]
    found = only(gauges=[stays, burst], starts=starts)
    assert found.instances == ("stays:8000",)
    assert next(e for e in found.engines if e.instance == "burst:8000").samples.running.tolist() == [9, 9]


def test_http_answers_are_counted_by_class_for_the_engines_only() -> None:
    def answers(values: Sequence[float], status: str, **labels: str) -> RawSeries:
        found = {"handler": "/v1/completions", "method": "POST", "status": status} | labels
        return one("http_requests_total", values, model_name="", engine="", **found)

    http = [
        answers([10, 20], "2xx"),
        answers([5, 6], "2xx", handler="/v1/chat/completions"),
        one("http_requests_total", [3], 120, model_name="", engine="", handler="/v1/completions", status="4xx"),
        answers([0, 99], "5xx", instance="proxy:80"),
    ]
    assert only(gauges=[running([1, 1])], http=http).http == HttpOutcomes(11, 3, 0)


def test_releases_that_differ_give_no_version() -> None:
    gauges = [running([1]), running([1], instance="b:8000")]
    new, old = frozenset({"vllm:admission_rejections_total"}), frozenset({"vllm:prompt_tokens_by_source_total"})
    same = only(gauges=gauges, present={("vllm", "a:8000"): new, ("vllm", "b:8000"): new})
    assert same.version_hint == ">=0.32"
    mixed = only(gauges=gauges, present={("vllm", "a:8000"): new, ("vllm", "b:8000"): old})
    assert mixed.version_hint is None
    assert any(">=0.16,<0.20, >=0.32" in note for note in mixed.notes)


def test_edges_that_are_no_numbers_are_passed_over() -> None:
    name = "vllm:request_prompt_tokens_bucket"
    whole = [one(name, [0, 5], le=le) for le in ("100", "100.0", "nan", "<!channel>", "+Inf")]
    (engine,) = only(gauges=[running([1, 1])], whole=whole).engines
    assert engine.lengths["prompt_tokens"].edges.tolist() == [100]
    assert engine.lengths["prompt_tokens"].counts.tolist() == [5, 0]
