"""Whose a logged request is, with metrics, without any, and while their source is down."""

from __future__ import annotations

import math

import pytest

from advisor.owners import Owners
from advisor.sources.metrics_reading import DeploymentMetrics
from tests.unit.outcomes.fleets import HOUR, NOW, replica

KNOWN = Owners(
    instances={"10.0.0.1:8000": ("chat", 500.0), "10.0.0.2:8000": ("chat", 700.0), "10.0.0.3:8000": ("rag", 300.0)},
    models={"acme/chat": "chat"},
    only_known=True,
    sure=True,
    since=100.0,
)


@pytest.mark.parametrize(
    ("model", "upstream", "deployment"),
    [
        ("acme/chat", "10.0.0.3:8000", "rag"),
        ("acme/chat", "elsewhere:8000", "chat"),
        ("somebody/else", "", None),
    ],
    ids=["the replica tells", "else the model", "else it is somebody else's"],
)
def test_with_metrics(model: str, upstream: str, deployment: str | None) -> None:
    assert KNOWN.resolve(model, upstream) == deployment


def test_a_line_that_names_no_model_is_of_the_only_deployment() -> None:
    """As SGLang's and TGI's own lines are."""
    assert KNOWN.resolve("", "") == "chat"
    two = Owners(instances={}, models={"a": "a", "b": "b"}, only_known=True, sure=True, since=0.0)
    assert two.resolve("", "") is None
    assert Owners.of({}, {}, sure=True, since=100.0).resolve("", "") == "unnamed"


def test_without_metrics_every_model_is_a_deployment() -> None:
    alone = Owners.of({}, {}, sure=True, since=100.0)
    assert alone.resolve("somebody/else", "10.0.0.9:8000") == "somebody/else"
    assert (alone.latency_since("10.0.0.9:8000"), alone.epoch_of("somebody/else")) == (100.0, 100.0)


def test_latencies_are_of_the_present_epoch() -> None:
    assert KNOWN.latency_since("10.0.0.3:8000") == 300.0
    assert KNOWN.latency_since("unknown:1") == 700.0, "the latest of all, because it may be any of them"
    assert KNOWN.epoch_of("chat") == 700.0


def test_a_replica_that_runs_apart_is_of_no_epoch_of_its_deployment() -> None:
    """Its requests are the deployment's; its latencies are of other settings, whenever it started."""
    engines = tuple(replica(name, hours=hours) for name, hours in (("a:1", 50), ("b:1", 40), ("d:1", 5)))
    found = DeploymentMetrics({"model_name": "acme/chat"}, engines, ("a:1", "b:1", "d:1"))
    owners = Owners.of({"chat": found}, {}, sure=True, since=100.0, apart={"d:1"})
    assert owners.resolve("acme/chat", "d:1") == "chat"
    assert owners.latency_since("d:1") == math.inf
    assert owners.epoch_of("chat") == owners.latency_since("unknown:1") == NOW - 40 * HOUR
