"""Names and labels there and back, and settings that would mislead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engines import METRICS
from advisor.sources.metrics_series import RawSeries
from advisor.sources.prometheus_spelling import Spelling, checked_names

RUNNING = "vllm:num_requests_running"


def series(name: str, **labels: str) -> RawSeries:
    return RawSeries(name, labels, np.array([1.0]), np.array([2.0]))


def test_the_longest_beginning_counts() -> None:
    spelling = Spelling(
        {"vllm:": "ray_vllm_", RUNNING: "engine:running:max", "vllm:time_to_first_token_seconds": "ttft"}
    )
    assert spelling.here("vllm:prompt_tokens_total") == "ray_vllm_prompt_tokens_total"
    assert spelling.here(RUNNING) == "engine:running:max"
    assert spelling.here("vllm:time_to_first_token_seconds_bucket") == "ttft_bucket"
    assert spelling.here("sglang:num_running_reqs") == "sglang:num_running_reqs"
    assert spelling.known("ttft_bucket") == "vllm:time_to_first_token_seconds_bucket"


@given(st.sampled_from(sorted(METRICS["vllm"].names)), st.from_regex(r"[a-z_:][a-z0-9_:]{0,20}", fullmatch=True))
def test_names_come_back_as_they_went(name: str, begins: str) -> None:
    spelling = Spelling({"vllm:": begins})
    assert spelling.known(spelling.here(name)) == name
    (back,) = spelling.canonical([series(spelling.here(name), instance="a")])
    assert back.name == name


def test_labels_that_federation_moved_take_their_place() -> None:
    labels = {"job": "federate", "instance": "p:9090", "exported_job": "vllm", "exported_instance": "a:8000"}
    (found,) = Spelling().canonical([series(RUNNING, **labels)])
    assert (found.labels["job"], found.labels["instance"]) == ("vllm", "a:8000")
    assert found.labels["exported_job"] == "vllm"  # where somebody took it for an identity label, it still is


def test_the_label_of_a_process_may_be_another() -> None:
    spelling = Spelling(instance_label="WorkerId")
    (found,) = spelling.canonical([series(RUNNING, instance="node", WorkerId="w1")])
    assert found.labels["instance"] == "w1"
    assert spelling.process_labels == ("job", "instance", "exported_job", "exported_instance", "WorkerId")


def test_series_that_name_no_process_are_left_out() -> None:
    assert Spelling().canonical([series(RUNNING, job="vllm"), series(RUNNING, instance="")]) == []


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ({"vlm:": "x"}, "no series that is read begins with 'vlm:'"),
        ({"": "x"}, "no series that is read begins with ''"),
        ({"vllm:": 'x{a="b"}'}, "cannot be the name of a series"),
        ({"vllm:": ""}, "cannot be the name of a series"),
        ({"vllm:prompt_tokens_total": "job:vllm_prompt_tokens:rate5m"}, "holds a rate: record the counter itself"),
        ({"vllm:time_to_first_token_seconds": "job:ttft_seconds:irate"}, "holds a rate"),
        ({"vllm:prompt_tokens_total": "a", "vllm:generation_tokens_total": "a"}, "would stand for both"),
    ],
)
def test_names_that_would_mislead_are_refused(names: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        checked_names(names)


def test_a_gauge_may_be_recorded_as_an_average() -> None:
    names = {"vllm:": "ray_vllm_", RUNNING: "engine:vllm_running:avg5m"}
    assert checked_names(names) == names
