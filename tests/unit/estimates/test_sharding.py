from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.evidence import Evidence, GpuInfo, ModelInfo
from advisor.estimates import sharding
from tests.unit.estimates.evidence import NOTHING, flags

LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 8192,
}


def on(tensor: int, *, limit: int = 8192, config: dict[str, object] | None = None) -> Evidence:
    """8B on GPUs of 40 GB at 0.9: one keeps 36 - 16 - 2 x 2 (headroom, at most twice it) = 16 GB, 122,070 tokens."""
    return replace(
        NOTHING,
        flags=flags(tensor_parallel_size=tensor, max_model_len=limit, gpu_memory_utilization=0.9),
        model=ModelInfo(config or LLAMA_8B, weights_bytes=16e9),
        gpu=GpuInfo(40e9, 2e9),
    )


@pytest.mark.parametrize(
    ("tensor", "limit", "enough"),
    [
        (8, 4096, 1),  # 16 x 4,096 = 65,536 fit on one
        (8, 8192, 2),  # 131,072 do not
        (1, 8192, 1),
    ],
)
def test_the_least_gpus_that_are_enough(tensor: int, limit: int, enough: int) -> None:
    assert sharding.facts(on(tensor, limit=limit))["sufficient_tensor_parallel_size"].value == enough


def test_without_a_model_nobody_can_tell() -> None:
    bare = replace(NOTHING, flags=flags(tensor_parallel_size=8, max_model_len=8192))
    assert sharding.facts(bare)["sufficient_tensor_parallel_size"].is_unknown
    assert sharding.facts(bare)["kv_copies"].is_unknown
    assert sharding.facts(NOTHING)["sufficient_tensor_parallel_size"].is_unknown


@pytest.mark.parametrize(
    ("tensor", "config", "copies"),
    [
        (8, LLAMA_8B, 1),
        (4, LLAMA_8B, 1),
        (16, LLAMA_8B, 2),
        (8, LLAMA_8B | {"num_key_value_heads": 4}, 2),
        (8, LLAMA_8B | {"kv_lora_rank": 512}, 8),
        (8, {"text_config": LLAMA_8B | {"num_key_value_heads": 2}}, 4),
    ],
)
def test_ranks_beyond_the_heads_keep_copies(tensor: int, config: dict[str, object], copies: float) -> None:
    assert sharding.facts(on(tensor, config=config))["kv_copies"].value == copies
