from __future__ import annotations

from typing import Any

import pytest

from advisor.estimates.kv.architecture import architecture, keeps_every_token
from advisor.estimates.kv.layers import Heads, Latent, Layers, State, UnknownLayoutError
from tests.unit.estimates.kv.models import (
    DEEPSEEK_V3,
    DEEPSEEK_V32,
    GEMMA3_27B,
    GEMMA4_E2B,
    GPT_OSS_20B,
    KIMI_LINEAR,
    LFM2,
    LLAMA_8B,
    LLAMA_70B,
    NEMOTRON_NANO,
    QWEN3_6_27B,
    Config,
)


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        (LLAMA_70B, ((Heads(64, 8, 128, 128), 80),)),
        ({"n_layer": 12, "n_head": 12, "n_embd": 768}, ((Heads(12, 12, 64, 64), 12),)),
        ({"n_layer": 32, "n_head": 71, "hidden_size": 4544, "multi_query": True}, ((Heads(71, 1, 64, 64), 32),)),
        (LLAMA_8B | {"sliding_window": 4096, "use_sliding_window": False}, ((Heads(32, 8, 128, 128), 32),)),
        (LLAMA_8B | {"layer_types": ["full_attention"] * 32}, ((Heads(32, 8, 128, 128), 32),)),
        ({"text_config": DEEPSEEK_V3, "num_hidden_layers": 3}, ((Latent(576), 61),)),
        (DEEPSEEK_V32, ((Latent(576, 128), 61),)),
        # every sixth of 62 layers sees everything
        (GEMMA3_27B, ((Heads(32, 16, 128, 128), 10), (Heads(32, 16, 128, 128, 1024), 52))),
        (GPT_OSS_20B, ((Heads(64, 8, 64, 64), 12), (Heads(64, 8, 64, 64, 128), 12))),
        # the last 20 of 35 layers read what earlier ones keep
        (GEMMA4_E2B, ((Heads(8, 1, 512, 512), 3), (Heads(8, 1, 256, 256, 512), 12))),
        (
            {"model_type": "gemma2", "sliding_window": 4096, "head_dim": 256} | LLAMA_8B,
            ((Heads(32, 8, 256, 256), 16), (Heads(32, 8, 256, 256, 4096), 16)),
        ),
        (LLAMA_8B | {"model_type": "mistral", "sliding_window": 4096}, ((Heads(32, 8, 128, 128, 4096), 32),)),
        # 2 x 16 x 128 + 48 x 128 channels; 48 states of 128 x 128 in 4 bytes
        (QWEN3_6_27B, ((Heads(24, 4, 256, 256), 16), (State(10_240, 3, 786_432, 4), 48))),
        (KIMI_LINEAR, ((Latent(576), 7), (State(12_288, 3, 524_288, 4), 20))),
        # 64 x 64 + 2 x 8 x 128 channels; of eight layers, two are attention and four keep a state
        (NEMOTRON_NANO, ((Heads(32, 2, 128, 128), 2), (State(6144, 3, 524_288, 4), 4))),
        (LFM2, ((Heads(32, 8, 64, 64), 1), (State(2048, 2), 3))),
    ],
)
def test_the_layers_of_each_family(config: Config, layers: Layers) -> None:
    assert architecture(config) == layers


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_type": "brand_new"}, "model type 'brand_new' is not known here"),
        ({"model_type": "brand_new", "kv_lora_rank": 512}, "latent attention in a family"),
        ({"kv_lora_rank": 512}, "lacks kv_lora_rank or qk_rope_head_dim"),
        ({"sliding_window": 4096}, "a sliding window"),
        ({"model_type": "gemma3_text", "sliding_window": 4096}, "which layers have the sliding window"),
        ({"model_type": "gemma3_text", "layer_types": ["sliding_attention"] * 32}, "no sliding_window"),
        ({"model_type": "gemma3_text", "layer_types": ["chunked"] * 32}, "layers of several kinds"),
        ({"model_type": "gemma3_text", "layer_types": ["full_attention"] * 3, "sliding_window": 9}, "several kinds"),
        ({"layer_types": 7}, "layers of several kinds"),
        ({"full_attention_interval": 4}, "linear attention or state-space layers"),
        ({"hybrid_override_pattern": "MEM*"}, "linear attention or state-space layers"),
        (QWEN3_6_27B | {"mamba_ssm_dtype": None}, "lacks mamba_ssm_dtype"),
        (NEMOTRON_NANO | {"mamba_ssm_cache_dtype": None}, "lacks mamba_ssm_cache_dtype"),
        ({"model_type": "qwen3_next", "full_attention_interval": 4}, "lacks linear_num_key_heads"),
        (QWEN3_6_27B | {"full_attention_interval": None}, "does not say which layers are attention"),
        (QWEN3_6_27B | {"layer_types": ["linear_attention", "brand_new"] * 32}, "layers of several kinds"),
        (NEMOTRON_NANO | {"hybrid_override_pattern": "M*"}, "does not say which layers are attention"),
        ({"num_kv_shared_layers": 10}, "layers of several kinds"),
        ({"is_encoder_decoder": True}, "an encoder"),
        ({"compress_ratios": [4]}, "a compressed cache"),
        ({"index_topk_freq": 4}, "an index in some layers only"),
        (DEEPSEEK_V32 | {"index_head_dim": 100}, "no index_head_dim of a known kind"),
        ({"v_head_dim": 64}, "keys and values differ"),
        ({"num_hidden_layers": None}, "lacks layers"),
        ({"num_attention_heads": "32"}, "lacks layers"),
        ({"num_attention_heads": True}, "lacks layers"),
    ],
)
def test_what_is_not_known_is_refused_with_the_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnknownLayoutError, match=reason):
        architecture(LLAMA_8B | change)


@pytest.mark.parametrize(
    ("config", "every"),
    [
        (LLAMA_70B, True),
        (DEEPSEEK_V32, True),
        ({"model_type": "brand_new"}, True),
        (GPT_OSS_20B, False),
        (QWEN3_6_27B, False),
        ({"model_type": "brand_new", "mamba_d_state": 128}, False),
        ({"model_type": "deepseek_v4", "compress_ratios": [4]}, False),
    ],
)
def test_models_that_do_not_keep_every_token_are_told_even_where_their_layout_is_not_known(
    config: Config, every: bool
) -> None:
    assert keeps_every_token(config) is every
