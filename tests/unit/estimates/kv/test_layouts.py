from __future__ import annotations

from typing import Any

import pytest

from advisor.estimates.kv.layers import UnknownLayoutError
from advisor.estimates.kv.layouts import Layout, layouts, shares_blocks
from tests.unit.estimates.kv.models import (
    DEEPSEEK_V3,
    DEEPSEEK_V32,
    GEMMA3_27B,
    GLM_5,
    GPT_OSS_20B,
    KIMI_LINEAR,
    LLAMA_8B,
    LLAMA_70B,
    NEMOTRON_NANO,
    QWEN3_6_27B,
    QWEN3_6_35B,
    Config,
    serving,
)

MTP_3 = '{"method": "mtp", "num_speculative_tokens": 3}'


def only(found: tuple[Layout, ...]) -> Layout:
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("config", "flags", "size"),
    [
        (DEEPSEEK_V3, {}, 70_272),  # 61 x 576 x 2
        (DEEPSEEK_V3, {"tensor_parallel_size": 8}, 562_176),  # each of 8 ranks keeps it whole
        (DEEPSEEK_V3, {"tensor_parallel_size": 8, "decode_context_parallel_size": 8}, 70_272),
        (DEEPSEEK_V3, {"kv_cache_dtype": "fp8"}, 35_136),
        (DEEPSEEK_V3, {"speculative_config": MTP_3}, 71_424),  # 62 layers
        (DEEPSEEK_V32, {}, 78_324),  # 61 x (1,152 + 132)
        (DEEPSEEK_V32, {"kv_cache_dtype": "fp8_ds_mla"}, 48_068),  # 61 x (656 + 132)
        (LLAMA_70B, {"kv_cache_dtype": "nvfp4"}, 92_160),  # 80 x 8 x 2 x 72
        (LLAMA_70B, {"kv_cache_dtype": "fp8_per_token_head"}, 168_960),  # 80 x 8 x 2 x (128 + 4)
        (LLAMA_70B, {"kv_cache_dtype": "float16"}, 327_680),
        (LLAMA_70B, {"speculative_config": '{"method": "ngram", "num_speculative_tokens": 4}'}, 327_680),
    ],
)
def test_bytes_of_a_token_over_all_ranks(config: Config, flags: dict[str, Any], size: int) -> None:
    assert only(layouts(serving(config, **flags))).token_bytes == size


def test_packed_sparse_attention_by_engine_and_release() -> None:
    # 78 x 788 = 61,464
    assert only(layouts(serving(GLM_5, engine="sglang", kv_cache_dtype="fp8_e4m3"))).token_bytes == 61_464
    assert only(layouts(serving(GLM_5, version="0.14.1", kv_cache_dtype="fp8"))).token_bytes == 61_464
    for version in ("0.15.0", None):
        with pytest.raises(UnknownLayoutError, match="576 or 656 bytes"):
            layouts(serving(GLM_5, version=version, kv_cache_dtype="fp8"))


def test_sglang_keeps_states_and_drafts_in_pools_of_their_own() -> None:
    hybrid = serving(QWEN3_6_27B, engine="sglang", tensor_parallel_size=4, speculative_config=MTP_3)
    assert only(layouts(hybrid)).token_bytes == 65_536  # 16 x 4 x 256 x 2 x 2
    with pytest.raises(UnknownLayoutError, match="windows in a pool of their own"):
        layouts(serving(GPT_OSS_20B, engine="sglang"))


def test_an_eagle_draft_is_one_layer_more_but_may_be_another_number() -> None:
    found = layouts(serving(LLAMA_8B, speculative_config='{"method": "eagle3"}'))
    sizes = [(layout.token_bytes, layout.likely) for layout in found]
    assert sizes == [(33 * 4096, True), (32 * 4096, False), (34 * 4096, False)]


@pytest.mark.parametrize(
    ("config", "flags", "reason"),
    [
        (LLAMA_8B, {"kv_cache_dtype": "turboquant"}, "element size of kv_cache_dtype 'turboquant'"),
        (LLAMA_8B, {"kv_cache_dtype_skip_layers": "0,1"}, "some layers keep another cache type"),
        (DEEPSEEK_V3, {"kv_cache_dtype": "nvfp4"}, "latent attention under kv_cache_dtype nvfp4"),
        (GLM_5, {}, "whether its sparse attention runs in fp8"),
        (LLAMA_8B, {"speculative_config": '{"method": "mtp"}'}, r"speculative decoding \(mtp\)"),
        (LLAMA_8B, {"speculative_config": '{"method": "dflash"}'}, r"speculative decoding \(dflash\)"),
        (LLAMA_8B, {"speculative_config": '{"model": "a/b"}'}, r"speculative decoding \(draft model\)"),
        (LLAMA_8B, {"speculative_config": "['mtp']"}, r"speculative decoding \(unreadable settings\)"),
        (QWEN3_6_27B, {"speculative_config": '{"method": "mtp"}'}, "does not say num_speculative_tokens"),
        (LLAMA_8B, {"tensor_parallel_size": 3}, "32 attention heads cannot be split over 3 ranks"),
        (LLAMA_8B, {"tensor_parallel_size": 64}, "cannot be split over 64 ranks"),
        (LLAMA_8B | {"num_key_value_heads": 6}, {"tensor_parallel_size": 4}, "6 KV heads cannot be split"),
        (QWEN3_6_27B, {"tensor_parallel_size": 4, "version": "0.24.0"}, "max_model_len, which is not known"),
        (QWEN3_6_27B, {"pipeline_parallel_size": 2}, "pipeline parallelism splits"),
        (QWEN3_6_27B, {"decode_context_parallel_size": 2}, "context parallelism splits"),
        (GEMMA3_27B, {}, "max_num_batched_tokens is not known"),
        (GEMMA3_27B, {"kv_transfer_config": "{}"}, "with a KV connector"),
        (NEMOTRON_NANO, {"enable_prefix_caching": True, "version": "0.24.0"}, "a Mamba state for every block"),
        (
            LLAMA_8B | {"model_type": "mistral", "sliding_window": 4096},
            {"speculative_config": '{"method": "eagle"}'},
            "the draft's layers keep every token",
        ),
        (LLAMA_8B | {"quantization_config": {"kv_cache_scheme": {"num_bits": 8}}}, {}, "declares a cache type"),
        (
            {"text_config": LLAMA_8B | {"quantization_config": {"kv_cache_quant_algo": "FP8"}}},
            {},
            "declares a cache type",
        ),
    ],
)
def test_what_flags_and_config_do_not_tell_is_refused(config: Config, flags: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnknownLayoutError, match=reason):
        layouts(serving(config, **flags))


def test_without_a_config_there_is_no_layout() -> None:
    with pytest.raises(UnknownLayoutError, match=r"neither the model's config\.json"):
        layouts(serving())


def test_the_release_decides_whether_prefixes_of_hybrids_are_cached() -> None:
    def held(**known: Any) -> list[int | None]:
        return [layout.blocks.tables[1].held for layout in layouts(serving(QWEN3_6_35B, max_model_len=4096, **known))]

    assert held(version="0.25.1") == [1]
    assert held(version="0.26.0") == [2]
    assert held(version="0.26.0", enable_prefix_caching=False) == [1]
    assert held(version="0.24.0", enable_prefix_caching=True) == [2]
    assert set(held()) == {1, 2}


def test_the_release_decides_how_many_steps_a_window_keeps() -> None:
    def in_flight(**known: Any) -> list[int]:
        found = layouts(serving(GPT_OSS_20B, max_model_len=4096, max_num_batched_tokens=2048, **known))
        return [layout.blocks.in_flight for layout in found]

    assert in_flight(version="0.25.1") == [2048]
    assert in_flight(version="0.26.0", async_scheduling=True) == [4096]
    assert in_flight(version="0.26.0", async_scheduling=False) == [2048]
    assert in_flight(version="0.26.0") == [4096, 2048]


def test_how_a_pool_is_printed_shows_in_what_is_printed_beside_it() -> None:
    def limits(**known: Any) -> set[int | None]:
        found = layouts(serving(QWEN3_6_35B, max_model_len=131_072, enable_prefix_caching=False, **known))
        return {layout.limit for layout in found}

    assert limits(version="0.20.0") == {None}
    assert limits(version="0.20.1") == {131_072}
    assert limits() == {None, 131_072}
    assert limits(reported=569_878, concurrency=4.35) == {131_072}
    assert limits(reported=157_200, concurrency=4.35) == {None}


def test_a_block_of_latents_is_a_multiple_of_128_or_64() -> None:
    found = layouts(serving(KIMI_LINEAR, version="0.32.0", max_model_len=4096, enable_prefix_caching=False))
    # a state of 12,288 x 3 x 2 + 524,288 x 4 = 2,170,880 bytes / 1,152 a token = 1,885
    assert [layout.blocks.block_tokens for layout in found] == [1920]


def test_the_story_names_the_block_tables() -> None:
    found = layouts(serving(QWEN3_6_35B, version="0.24.0", max_model_len=4096, kv_cache_dtype="fp8"))
    assert only(found).story == (
        "21,463,040 bytes a block; block tables: 1 of 2,096 tokens + 3 of 2,096 tokens with 1 states a sequence"
    )
    assert only(layouts(serving(DEEPSEEK_V32, tensor_parallel_size=2))).story == (
        "61 layers x one latent of 576 x 2 bytes and an index key of 128, 2 copies"
    )


@pytest.mark.parametrize(
    ("config", "engine", "shared"),
    [
        (QWEN3_6_27B, "vllm", True),
        (QWEN3_6_27B, "sglang", False),
        (LLAMA_8B, "vllm", False),
        ({"model_type": "brand_new", "state_size": 16}, "vllm", True),
        (None, "vllm", False),
    ],
)
def test_whether_layers_of_several_kinds_share_blocks(config: Config | None, engine: str, *, shared: bool) -> None:
    assert shares_blocks(serving(config, engine=engine)) is shared
