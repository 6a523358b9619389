"""Engines by how they were started, joined to the deployments that they are of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import EngineSeries, Evidence, Flag, Samples, Window
from advisor.engines.command_line import Launch
from advisor.merge import with_flags
from advisor.sources.manifests import Declared
from advisor.sources.metrics_engine import NO_WINDOWS
from advisor.sources.metrics_reading import DeploymentMetrics
from advisor.sources.processes import EngineProcess, ProcessReading
from advisor.started import by_model, manifest_state, process_state, to_one, unscraped, with_processes

WINDOW = Window(0.0, 3600.0)
CHAT = Evidence("chat", WINDOW)
ALIVE = Samples(np.array([3600.0]), np.array([1.0]), np.array([0.0]), None)


def launch(*names: str, **flags: int) -> Launch:
    return Launch("vllm", 8000, flags, names)


def declared(*names: str, replicas: int | None = 1, version: str | None = None, **flags: int) -> Declared:
    return Declared("object", launch(*names, **flags), replicas, 4, version)


def scraped(*instances: str) -> DeploymentMetrics:
    engines = (EngineSeries(i, "0", 0.0, ALIVE, NO_WINDOWS, {}, {}) for i in instances)
    return DeploymentMetrics({"model_name": "chat"}, tuple(engines), instances, version_hint="0.11.0")


def here(*engines: EngineProcess) -> ProcessReading:
    return ProcessReading(engines, 100, frozenset({"localhost", "10.0.0.7"}))


def test_a_process_is_the_engine_that_is_scraped_at_its_address() -> None:
    running = here(EngineProcess(1, launch(max_num_seqs=64), (8001,), 60.0))
    metrics = with_processes(scraped("10.0.0.7:8001", "10.0.0.8:8001"), running)
    mine, other = metrics.engines
    assert mine.flags["max_num_seqs"] == metrics.flags["max_num_seqs"] == Flag(64, "process", 60.0)
    # Nothing hidden and no -tp on the command line of a 0.11.0: one GPU, of which 90 % are taken.
    assert mine.flags["tensor_parallel_size"].value == 1
    assert mine.flags["gpu_memory_utilization"] == Flag(0.9, "process", 60.0)
    assert other.flags == {}
    assert unscraped(running, [metrics]) == ()


@pytest.mark.parametrize("instance", ["10.0.0.8:8001", "10.0.0.7:8000", "10.0.0.7"])
def test_another_address_is_another_engine(instance: str) -> None:
    running = here(EngineProcess(1, launch(max_num_seqs=64), (8001,)))
    assert "max_num_seqs" not in with_processes(scraped(instance), running).flags
    assert len(unscraped(running, [scraped(instance)])) == 1


def test_a_manifest_joins_by_the_name_that_is_served() -> None:
    known = {"chat": with_flags(CHAT, {"max_num_seqs": 64}, "startup_log"), "code": replace(CHAT, name="code")}
    joined = by_model(known, [declared("chat", replicas=3, version="0.11.0", max_num_seqs=256)], "manifest", WINDOW)
    chat = joined.deployments["chat"]
    assert (chat.flag("max_num_seqs"), chat.replicas, chat.engine_version) == (64, 3, "0.11.0")
    (dispute,) = chat.disagreements
    assert (dispute.other.value, dispute.other.source) == (256, "manifest")
    assert (joined.deployments["code"], joined.notes) == (known["code"], ())


def test_a_manifest_of_another_model_is_named_and_joins_nothing() -> None:
    joined = by_model({"chat": CHAT}, [declared("other", max_num_seqs=8)], "manifest", WINDOW)
    assert joined.deployments == {"chat": CHAT}
    assert joined.notes == ("no deployment serves other: put the file under deployments.NAME.manifests",)


def test_the_only_engine_without_a_name_is_that_of_the_only_deployment() -> None:
    joined = by_model({"chat": CHAT}, [declared(max_num_seqs=8)], "manifest", WINDOW)
    assert joined.deployments["chat"].flag("max_num_seqs") == 8


def test_without_any_deployment_each_model_is_one() -> None:
    joined = by_model({}, [declared("chat"), declared("code"), declared()], "manifest", WINDOW)
    assert list(joined.deployments) == ["chat", "code", "object"]


def test_engines_of_one_model_tell_what_they_agree_in() -> None:
    a = declared("chat", replicas=3, version="0.11.0", max_num_seqs=64, max_model_len=4096)
    b = declared("chat", replicas=1, version="0.12.0", max_num_seqs=96, max_model_len=4096)
    found, notes = to_one(CHAT, [a, b], "manifest")
    assert {name: flag.value for name, flag in found.flags.items()} == {"max_model_len": 4096}
    assert (found.replicas, found.engine_version) == (4, None)
    assert notes == ["max_num_seqs differs between the engines of chat, so it is not taken"]


def test_an_engine_of_another_kind_is_not_the_one_that_is_scraped() -> None:
    running = replace(CHAT, engine="sglang", engines=scraped("a:1").engines)
    assert by_model({"chat": running}, [declared("chat", max_num_seqs=8)], "manifest", WINDOW).notes


def test_what_was_read_is_told_in_one_line() -> None:
    gap = replace(launch("chat", max_num_seqs=8), unresolved=("max_model_len is $LEN, which is not told here",))
    state = manifest_state("a.yaml", [Declared("object", gap, 2, 4)], ())
    assert (state.status, state.detail) == (
        "partial",
        "vllm chat: 1 flag, 2 replicas of 4 GPUs; chat: max_model_len is $LEN, which is not told here",
    )
    assert manifest_state("a.yaml", [declared("chat")], ()).status == "ok"
    many = manifest_state("a.yaml", [declared(f"m{i}") for i in range(9)], ())
    assert many.detail.endswith("vllm m4: 0 flags, 1 replica of 4 GPUs; and 4 more")


def test_no_process_is_told_with_what_may_hide_them() -> None:
    state = process_state(here(), ())
    assert (state.status, state.detail.partition(";")[0]) == (
        "partial",
        "no engine that is known among the 100 processes that this account sees",
    )
    found = process_state(here(EngineProcess(1, launch(max_num_seqs=64), (8001,))), ())
    assert found.detail == "vllm on port 8001: 1 flag; among 100 processes that this account sees"
