"""llama.cpp's `/props`: of a real server, and composed from the fields of its source."""

from __future__ import annotations

import json
from pathlib import Path

from advisor.engines.llamacpp.endpoints import props

CAPTURES = Path(__file__).parents[3] / "captures" / "llamacpp-b11549"


def test_slots_and_the_context_of_one() -> None:
    told = props({"default_generation_settings": {"n_ctx": 4096}, "total_slots": 4, "model_path": "/models/m.gguf"})
    assert told is not None
    assert told.flags == {"max_num_seqs": 4, "max_model_len": 4096}


def test_without_slots_it_is_no_answer() -> None:
    assert props({"total_slots": 0}) is None
    assert props("x") is None


def test_a_real_server_tells_its_slots() -> None:
    body = json.loads((CAPTURES / "props.json").read_text())
    told = props(body)
    assert told is not None
    assert told.flags == {"max_num_seqs": 4, "max_model_len": 2048}
