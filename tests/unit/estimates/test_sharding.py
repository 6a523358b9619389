from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.evidence import Evidence, GpuInfo, ModelInfo, ReportedPool
from advisor.domain.fact import Fact
from advisor.domain.policy import Policy
from advisor.estimates import memory_ceiling, sharding
from tests.unit.estimates.evidence import NOTHING, bounded, engine, flags, gauges, joint, sheet

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
    assert sharding.facts(on(tensor, limit=limit), sheet())["sufficient_tensor_parallel_size"].value == enough


def test_sizes_below_the_floor_of_the_weights_are_not_asked() -> None:
    # 64 GB of weights: two GPUs of 36 keep 2 x (36 - 4) - 64 = 0, four 4 x 32 - 64 = 64 GB, 488,281 tokens
    heavy = replace(on(8), model=ModelInfo(LLAMA_8B, weights_bytes=64e9))
    assert sharding.facts(heavy, sheet())["sufficient_tensor_parallel_size"].value == 4


def test_without_a_model_nobody_can_tell() -> None:
    bare = replace(NOTHING, flags=flags(tensor_parallel_size=8, max_model_len=8192))
    assert sharding.facts(bare, sheet())["sufficient_tensor_parallel_size"].is_unknown
    assert sharding.facts(bare, sheet())["kv_copies"].is_unknown
    assert sharding.facts(NOTHING, sheet())["sufficient_tensor_parallel_size"].is_unknown


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
    assert sharding.facts(on(tensor, config=config), sheet())["kv_copies"].value == copies


def reporting(tensor: int | None, pool: int, weights_bytes: float | None = None) -> Evidence:
    """8B whose engine reports its pool; 131,072 bytes a token, over all ranks."""
    flagged = {} if tensor is None else {"tensor_parallel_size": tensor}
    return replace(
        NOTHING,
        flags=flags(**flagged),
        model=ModelInfo(LLAMA_8B, weights_bytes),
        reported_pool=ReportedPool(pool, "metrics"),
    )


def test_twice_the_gpus_hold_more_than_two_replicas_where_weights_take_the_memory() -> None:
    # 2 x 30,000 + 16e9 / 131,072 = 182,070 tokens, 6.07 times
    found = sharding.facts(reporting(1, 30_000, weights_bytes=16e9), sheet())
    assert found["kv_pool_tokens_at_double_tp"].number == 182_070
    assert found["kv_pool_growth_at_double_tp"].number == pytest.approx(182_070 / 30_000)


def test_beyond_the_heads_twice_the_gpus_hold_less_than_two_replicas() -> None:
    # 16 ranks share 8 heads: 200,000 + 16e9 / 262,144 = 261,035, 1.3 times
    found = sharding.facts(reporting(8, 200_000, weights_bytes=16e9), sheet())
    assert found["kv_pool_tokens_at_double_tp"].number == 261_035
    assert found["kv_pool_growth_at_double_tp"].number == pytest.approx(1.3, abs=0.01)


def test_without_the_weights_at_least_the_memory_doubles() -> None:
    # less 2.3 GiB a GPU, in which the headroom may differ: (2 x 300,000 x 131,072 - 2 x 2.3 GiB) / 131,072
    growth = sharding.facts(reporting(1, 300_000), sheet())["kv_pool_growth_at_double_tp"]
    assert (growth.value, growth.high) == (None, None)
    assert growth.low == pytest.approx((600_000 - 37_683) / 300_000, abs=1e-5)


def test_a_pool_in_blocks_of_several_kinds_grows_as_the_printed_one_does() -> None:
    mixed = {
        "model_type": "qwen3_5_text",
        "num_hidden_layers": 24,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 16,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32",
    }
    case = replace(
        NOTHING,
        engine_version="0.24.0",
        flags=flags(tensor_parallel_size=1, max_model_len=32_768),
        model=ModelInfo(mixed, weights_bytes=4e9),
        reported_pool=ReportedPool(195 * 544, "metrics", nominal=True),
    )
    found = sharding.facts(case, sheet(kv_pool_tokens=195 * 544))
    # 195 blocks of 6.68 MB; half of the weights more, 988 blocks of 3.34 MB on each of two GPUs
    assert found["kv_pool_growth_at_double_tp"].number == pytest.approx(988 / 195, rel=1e-3)
    assert found["kv_pool_tokens_at_double_tp"].number == pytest.approx(988 * 544, rel=1e-3)


@pytest.mark.parametrize(
    ("case", "disagreement", "why"),
    [
        (reporting(None, 30_000, weights_bytes=16e9), 0.0, "needs tensor_parallel_size"),
        (reporting(1, 30_000, weights_bytes=16e9), 0.5, "disagree"),
        (replace(NOTHING, flags=flags(tensor_parallel_size=1)), 0.0, "config.json"),
        (on(32, config=LLAMA_8B), 0.0, "cannot be split over 64 ranks"),
    ],
)
def test_what_twice_the_gpus_would_hold_is_unknown_with_the_reason(
    case: Evidence, disagreement: float, why: str
) -> None:
    found = sharding.facts(case, sheet(kv_pool_disagreement=disagreement))
    for name in ("kv_pool_tokens_at_double_tp", "kv_pool_growth_at_double_tp"):
        assert why in (found[name].unknown or "")


@pytest.mark.parametrize(
    ("memory", "headroom", "weights", "least"),
    [
        (80e9, None, 70e9, 1),
        (80e9, None, 140e9, 2),  # 73.6 GB a GPU, 140 do not fit it, 70 do
        (80e9, 8e9, 140e9, 4),  # nor 65.6
        (24e9, None, 140e9, 8),
    ],
)
def test_the_least_gpus_that_hold_the_weights(
    memory: float, headroom: float | None, weights: float, least: int
) -> None:
    case = replace(
        NOTHING,
        flags=flags(gpu_memory_utilization=0.92),
        model=ModelInfo(weights_bytes=weights),
        gpu=GpuInfo(memory, headroom),
    )
    assert sharding.facts(case, sheet())["weight_floor_tensor_parallel_size"].value == least


def test_a_reported_pool_tells_the_floor_without_the_gpu() -> None:
    # 30,000 tokens on two GPUs: 1.97 GB beside 8 of weights; one would need 16 of 9.97
    assert (
        sharding.facts(reporting(2, 30_000, weights_bytes=16e9), sheet())["weight_floor_tensor_parallel_size"].value
        == 2
    )
    # 1,000,000: 65.5 beside 8
    assert (
        sharding.facts(reporting(2, 1_000_000, weights_bytes=16e9), sheet())["weight_floor_tensor_parallel_size"].value
        == 1
    )
    unsure = sharding.facts(reporting(2, 30_000), sheet())["weight_floor_tensor_parallel_size"]
    assert "model.weights" in (unsure.unknown or "")
    blind = sharding.facts(replace(NOTHING, model=ModelInfo(weights_bytes=16e9)), sheet())
    assert "gpu.memory" in (blind["weight_floor_tensor_parallel_size"].unknown or "")


BUSY = replace(
    reporting(1, 30_000, weights_bytes=16e9),
    joint=joint((1_000, 200, 900), (3_000, 400, 100)),
)


def doubled(evidence: Evidence, **facts: float | Fact) -> Fact:
    found = sharding.facts(evidence, sheet())
    known = sheet(**{**found, **facts})
    known |= {n: f for n, f in memory_ceiling.facts(evidence, Policy(), known).items() if n not in facts}
    return sharding.ceiling_at_double_tp(evidence, Policy(), known)


def test_more_than_the_multiple_fits_because_few_are_long_at_once() -> None:
    now = memory_ceiling.facts(BUSY, Policy(), sheet(kv_pool_tokens=30_000))["memory_ceiling_expected"].number
    then = memory_ceiling.facts(BUSY, Policy(), sheet(kv_pool_tokens=182_070))["memory_ceiling_expected"].number
    found = doubled(BUSY, kv_pool_tokens=30_000)
    assert found.number == then
    assert now is not None
    assert then is not None
    assert then > now * 182_070 / 30_000
    assert found.low is not None
    assert found.high is not None
    assert found.low < then < found.high


def test_the_same_from_gauges() -> None:
    running = np.resize(np.arange(3.0, 13.0), 2_000)
    scraped = engine(gauges(running, usage=running * 1_500 / 30_000))
    # 1,500 each without any spread: 182,070 / 1,500
    assert doubled(replace(BUSY, joint=None, engines=(scraped,)), kv_pool_tokens=30_000).number == 121


def test_where_only_the_guaranteed_is_known_that_grows() -> None:
    alone = replace(BUSY, joint=None)
    # 3 x 6.069 = 18.2
    assert doubled(alone, kv_pool_tokens=30_000, memory_ceiling_guaranteed=3).number == 18
    assert "how many fit now" in (doubled(alone, kv_pool_tokens=30_000).unknown or "")
    assert "how many fit now" in (doubled(alone, memory_ceiling_guaranteed=bounded(1, 4)).unknown or "")


def test_a_ceiling_that_was_stated_grows_with_the_pool() -> None:
    stated = doubled(replace(BUSY, joint=None), kv_pool_tokens=30_000, memory_ceiling_expected=7)
    # 7 x 6.069 = 42.5
    assert stated.number == 42


def test_an_unknown_pool_is_the_reason() -> None:
    assert "needs tensor_parallel_size" in (doubled(replace(BUSY, flags={})).unknown or "")


@settings(max_examples=25, deadline=None)
@given(pool=st.integers(20_000, 2_000_000), weights=st.floats(1e9, 1e11), tensor=st.sampled_from([1, 2, 4]))
def test_ceilings_never_fall_with_the_gpus_while_heads_divide(pool: int, weights: float, tensor: int) -> None:
    case = replace(reporting(tensor, pool, weights_bytes=weights), joint=BUSY.joint)
    now = memory_ceiling.facts(case, Policy(), sheet(kv_pool_tokens=pool))["memory_ceiling_expected"].number or 0.0
    then = doubled(case, kv_pool_tokens=pool)
    assert math.isfinite(then.number or 0.0)
    assert (then.number or 0.0) >= 2 * now
    assert (then.low or 0.0) <= (then.number or 0.0) <= (then.high or math.inf)
