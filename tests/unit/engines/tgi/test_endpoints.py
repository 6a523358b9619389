"""TGI's `/info`; bodies are composed from the fields of its source, of 2.0 and 3.3."""

from __future__ import annotations

from advisor.engines.tgi.endpoints import info

NEW = {
    "model_id": "org/chat-8b",
    "max_concurrent_requests": 128,
    "max_input_tokens": 8191,
    "max_total_tokens": 8192,
    "validation_workers": 2,
    "version": "3.3.7",
    "sha": None,
}
OLD = NEW | {"version": "2.0.4", "max_batch_total_tokens": 65_536, "waiting_served_ratio": 0.3, "max_batch_size": None}


def test_the_limits_of_a_request_and_the_model() -> None:
    told = info(NEW)
    assert told is not None
    assert (told.version, told.model, told.pool_tokens) == ("3.3.7", "org/chat-8b", None)
    assert told.flags == {"max_model_len": 8192, "max_concurrent_requests": 128, "max_input_tokens": 8191}


def test_older_releases_tell_the_pool_too() -> None:
    told = info(OLD)
    assert told is not None
    assert told.pool_tokens == 65_536
    assert told.flags["waiting_served_ratio"] == 0.3
    assert "max_batch_size" not in told.flags


def test_another_shape_is_no_answer() -> None:
    assert info({"model": "m"}) is None
    assert info(None) is None
