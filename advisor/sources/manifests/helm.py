"""Values of vLLM's production-stack chart: `servingEngineSpec.modelSpec`, flags in camel case under `vllmConfig`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from advisor.engines.command_line import as_arguments
from advisor.engines.launch import COMMAND_LINES

from .container import Container
from .declared import Declared, text, whole, words

_VLLM = COMMAND_LINES["vllm"]
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def declared(document: object) -> Iterator[Declared]:
    """Every model of the chart's values."""
    serving = document.get("servingEngineSpec") if isinstance(document, Mapping) else None
    models = serving.get("modelSpec") if isinstance(serving, Mapping) else None
    for model in models if isinstance(models, list) else ():
        if isinstance(model, Mapping):
            yield _of_model(model)


def _of_model(model: Mapping[str, Any]) -> Declared:
    config = model.get("vllmConfig")
    settings = config if isinstance(config, Mapping) else {}
    flags = {_CAPITAL.sub("-", name).lower(): value for name, value in settings.items() if name != "extraArgs"}
    # The chart switches off what its values do not switch on.
    flags.setdefault("enable-prefix-caching", False)
    arguments = [text(model.get("modelURL")), *as_arguments(flags), *words(settings.get("extraArgs"))]
    image = f"{text(model.get('repository'))}:{text(model.get('tag'))}"
    return Declared(
        name=text(model.get("name")),
        # Whatever else the chart passes is not in its values.
        launch=replace(_VLLM.read(arguments), whole=False),
        replicas=whole(model.get("replicaCount")),
        gpus=whole(model.get("requestGPU")),
        version=Container(image).version(),
    )
