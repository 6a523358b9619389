"""How SGLang is started: `sglang serve`, or its server as a module; 0.4.2 to 0.5.23."""

from __future__ import annotations

from advisor.engines.command_line import CommandLine

from .flags import FLAGS

COMMAND_LINE = CommandLine(
    engine="sglang",
    programs=(("-m", "sglang.launch_server"), ("sglang", "serve")),
    images=(),
    releases=("lmsysorg/sglang",),
    port=30000,
    known=frozenset({*FLAGS.names, *FLAGS.kept}),
    canonical=FLAGS.canonical,
    model=("model_path", "model"),
    served=("served_model_name",),
    aliases={
        "tensor_parallel_size": "tp_size",
        "pipeline_parallel_size": "pp_size",
        "data_parallel_size": "dp_size",
        "tp": "tp_size",
        "pp": "pp_size",
        "dp": "dp_size",
    },
    switches={"disable_radix_cache": ("enable_prefix_caching", False)},
    config_file="config",
    abbreviates=True,
)
