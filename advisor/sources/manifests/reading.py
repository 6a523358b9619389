"""A manifest from its file to the engines that it starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.domain.errors import ConfigError, SourceError
from advisor.sources.bounded_file import read_bounded
from advisor.sources.yaml_file import MAX_YAML_BYTES, YamlDocument

from . import docker, helm, kubernetes, unit
from .declared import Declared
from .template import marked

MOST_DOCUMENTS = 1_000
HINT = "give Kubernetes objects, Helm values, a compose file, `docker inspect`, or a systemd unit"
_BORDER = re.compile(r"(?m)^---(?=\s|$)")
# Most objects of a rendered chart have nothing to do with engines, and YAML is slow to read.
_TELLING = re.compile("vllm|sglang|text-generation|trtllm|llama|huggingface")
_UNITS = frozenset({".service", ".conf"})

__all__ = ["Declared", "ManifestReading", "read_manifest"]


@dataclass(frozen=True, slots=True)
class ManifestReading:
    """The engines of one file, and one line each on what of it could not be read."""

    engines: tuple[Declared, ...]
    notes: tuple[str, ...] = ()


def read_manifest(path: Path) -> ManifestReading:
    """Every engine that the file starts.

    Raises SourceError when the file cannot be read, is larger than 1 MiB, or starts no engine that is known.
    """
    raw = read_bounded(path, most=MAX_YAML_BYTES, hint=HINT)
    text, notes, found = raw.decode("utf-8", "replace"), list[str](), list[Declared]()
    if path.suffix in _UNITS:
        try:
            found += unit.declared(path.stem, text)
        except ValueError as error:
            raise SourceError(f"{path}: not a systemd unit that can be read: {error}", permanent=True) from None
    else:
        rendered, templated = marked(text)
        for document in _documents(path, rendered, notes):
            # A template may add arguments that are seen nowhere.
            found += (_open(one) if templated else one for one in _declared(document))
    if not found:
        why = notes[0] if notes else f"{path}: no engine that is known is started in it; {HINT}"
        raise SourceError(why, permanent=True)
    return ManifestReading(tuple(found), tuple(notes))


def _declared(document: object) -> Iterator[Declared]:
    for read in (helm.declared, docker.composed, docker.inspected, kubernetes.declared):
        try:
            yield from read(document)
        except ValueError:  # the quotes of a command in a compose file
            continue


def _open(one: Declared) -> Declared:
    return replace(one, launch=replace(one.launch, whole=False))


def _documents(path: Path, text: str, notes: list[str]) -> Iterator[object]:
    """The documents of a file that can be read; the others are noted."""
    pieces = _BORDER.split(text)
    if len(pieces) > MOST_DOCUMENTS:
        raise SourceError(f"{path}: more than {MOST_DOCUMENTS:,} documents; give those of the engines", permanent=True)
    filled = [piece for piece in pieces if piece.strip()]
    for number, piece in enumerate(filled, 1):
        place = path if len(filled) == 1 else Path(f"{path}, document {number}")
        if _TELLING.search(piece) is None:
            continue
        try:
            yield YamlDocument(place, piece).data
        except ConfigError as error:
            notes.append(str(error))
