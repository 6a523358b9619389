"""How vLLM is started: `vllm serve MODEL`, or its API server as a module; 0.4 to 0.33."""

from __future__ import annotations

from advisor.engines.command_line import CommandLine

from .flags import FLAGS, canonical
from .structured import STRUCTURED, essentials

COMMAND_LINE = CommandLine(
    engine="vllm",
    programs=(
        ("vllm", "serve"),
        ("-m", "vllm.entrypoints.openai.api_server"),
        ("-m", "vllm.entrypoints.api_server"),
        ("-m", "vllm.entrypoints.cli.main", "serve"),
        ("-m", "huggingfaceserver"),
    ),
    images=("vllm", "huggingfaceserver"),
    releases=("vllm/vllm-openai",),
    port=8000,
    known=frozenset(FLAGS),
    canonical=canonical,
    # KServe's Hugging Face server takes vLLM's arguments, and two names of its own.
    model=("model", "model_tag", "model_id"),
    served=("served_model_name", "model_name"),
    aliases={
        "-tp": "tensor_parallel_size",
        "-pp": "pipeline_parallel_size",
        "-dp": "data_parallel_size",
        "-dcp": "decode_context_parallel_size",
        "-q": "quantization",
        "-sc": "speculative_config",
        "device_memory_utilization": "gpu_memory_utilization",
    },
    structured=dict.fromkeys(STRUCTURED, essentials),
    config_file="config",
    abbreviates=True,
)
