"""The setting that is named for engines under another name."""

from __future__ import annotations

import json

import pytest

from advisor.domain.evidence import Window
from advisor.sources.prometheus import PrometheusOptions, read_prometheus
from tests.unit.sources.http_server import answering, reply


def said(*names: str) -> str:
    """What is said of a server that has nothing but these series."""

    def answer(handler: object, body: bytes) -> None:
        found = [] if b"count_over_time" in body else [{"metric": {"__name__": n}, "value": [1, "1"]} for n in names]
        data = {"resultType": "vector", "result": found}
        reply(handler, json.dumps({"status": "success", "data": data}).encode())  # type: ignore[arg-type]

    with answering(answer) as url:
        return read_prometheus(PrometheusOptions(url=url), Window(0, 7200)).state.detail


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("vllm_num_requests_running", '{"vllm:": "vllm_"}'),
        ("ray_vllm:num_requests_running", '{"vllm:": "ray_vllm:"} and instance_label: WorkerId'),
        ("ray_vllm_num_requests_running", '{"vllm:": "ray_vllm_"} and instance_label: WorkerId'),
        ("sglang_num_running_reqs", '{"sglang:": "sglang_"}'),
        ("acme_tgi_batch_current_size", '{"tgi_": "acme_tgi_"}'),
        (
            "engine:vllm_num_requests_running:max",
            '{"vllm:num_requests_running": "engine:vllm_num_requests_running:max"}',
        ),
    ],
)
def test_what_reads_a_renamed_engine_is_said(name: str, setting: str) -> None:
    assert said(name) == f"engines are there under other names: set names: {setting}"


def test_no_more_than_three_are_told_and_strangers_are_not() -> None:
    many = said(*(f"team{i}_vllm_num_requests_running" for i in range(9)), "vllm_other")
    assert many.count(" or ") == 2
    assert said("other_num_requests_running").startswith("none of vllm:num_requests_running")
