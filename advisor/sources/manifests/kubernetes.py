"""Kubernetes objects: every container that starts an engine, whatever kind of object it stands in.

Deployments, StatefulSets, Pods, LeaderWorkerSets and KServe's InferenceServices are read, and so is any other object
that holds pod specifications: `containers` are looked for, not kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from advisor.engines.command_line import untold
from advisor.engines.launch import COMMAND_LINES

from .container import Container
from .declared import Declared, text, whole, words
from .shell import expanded_by_kubernetes

GPUS = ("nvidia.com/gpu", "amd.com/gpu")
MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class _Above:
    """What the objects around a container say."""

    name: str = ""
    replicas: int | None = 1

    def within(self, part: Mapping[str, Any]) -> _Above:
        metadata = part.get("metadata")
        name = text(metadata.get("name")) if isinstance(metadata, Mapping) else ""
        replicas = whole(part.get("replicas")) if "replicas" in part else self.replicas
        if "minReplicas" in part or "maxReplicas" in part:
            # An autoscaler decides between two numbers.
            replicas = whole(part.get("minReplicas")) if part.get("minReplicas") == part.get("maxReplicas") else None
        return _Above(self.name or name, replicas)


def declared(document: object) -> Iterator[Declared]:
    """Every engine that a document starts."""
    yield from _walk(document, _Above(), 0)


def _walk(part: object, above: _Above, depth: int) -> Iterator[Declared]:
    if depth > MAX_DEPTH:
        return
    if isinstance(part, list):
        for item in part:
            yield from _walk(item, above if isinstance(item, Mapping) and "spec" not in item else _Above(), depth + 1)
    elif isinstance(part, Mapping):
        above = above.within(part)
        containers = part.get("containers")
        for one in containers if isinstance(containers, list) else ():
            yield from _of_container(one, above)
        if isinstance(part.get("model"), Mapping) and "modelFormat" in part["model"]:
            yield from _of_served_model(part["model"], above)
        for name, inner in part.items():
            if name not in ("containers", "initContainers", "metadata"):
                yield from _walk(inner, above, depth + 1)


def _of_container(part: object, above: _Above) -> Iterator[Declared]:
    if not isinstance(part, Mapping):
        return
    container = container_of(part)
    launch = container.launch()
    if launch is not None:
        name = above.name or text(part.get("name"))
        yield Declared(name, launch, above.replicas, gpus(part.get("resources")), container.version())


def _of_served_model(part: Mapping[str, Any], above: _Above) -> Iterator[Declared]:
    """KServe names a format instead of an image; its Hugging Face runtime takes vLLM's arguments."""
    stated = part["modelFormat"]
    if text(stated.get("name")) not in ("huggingface", "vllm") if isinstance(stated, Mapping) else True:
        return
    container = container_of(part)
    launch = COMMAND_LINES["vllm"].read(container.arguments)
    yield Declared(above.name, launch, above.replicas, gpus(part.get("resources")), container.version())


def container_of(part: Mapping[str, Any]) -> Container:
    """A container of a pod specification, `$(NAME)` in its words replaced."""
    environment = _environment(part.get("env"))
    return Container(
        image=text(part.get("image")),
        command=[expanded_by_kubernetes(word, environment) for word in words(part.get("command"))],
        arguments=[expanded_by_kubernetes(word, environment) for word in words(part.get("args"))],
        environment=environment,
        elsewhere="envFrom" if part.get("envFrom") else None,
    )


def _environment(listed: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in listed if isinstance(listed, list) else ():
        name = text(one.get("name")) if isinstance(one, Mapping) else ""
        if name:
            stated = one.get("value")
            told = expanded_by_kubernetes(str(stated), found) if "value" in one and stated is not None else ""
            found[name] = untold(f"${name}") if "valueFrom" in one else told
    return found


def gpus(resources: object) -> int | None:
    """GPUs that a container asks for, or None."""
    for kind in ("limits", "requests"):
        asked = resources.get(kind) if isinstance(resources, Mapping) else None
        stated = [asked[name] for name in GPUS if name in asked] if isinstance(asked, Mapping) else []
        if stated:
            return whole(stated[0])
    return None
