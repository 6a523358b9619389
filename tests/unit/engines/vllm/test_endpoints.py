"""JSON endpoints: a real 0.32's answers, and answers of other shapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.engines.endpoint import served_model
from advisor.engines.vllm.endpoints import server_info_flags

CAPTURES = Path(__file__).parents[3] / "captures" / "vllm-0.32.0"


def test_server_info_tells_the_flags_that_no_metric_has() -> None:
    flags = server_info_flags(json.loads((CAPTURES / "server_info.json").read_text()))
    assert flags is not None
    expected = {"max_num_seqs": 4, "max_num_batched_tokens": 2048, "max_model_len": 2048, "kv_cache_dtype": "auto"}
    assert {name: flags[name] for name in expected} == expected
    assert "max_num_active_seqs" not in flags  # null: not set


@pytest.mark.parametrize("document", [None, [], "text", {"vllm_config": "model='x', max_num_seqs=4"}, {}])
def test_another_shape_is_told_from_no_flags(document: object) -> None:
    assert server_info_flags(document) is None


def test_the_served_model_is_the_base_model() -> None:
    adapter = {"id": "adapter", "parent": "base", "max_model_len": None}
    assert served_model({"data": [adapter, {"id": "base", "parent": None, "max_model_len": 2048}]}) == ("base", 2048)
    assert served_model({"data": [{"id": "base", "max_model_len": True}]}) == ("base", None)


@pytest.mark.parametrize("document", [None, {"data": {}}, {"data": [1, {"id": 7}]}, []])
def test_a_list_without_models_tells_nothing(document: object) -> None:
    assert served_model(document) is None
