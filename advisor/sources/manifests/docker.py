"""Containers of docker: services of a compose file, and what `docker inspect` prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from advisor.engines.command_line import untold

from .container import Container
from .declared import Declared, text, whole, words
from .shell import expanded


def composed(document: object) -> Iterator[Declared]:
    """Every service of a compose file that starts an engine."""
    services = document.get("services") if isinstance(document, Mapping) else None
    for name, service in services.items() if isinstance(services, Mapping) else ():
        if isinstance(service, Mapping):
            container = _of_service(service)
            launch = container.launch()
            deploy = service.get("deploy")
            deploy = deploy if isinstance(deploy, Mapping) else {}
            replicas = whole(deploy.get("replicas", service.get("scale", 1)))
            if launch is not None:
                yield Declared(text(name), launch, replicas, _gpus(deploy), container.version())


def inspected(document: object) -> Iterator[Declared]:
    """Every container in the output of `docker inspect` that runs an engine."""
    for one in document if isinstance(document, list) else ():
        config = one.get("Config") if isinstance(one, Mapping) else None
        if isinstance(config, Mapping) and isinstance(one.get("Path"), str):
            image = text(config.get("Image"))
            container = Container(
                image, [one["Path"]], words(one.get("Args")), _environment(config.get("Env"), pinned=True)
            )
            launch = container.launch()
            if launch is not None:
                yield Declared(text(one.get("Name")).lstrip("/"), launch, 1, None, container.version())


def _of_service(service: Mapping[str, Any]) -> Container:
    environment = _environment(service.get("environment"), pinned=False)
    return Container(
        image=expanded(text(service.get("image")), {}),
        command=_words(service.get("entrypoint")),
        arguments=_words(service.get("command")),
        environment=environment,
        elsewhere="env_file" if service.get("env_file") else None,
    )


def _words(value: object) -> list[str]:
    """A list of words, or one text that compose splits as a shell does. `$NAME` is of whoever starts it, `$$` a `$`."""
    listed = shlex.split(value) if isinstance(value, str) else words(value)
    return [_interpolated(word) for word in listed]


def _interpolated(word: str) -> str:
    return "$".join(expanded(part, {}) for part in word.split("$$"))


def _environment(stated: object, *, pinned: bool) -> dict[str, str]:
    """Variables as a mapping or as NAME=VALUE; `pinned` values hold no references any more."""
    pairs: list[tuple[str, object]] = list(stated.items()) if isinstance(stated, Mapping) else []
    for line in words(stated):
        name, equals, value = line.partition("=")
        pairs.append((name, value if equals else None))
    return {
        name: untold(f"${name}") if value is None else str(value) if pinned else _interpolated(str(value))
        for name, value in pairs
    }


def _gpus(deploy: Mapping[str, Any]) -> int | None:
    part: object = deploy
    for name in ("resources", "reservations", "devices"):
        part = part.get(name) if isinstance(part, Mapping) else None
    devices = part if isinstance(part, list) else []
    counts = [whole(device.get("count")) for device in devices if isinstance(device, Mapping)]
    return next((count for count in counts if count is not None), None)
