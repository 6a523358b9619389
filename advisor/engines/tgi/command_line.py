"""How TGI is started: its launcher, with every flag also a variable under the upper-case name."""

from __future__ import annotations

from advisor.engines.command_line import CommandLine

from .flags import FLAGS

_KNOWN = frozenset({*FLAGS.names, *FLAGS.kept})
_VARIABLES = {name.upper(): name for name in sorted(_KNOWN)}

COMMAND_LINE = CommandLine(
    engine="tgi",
    programs=(("text-generation-launcher",),),
    images=("text-generation-inference",),
    releases=("huggingface/text-generation-inference",),
    port=3000,
    known=_KNOWN,
    canonical=FLAGS.canonical,
    model=("model_id",),
    served=(),
    aliases={"-p": "port"},
    variables={**_VARIABLES, "MODEL_ID": "model_id", "PORT": "port"},
)
