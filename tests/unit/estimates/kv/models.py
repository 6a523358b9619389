"""Small configs of every family, and evidence of an engine that serves one. Figures are those of public configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.domain.evidence import Evidence, Flag, FlagValue, GpuInfo, ModelInfo, ReportedPool, Window

Config = dict[str, Any]

LLAMA_8B: Config = {
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
}
LLAMA_70B: Config = {
    "model_type": "llama",
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
}
QWEN3_8B: Config = {
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_size": 4096,
}
QWEN3_235B: Config = QWEN3_8B | {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 94,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
}
QWEN2_7B: Config = {
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "hidden_size": 3584,
}
PHI_4: Config = {
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 10,
    "hidden_size": 5120,
}
DEEPSEEK_V3: Config = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "num_nextn_predict_layers": 1,
}
DEEPSEEK_V32: Config = DEEPSEEK_V3 | {"model_type": "deepseek_v32", "index_head_dim": 128, "index_topk": 2048}
GLM_5: Config = DEEPSEEK_V32 | {"model_type": "glm_moe_dsa", "num_hidden_layers": 78}
GEMMA3_27B: Config = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 62,
    "num_attention_heads": 32,
    "num_key_value_heads": 16,
    "head_dim": 128,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
}
GEMMA4_E2B: Config = {
    "model_type": "gemma4_text",
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "global_head_dim": 512,
    "sliding_window": 512,
    "num_kv_shared_layers": 20,
    "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
}
GPT_OSS_20B: Config = {
    "model_type": "gpt_oss",
    "num_hidden_layers": 24,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
}
_DELTA_NET: Config = {
    "head_dim": 256,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
QWEN3_NEXT_80B: Config = _DELTA_NET | {
    "model_type": "qwen3_next",
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "linear_num_value_heads": 32,
}
_QWEN3_5: Config = _DELTA_NET | {"model_type": "qwen3_5_text", "mamba_ssm_dtype": "float32"}
QWEN3_5_SMALL: Config = _QWEN3_5 | {
    "num_hidden_layers": 24,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "linear_num_value_heads": 16,
}
QWEN3_6_27B: Config = _QWEN3_5 | {
    "num_hidden_layers": 64,
    "num_attention_heads": 24,
    "num_key_value_heads": 4,
    "linear_num_value_heads": 48,
    "mtp_num_hidden_layers": 1,
}
QWEN3_6_35B: Config = _QWEN3_5 | {
    "model_type": "qwen3_5_moe_text",
    "num_hidden_layers": 40,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "linear_num_value_heads": 32,
}
KIMI_LINEAR: Config = {
    "model_type": "kimi_linear",
    "num_hidden_layers": 27,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "linear_attn_config": {
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "num_heads": 32,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
    },
}
NEMOTRON_NANO: Config = {
    "model_type": "nemotron_h",
    "num_hidden_layers": 8,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "hybrid_override_pattern": "MEM*EMM*",
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "mamba_ssm_cache_dtype": "float32",
}
LFM2: Config = {
    "model_type": "lfm2",
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 2048,
    "conv_L_cache": 3,
    "layer_types": ["conv", "conv", "full_attention", "conv"],
}


def serving(
    config: Mapping[str, Any] | None = None,
    *,
    available_gib: float | None = None,
    reported: int | None = None,
    concurrency: float | None = None,
    gpu: GpuInfo | None = None,
    engine: str = "vllm",
    version: str | None = None,
    stated: ModelInfo | None = None,
    **flags: FlagValue,
) -> Evidence:
    """An engine that serves the model and printed so much memory for its cache."""
    return Evidence(
        "chat",
        Window(0, 1),
        engine=engine,
        engine_version=version,
        model=stated or ModelInfo(config=config),
        gpu=gpu or GpuInfo(kv_available_bytes=None if available_gib is None else available_gib * 2**30),
        reported_pool=None if reported is None else ReportedPool(reported, "start-up log", concurrency),
        flags={name: Flag(value, "startup_log") for name, value in flags.items()},
    )
