"""How llama.cpp's server is started."""

from __future__ import annotations

from advisor.engines.command_line import CommandLine

from .flags import FLAGS

COMMAND_LINE = CommandLine(
    engine="llamacpp",
    programs=(("llama-server",),),
    images=("llama.cpp:server", "llama.cpp:full"),
    port=8080,
    known=frozenset({*FLAGS.names, *FLAGS.kept}),
    canonical=FLAGS.canonical,
    model=("model", "hf_repo"),
    served=("alias",),
    aliases={
        "-c": "ctx_size",
        "-np": "parallel",
        "-b": "batch_size",
        "-ub": "ubatch_size",
        "-ctk": "cache_type_k",
        "-ctv": "cache_type_v",
        "-ngl": "n_gpu_layers",
        "gpu_layers": "n_gpu_layers",
        "-m": "model",
        "-hf": "hf_repo",
        "-a": "alias",
    },
    variables={
        "LLAMA_ARG_CTX_SIZE": "ctx_size",
        "LLAMA_ARG_N_PARALLEL": "parallel",
        "LLAMA_ARG_BATCH": "batch_size",
        "LLAMA_ARG_UBATCH": "ubatch_size",
        "LLAMA_ARG_N_GPU_LAYERS": "n_gpu_layers",
        "LLAMA_ARG_MODEL": "model",
        "LLAMA_ARG_PORT": "port",
    },
)
