"""How TensorRT-LLM is started: `trtllm-serve MODEL`."""

from __future__ import annotations

from advisor.engines.command_line import CommandLine

from .flags import FLAGS

COMMAND_LINE = CommandLine(
    engine="trtllm",
    programs=(("trtllm-serve", "serve"), ("trtllm-serve",)),
    images=(),
    port=8000,
    known=frozenset({*FLAGS.names, *FLAGS.kept}),
    canonical=FLAGS.canonical,
    model=("model",),
    served=("served_model_name",),
)
