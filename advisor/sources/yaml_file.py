"""The one reader of the YAML and JSON that people write: strict, bounded, and every error names its place."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from advisor.domain.errors import ConfigError

MAX_BYTES = 16 * 2**20
MAX_YAML_BYTES = 2**20
MAX_NODES = 200_000
MAX_DEPTH = 40
MOST_COMPARED = 100

M = TypeVar("M", bound=BaseModel)

_TAG = "tag:yaml.org,2002:"
# A date stays the text that it is: only the setting knows whether it wants a moment or a day.
_TEXT_TAGS = {_TAG + "str", _TAG + "timestamp"}
_VALUE_TAGS = {_TAG + kind for kind in ("int", "float", "bool", "null")}

_TYPE_NAMES = {
    dict: "a mapping",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


class YamlDocument:
    """Plain data (dict, list, str, int, float, bool, None) of one file, and the place of every part of it."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._text = text
        self.data: Any = self._read()

    def _read(self) -> Any:
        # The json module is 1,000 times faster than composing, which matters for long lists. What it refuses is read
        # again as YAML: that knows the place, or admits it (comments, keys without quotes).
        if self._text.lstrip().startswith(("{", "[")):
            try:
                data = json.loads(self._text, object_pairs_hook=_distinct, parse_constant=_no_constant)
            except (ValueError, RecursionError):
                pass
            else:
                return data if _depth(data) <= MAX_DEPTH else self.refuse(f"nested deeper than {MAX_DEPTH} levels")
        if len(self._text) > MAX_YAML_BYTES:
            self.refuse(f"larger than {MAX_YAML_BYTES // 2**20} MiB: write it as plain JSON, which may have 16 MiB")
        return None if self._root is None else _Builder(self).plain(self._root, 0)

    @cached_property
    def _root(self) -> Node | None:
        try:
            root: Node | None = YAML(typ="safe", pure=True).compose(self._text)
        except MarkedYAMLError as error:
            self.refuse(f"not valid YAML: {error.problem or error.context}", error.problem_mark)
        except YAMLError as error:
            self.refuse(f"not valid YAML: {str(error).splitlines()[0]}")
        except RecursionError:
            self.refuse(f"nested deeper than {MAX_DEPTH} levels")
        return root

    def refuse(self, problem: str, mark: Any = None) -> NoReturn:
        """Raise ConfigError with `file:line:column: problem`."""
        raise ConfigError(f"{self._at(mark)}: {problem}")

    def _at(self, mark: Any) -> str:
        return f"{self.path}:{mark.line + 1}:{mark.column + 1}" if mark else str(self.path)

    def place(self, keys: Sequence[str | int]) -> str:
        """`file:line:column` of the key or list item at `keys`; of the deepest part on the way there that exists."""
        if len(self._text) > MAX_YAML_BYTES or self._root is None:
            return str(self.path)
        node, mark = self._root, self._root.start_mark
        for key in keys:
            node, mark = _child(node, key) or (node, mark)
        return self._at(mark)


def load_yaml(path: Path) -> YamlDocument:
    """Read a YAML 1.2 or JSON file. Raises ConfigError with the place of what is wrong."""
    try:
        if not path.is_file():
            raise ConfigError(f"{path}: no such file")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_BYTES // 2**20} MiB")
    try:
        return YamlDocument(path, raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None


def validate(document: YamlDocument, model: type[M]) -> M:
    """The document as `model`. Raises ConfigError: `file:line:column: key: what was expected`.

    The value itself is never repeated, except by the quantities, because a misplaced value may be a secret.
    """
    try:
        return model.model_validate({} if document.data is None else document.data)
    except ValidationError as error:
        details = error.errors(include_url=False)
    first = min(details[:MOST_COMPARED], key=lambda detail: _order(document.place(detail["loc"])))
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    raise ConfigError(f"{document.place(first['loc'])}: {_problem(first, model)}{more}")


def nearest(word: str, known: Iterable[str]) -> str:
    """How an error speaks of an unknown word: the known one that is meant, else all of them if they are few."""
    names = sorted(known)
    if meant := nearly(word, names, likeness=0.6):
        return f"did you mean {meant!r}?"
    return f"known are {', '.join(names)}" if len(names) <= 20 else f"none of the {len(names)} known names is like it"


def nearly(word: str, known: Iterable[str], *, likeness: float = 0.9) -> str | None:
    """The known word that is most like `word` and at least that much (difflib's ratio), or None."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=likeness)), None)


class _Builder:
    """Turns composed nodes into plain data. Aliases are expanded here, so the count also stops an alias bomb."""

    def __init__(self, document: YamlDocument) -> None:
        self._document = document
        self._constructor = YAML(typ="safe", pure=True).constructor
        self._count = 0

    def plain(self, node: Node, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_NODES:
            self._document.refuse(f"more than {MAX_NODES:,} values", node.start_mark)
        if depth > MAX_DEPTH:
            self._document.refuse(f"nested deeper than {MAX_DEPTH} levels", node.start_mark)
        if isinstance(node, MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, depth)
        if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
            return [self.plain(item, depth + 1) for item in node.value]
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        return self._refuse_tag(node)

    def _mapping(self, node: MappingNode, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self._document.refuse("a key must be one word", key.start_mark)
            if key.value in result:
                self._document.refuse(f"key {key.value[:60]!r} is written twice", key.start_mark)
            result[key.value] = self.plain(value, depth + 1)
        return result

    def _scalar(self, node: ScalarNode) -> Any:
        if node.tag in _TEXT_TAGS:
            return node.value
        if node.tag not in _VALUE_TAGS:
            self._refuse_tag(node)
        try:
            return self._constructor.construct_object(node)
        except (ValueError, YAMLError):
            self._document.refuse(f"{node.value[:40]!r} is not a number that can be read", node.start_mark)

    def _refuse_tag(self, node: Node) -> NoReturn:
        self._document.refuse(f"tag {str(node.tag)[:60]!r} is not read", node.start_mark)


def _child(node: Node, key: str | int) -> tuple[Node, Any] | None:
    if isinstance(node, MappingNode):
        return next(((value, name.start_mark) for name, value in node.value if name.value == str(key)), None)
    if isinstance(node, SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key].start_mark
    return None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key is written twice")
    return result


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _depth(data: Any) -> int:
    levels, layer = 0, [data]
    while layer := [c for part in layer if isinstance(part, dict | list) for c in _parts(part)]:
        levels += 1
    return levels


def _parts(part: dict[str, Any] | list[Any]) -> list[Any]:
    return list(part.values()) if isinstance(part, dict) else part


def _order(place: str) -> tuple[int, ...]:
    return tuple(int(part) for part in place.rsplit(":", 2)[1:] if part.isdigit())


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> str:
    words = [str(key)[:60] for key in detail["loc"]]
    path = ".".join(word if word.isprintable() else repr(word) for word in words) or "the file"
    if detail["type"] == "extra_forbidden":
        return f"unknown key {words[-1]!r} in {path}; {nearest(words[-1], _known_names(model, detail['loc'][:-1]))}"
    if detail["type"] == "value_error":
        return f"{path}: {detail['ctx']['error']}"
    message = re.sub(r", unable to parse.*| or instance of.*| after validation", "", detail["msg"])
    if not message.startswith("Input should be"):
        return f"{path}: {message}"
    expected = message.replace("Input should be", "expected").replace("valid dictionary", "mapping")
    return f"{path}: {expected}, got {_TYPE_NAMES.get(type(detail['input']), 'nothing')}"


def _known_names(model: type[BaseModel], keys: Iterable[str | int]) -> set[str]:
    """Field names of the models that `keys` leads to; keys that name no field (list places, free keys) lead on."""
    models = {model}
    for key in keys:
        fields = [field for m in models for name, field in _fields(m).items() if name == key]
        models = {inner for field in fields for inner in _models_in(field.annotation)} or models
    return {name for m in models for name in _fields(m)}


def _fields(model: type[BaseModel]) -> Mapping[str, Any]:
    if issubclass(model, RootModel):
        inner = _models_in(model.model_fields["root"].annotation)
        return {name: field for m in inner for name, field in _fields(m).items()}
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
