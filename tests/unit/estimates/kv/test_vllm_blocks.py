"""The sizes of whole models were computed with vLLM 0.32's own planner, for 40 GiB, TP 1 and 16 bits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.estimates.kv.architecture import architecture
from advisor.estimates.kv.layers import CacheType, Heads, Latent, Layers, State, UnknownLayoutError
from advisor.estimates.kv.vllm_blocks import Blocks, Table, Terms, lay_out
from tests.unit.estimates.kv.models import DEEPSEEK_V32, GEMMA3_27B, GPT_OSS_20B, QWEN3_6_27B, QWEN3_NEXT_80B, Config

FORTY_GIB = 40 * 2**30


def terms(**changes: Any) -> Terms:
    usual: dict[str, Any] = {
        "ranks": 1,
        "cache": CacheType(2),
        "element_bytes": 2,
        "block_tokens": 16,
        "lookahead": 0,
        "state_blocks": 1,
        "in_flight": 0,
        "depth_ratio": 1.5,
        "align": 16,
    }
    return Terms(**(usual | changes))


@pytest.mark.parametrize(
    ("config", "in_flight", "block_bytes", "blocks", "printed"),
    [
        (GEMMA3_27B, 16_384, 1_310_720, 32_768, {131_072: 291_658, 32_768: 125_115, 8_192: 74_773}),
        (GPT_OSS_20B, 16_384, 393_216, 109_226, {131_072: 1_551_920, 32_768: 1_161_673, 8_192: 872_955}),
        (GPT_OSS_20B, 4_096, 393_216, 109_226, {131_072: 1_692_854}),
        (QWEN3_NEXT_80B, 0, 13_369_344, 3_212, {262_144: 1_736_095, 32_768: 1_644_544, 4_096: 1_196_032}),
    ],
)
def test_models_of_several_kinds_of_layers(
    config: Config, in_flight: int, block_bytes: int, blocks: int, printed: dict[int, int]
) -> None:
    plan = lay_out(architecture(config), terms(in_flight=in_flight))
    assert plan.block_bytes == block_bytes
    assert plan.count(FORTY_GIB) == blocks
    assert {limit: plan.printed_tokens(blocks, limit) for limit in printed} == printed


@pytest.mark.parametrize(
    ("config", "before"), [(GEMMA3_27B, 74_896), (GPT_OSS_20B, 873_808), (QWEN3_NEXT_80B, 436_832)]
)
def test_older_releases_print_blocks_by_tables(config: Config, before: int) -> None:
    plan = lay_out(architecture(config), terms())
    assert plan.printed_tokens(plan.count(FORTY_GIB), None) == before


def test_cached_prefixes_keep_two_states_a_sequence() -> None:
    plan = lay_out(architecture(QWEN3_NEXT_80B), terms(state_blocks=2))
    assert plan.printed_tokens(3_212, 262_144) == 1_725_423


def test_a_block_grows_until_its_page_holds_a_state() -> None:
    # 10,240 x 3 x 2 + 786,432 x 4 = 3,207,168 bytes / 4,096 a token = 783, in steps of 16
    assert lay_out(architecture(QWEN3_6_27B), terms()).block_tokens == 784
    # three drafted tokens lengthen the convolution: 3,268,608 / 4,096 = 798
    assert lay_out(architecture(QWEN3_6_27B), terms(lookahead=3)).block_tokens == 800
    assert lay_out(architecture(QWEN3_6_27B), terms(block_tokens=1600)).block_tokens == 1600


def test_pages_of_different_heads_are_made_equal_by_longer_blocks() -> None:
    layers: Layers = ((Heads(8, 1, 512, 512), 3), (Heads(8, 1, 256, 256, 512), 12))
    plan = lay_out(layers, terms(in_flight=2048))
    # 3 layers x 16 tokens x 2,048 bytes; the windows have half the bytes a token, so 32 tokens a block
    assert plan == Blocks(98_304, (Table(1, 16), Table(4, 32, 512)), 2048)
    # 8,192 / 16 + 4 x (2,559 / 32 + 1)
    assert plan.per_sequence(8192) == 512 + 4 * 81


@pytest.mark.parametrize(
    ("ratio", "numbers", "copies", "depth"),
    [
        (1.5, (12, 13), (1, 1), 13),  # a draft's layer more
        (1.0, (12, 13), (1, 2), 12),
        (1.25, (10, 13), (1, 2), 10),
        (1.5, (10, 13), (1, 1), 13),
        (1.5, (10, 52), (1, 6), 10),
    ],
)
def test_layers_of_the_rarer_kind_are_padded(
    ratio: float, numbers: tuple[int, int], copies: tuple[int, int], depth: int
) -> None:
    heads = Heads(8, 8, 64, 64)
    plan = lay_out(((heads, numbers[0]), (Heads(8, 8, 64, 64, 128), numbers[1])), terms(depth_ratio=ratio))
    assert tuple(table.copies for table in plan.tables) == copies
    assert plan.block_bytes == depth * 16 * 2048


def test_one_window_for_all_layers_is_one_table() -> None:
    plan = lay_out(((Heads(32, 8, 128, 128, 4096), 32),), terms(in_flight=2048))
    assert plan == Blocks(32 * 4096 * 16, (Table(1, 16, 4096),), 2048)
    assert not plan.is_uniform
    # 4,095 + 2,048 tokens in blocks of 16, and one more where the window begins within a block
    assert plan.per_sequence(131_072) == 385


def test_mixtures_that_are_not_known_are_refused() -> None:
    sparse = architecture(DEEPSEEK_V32)
    with pytest.raises(UnknownLayoutError, match="beside other layers"):
        lay_out((*sparse, (State(128, 3, 128, 4), 3)), terms())
    with pytest.raises(UnknownLayoutError, match="do not divide each other"):
        lay_out(((Heads(8, 2, 96, 96), 3), (Heads(8, 2, 64, 64, 128), 3)), terms())


def test_sizes_on_one_rank() -> None:
    bf16, fp8 = CacheType(2), CacheType(1)
    assert [Heads(64, 8, 128, 128).token_bytes(n, bf16) for n in (1, 2, 8, 16)] == [4096, 2048, 512, 512]
    assert [Latent(576).token_bytes(n, bf16) for n in (1, 8)] == [1152, 1152]
    # packed in fp8: 512 + 16 of scales + 128, and an index key of 128 with one scale of 4
    assert Latent(576, 128).token_bytes(8, CacheType(1, packed_latent_bytes=656)) == 788
    assert Latent(576, 128).token_bytes(8, bf16) == 1152 + 132
    assert Latent(576).token_bytes(1, fp8) == 576
    # nvfp4: 64 bytes and 8 scales for 128 elements
    assert Heads(8, 1, 128, 128).token_bytes(1, CacheType(0.5625)) == 144
    assert State(10_240, 3, 786_432, 4).state_bytes(2, 2, 0) == 1_603_584


@given(
    kv_heads=st.sampled_from([1, 2, 4, 8]),
    window=st.integers(1, 4096),
    full=st.integers(1, 40),
    sliding=st.integers(1, 40),
    memory=st.floats(1e9, 1e11),
    more=st.floats(1.0, 4.0),
    limit=st.integers(1, 200_000),
    in_flight=st.integers(0, 32_768),
)
def test_more_memory_never_prints_a_smaller_pool_and_longer_requests_never_fit_more_often(
    kv_heads: int, window: int, full: int, sliding: int, memory: float, more: float, limit: int, in_flight: int
) -> None:
    heads, slid = Heads(8, kv_heads, 64, 64), Heads(8, kv_heads, 64, 64, window)
    plan = lay_out(((heads, full), (slid, sliding)), terms(in_flight=in_flight))
    few, many = plan.count(memory), plan.count(memory * more)
    assert 0 <= few <= many
    assert 0 <= plan.printed_tokens(few, limit) <= plan.printed_tokens(many, limit)
    assert plan.per_sequence(limit) <= plan.per_sequence(limit + 1)
    finer = lay_out(((heads, full), (slid, sliding)), terms(in_flight=in_flight, cache=CacheType(1)))
    assert finer.block_bytes == plan.block_bytes / 2


@given(
    kv_heads=st.sampled_from([1, 2, 4, 8, 16]),
    dim=st.sampled_from([64, 96, 128, 256]),
    ranks=st.sampled_from([1, 2, 4, 8]),
    cache=st.sampled_from([CacheType(2), CacheType(1), CacheType(1, 4), CacheType(0.5625)]),
)
def test_more_ranks_never_store_more_on_one(kv_heads: int, dim: int, ranks: int, cache: CacheType) -> None:
    heads, state = Heads(64, kv_heads, dim, dim), State(1024, 3, 4096, 4)
    assert heads.token_bytes(2 * ranks, cache) <= heads.token_bytes(ranks, cache)
    assert 2 * heads.token_bytes(2 * ranks, cache) >= heads.token_bytes(ranks, cache)
    assert Latent(576).token_bytes(2 * ranks, cache) == Latent(576).token_bytes(ranks, cache)
    assert state.state_bytes(2 * ranks, 2, 0) < state.state_bytes(ranks, 2, 0)
