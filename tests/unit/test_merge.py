"""One deployment from several sources: who is believed, and what is kept of the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from advisor.domain.evidence import (
    CounterWindows,
    Disagreement,
    EngineSeries,
    Evidence,
    Flag,
    FlagSource,
    GpuInfo,
    HttpOutcomes,
    ModelInfo,
    ReportedPool,
    Samples,
    Window,
)
from advisor.engines.startup import StartupFacts
from advisor.merge import (
    as_one,
    startup_summary,
    with_endpoints,
    with_flags,
    with_metrics,
    with_replica_flags,
    with_startup,
)
from advisor.sources.metrics_reading import DeploymentMetrics
from tests.unit.outcomes.fleets import replica

CHAT = Evidence("chat", Window(0.0, 3600.0))
NONE = np.empty(0)


def engine(instance: str) -> EngineSeries:
    windows = CounterWindows(NONE, NONE, {})
    return EngineSeries(instance, "0", 0.0, Samples(NONE, NONE, NONE, None), windows, {}, {})


def metrics(*instances: str, **parts: Any) -> DeploymentMetrics:
    return DeploymentMetrics({"model_name": "chat"}, tuple(map(engine, instances)), instances, **parts)


@pytest.mark.parametrize(
    ("first", "second", "believed"),
    [
        ("server_info", "startup_log", 64),
        ("startup_log", "server_info", 32),
        ("config", "command_line", 32),
        ("command_line", "config", 64),
        ("default", "inferred", 32),
        ("startup_log", "startup_log", 64),  # of equals the first
    ],
)
def test_the_more_trusted_source_is_believed_and_the_other_is_kept(
    first: FlagSource, second: FlagSource, believed: int
) -> None:
    found = with_flags(with_flags(CHAT, {"max_num_seqs": 64}, first), {"max_num_seqs": 32}, second)
    assert found.flag("max_num_seqs") == believed
    (dispute,) = found.disagreements
    assert (dispute.believed.value, dispute.other.value) == (believed, 96 - believed)


def test_sources_that_agree_have_no_dispute() -> None:
    found = with_flags(with_flags(CHAT, {"max_num_seqs": 64}, "config"), {"max_num_seqs": 64}, "startup_log")
    assert found.flags["max_num_seqs"] == Flag(64, "startup_log")
    assert found.disagreements == ()


def test_a_start_up_log_tells_flags_pool_and_what_is_silent() -> None:
    facts = StartupFacts("vllm", "0.32.0", flags={"max_num_seqs": 16}, kv_pool_tokens=587_000, kv_available_bytes=8e9)
    found = with_startup(CHAT, facts)
    assert found.flags["max_num_seqs"] == Flag(16, "startup_log")
    assert found.flags["tensor_parallel_size"] == Flag(1, "default")
    assert found.flags["gpu_memory_utilization"] == Flag(0.92, "default")
    assert found.reported_pool == ReportedPool(587_000, "start-up log")
    assert found.gpu == GpuInfo(kv_available_bytes=8e9)
    assert "max_num_seqs" not in with_startup(CHAT, StartupFacts("vllm", "0.32.0")).flags


def test_the_weights_of_one_gpu_are_those_of_each() -> None:
    printed = StartupFacts("vllm", "0.32.0", flags={"tensor_parallel_size": 4}, weights_bytes=17.5e9)
    assert with_startup(CHAT, printed).model.weights_bytes == 70e9
    stages = replace(printed, flags={"tensor_parallel_size": 2, "pipeline_parallel_size": 4})
    assert with_startup(CHAT, stages).model.weights_bytes == 140e9
    stated = replace(CHAT, model=ModelInfo(weights_bytes=71e9))
    assert with_startup(stated, printed).model.weights_bytes == 71e9
    # SGLang is not known to run on one GPU where its log does not say so
    assert with_startup(CHAT, StartupFacts("sglang", weights_bytes=17.5e9)).model.weights_bytes is None


def test_silence_of_another_engine_is_no_statement() -> None:
    assert with_startup(CHAT, StartupFacts("sglang", "0.5.23")).flags == {}


def test_the_pool_that_metrics_report_stays() -> None:
    reported = with_metrics(CHAT, metrics("a:8000", reported_pool=ReportedPool(500_000, "metrics")))
    assert with_startup(reported, StartupFacts("vllm", kv_pool_tokens=587_000)).reported_pool == ReportedPool(
        500_000, "metrics"
    )


def test_metrics_replace_what_a_file_said_of_the_engines() -> None:
    found = with_metrics(with_flags(CHAT, {"max_model_len": 4096}, "config"), metrics("a:8000", "b:8000"))
    assert (found.replicas, len(found.engines), found.flag("max_model_len")) == (2, 2, 4096)


def test_engines_that_were_asked_one_by_one_are_one_deployment() -> None:
    one = metrics(
        "a:8000",
        version_hint="0.32.0",
        http=HttpOutcomes(90, 10, 0),
        reported_pool=ReportedPool(587_000, "a"),
        flags={"max_num_seqs": Flag(16, "metrics")},
        notes=("same",),
    )
    two = metrics(
        "b:8000",
        version_hint="0.31.0",
        http=HttpOutcomes(50, 0, 5),
        reported_pool=ReportedPool(500_000, "b"),
        flags={"max_num_seqs": Flag(32, "server_info")},
        notes=("same",),
    )
    both = as_one([one, two])
    assert (both.replicas, both.instances, len(both.engines)) == (2, ("a:8000", "b:8000"), 2)
    assert both.version_hint is None
    assert both.http == HttpOutcomes(140, 10, 5)
    assert both.reported_pool == ReportedPool(500_000, "b")  # advice must hold on each of them
    assert both.flags == {"max_num_seqs": Flag(32, "server_info")}
    assert [(d.believed.value, d.other.value) for d in both.disagreements] == [(32, 16)]
    assert both.notes == ("same",)
    assert as_one([one]) == one


def test_the_word_of_an_engine_is_added_to_what_prometheus_has() -> None:
    scraped = metrics("a:8000", "b:8000", version_hint=">=0.24")
    asked = metrics("a:8000", version_hint="0.32.0", flags={"max_num_seqs": Flag(16, "server_info")})
    both = with_endpoints(scraped, asked)
    found = with_metrics(CHAT, both)
    assert (found.engine_version, found.replicas, found.flag("max_num_seqs")) == ("0.32.0", 2, 16)
    assert [(e.version, dict(e.flags)) for e in both.engines] == [
        ("0.32.0", {"max_num_seqs": Flag(16, "server_info")}),
        (None, {}),
    ]


def fleet(*engines: EngineSeries, **parts: Any) -> DeploymentMetrics:
    return DeploymentMetrics({"model_name": "chat"}, engines, tuple(e.instance for e in engines), **parts)


def test_a_canary_does_not_speak_for_the_deployment() -> None:
    """Its cap is the engine's own word, and the siblings' is in their metrics only; neither disputes the other."""
    siblings = [replica(name, max_num_seqs=16, version="0.32.0", pool=500_000) for name in "abc"]
    scraped = fleet(
        *siblings,
        replica("d", version="0.33.0", pool=420_000),
        flags={"max_num_seqs": Flag(16, "metrics"), "block_size": Flag(16, "metrics")},
        reported_pool=ReportedPool(420_000, "metrics, the least of 4 engines"),
    )
    asked = metrics("d", version_hint="0.33.0", flags={"max_num_seqs": Flag(24, "server_info")})
    found = with_metrics(CHAT, with_endpoints(scraped, asked))
    assert [e.instance for e in found.engines] == ["a", "b", "c"]
    assert [e.instance for e in found.apart] == ["d"]
    assert [e.instance for e in found.every_engine] == ["a", "b", "c", "d"]
    assert (found.replicas, found.engine_version) == (4, "0.32.0")
    assert found.flags == {"max_num_seqs": Flag(16, "metrics"), "block_size": Flag(16, "metrics")}
    assert found.reported_pool == ReportedPool(500_000, "as reported, the least of 3 engines that run alike")
    assert found.disagreements == ()


def test_what_only_a_canary_tells_is_not_known_of_the_deployment() -> None:
    scraped = fleet(replica("a", pool=500_000), replica("b", pool=500_000), replica("d", pool=420_000))
    asked = metrics("d", flags={"max_num_seqs": Flag(24, "server_info")})
    stated = with_flags(CHAT, {"max_num_seqs": 16}, "config")
    assert with_metrics(CHAT, with_endpoints(scraped, asked)).flag("max_num_seqs") is None
    assert with_metrics(stated, with_endpoints(scraped, asked)).flags["max_num_seqs"] == Flag(16, "config")


def test_a_dispute_about_one_replica_stays_one() -> None:
    own = Disagreement("max_model_len", Flag(8192, "server_info"), Flag(4096, "metrics"))
    canary, others = replica("d", max_num_seqs=24), [replica(n, max_num_seqs=16, max_model_len=8192) for n in "ab"]
    about_cap = Disagreement("max_num_seqs", Flag(16, "metrics"), Flag(24, "metrics"))
    found = with_metrics(CHAT, fleet(canary, *others, disagreements=(own, about_cap)))
    assert found.disagreements == (own,)


def test_the_configuration_states_flags_of_single_replicas() -> None:
    told = with_replica_flags(fleet(*map(replica, "abc")), {"c": {"max_num_seqs": 24}}, {"max_num_seqs": 16})
    found = with_metrics(CHAT, told)
    assert [e.instance for e in found.apart] == ["c"]
    assert found.flags["max_num_seqs"] == Flag(16, "config")
    asked = fleet(replica("a", max_num_seqs=32), replica("c"))
    kept = with_replica_flags(asked, {"c": {"max_num_seqs": 24}}, {"max_num_seqs": 16})
    assert [e.flags["max_num_seqs"].value for e in kept.engines] == [32, 24]  # the engine's own word counts more


def test_a_start_up_log_in_one_line() -> None:
    facts = StartupFacts("vllm", "0.32.0", flags={"max_num_seqs": 16}, kv_pool_tokens=587_000)
    assert startup_summary(facts) == "vllm 0.32.0, 1 flags, 587,000 tokens of cache"
    assert startup_summary(StartupFacts("sglang")) == "sglang of unknown version, 0 flags, no KV pool printed"
