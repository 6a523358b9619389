"""Whose a logged request is, with metrics, without any, and while their source is down."""

from __future__ import annotations

import pytest

from advisor.owners import Owners

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


def test_without_metrics_every_model_is_a_deployment() -> None:
    alone = Owners.of({}, {}, sure=True, since=100.0)
    assert alone.resolve("somebody/else", "10.0.0.9:8000") == "somebody/else"
    assert (alone.latency_since("10.0.0.9:8000"), alone.epoch_of("somebody/else")) == (100.0, 100.0)


def test_latencies_are_of_the_present_epoch() -> None:
    assert KNOWN.latency_since("10.0.0.3:8000") == 300.0
    assert KNOWN.latency_since("unknown:1") == 700.0, "the latest of all, because it may be any of them"
    assert KNOWN.epoch_of("chat") == 700.0
