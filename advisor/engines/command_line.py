"""How an engine is started: its arguments as flags under canonical names. Nothing is executed or expanded here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from advisor.domain.evidence import FlagValue

MOST_ARGUMENTS = 4_096
MAX_NAME = 256
SHORTEST_PREFIX = 5
_OPTION = re.compile(r"-{1,2}[A-Za-z]")
_NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?")
_UNTOLD = re.compile("⟦([^⟦⟧]*)⟧")


def untold(what: str) -> str:
    """Stands in an argument for what the file does not tell, such as a variable that is set elsewhere."""
    return f"⟦{_UNTOLD.sub('', what)[:80]}⟧"


@dataclass(frozen=True, slots=True)
class Launch:
    """One server as it was started.

    flags: under canonical names. served_names: what clients call the model. unresolved: what the arguments leave open,
    one line each. whole: nothing is left open, so that a flag which is not there was not set.
    """

    engine: str
    port: int
    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    served_names: tuple[str, ...] = ()
    config_file: str | None = None
    unresolved: tuple[str, ...] = ()
    whole: bool = True

    @property
    def unresolved_flags(self) -> frozenset[str]:
        """The flags that are set to something which the arguments do not tell, under the engine's own names."""
        return frozenset(line.partition(" ")[0] for line in self.unresolved)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The command line of one engine.

    programs: words in a row by which it is told, a path before the first left out. images: parts of the names of images
    that start it without a command; releases: repositories of images whose tag is the engine's release. known: its
    flags, own names with underscores. aliases: other spellings of an own name. switches: flags without a value that
    mean another one with a value. variables: environment variable -> flag; the command line wins. model, served,
    config_file: the flags that name these, with underscores. structured: what is kept of a flag whose value is JSON.
    """

    engine: str
    programs: tuple[tuple[str, ...], ...]
    images: tuple[str, ...]
    port: int
    known: frozenset[str]
    canonical: Callable[[str, object], tuple[str, FlagValue]]
    model: tuple[str, ...]
    served: tuple[str, ...]
    releases: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, tuple[str, FlagValue]] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    structured: Mapping[str, Callable[[object], str | None]] = field(default_factory=dict)
    config_file: str | None = None
    abbreviates: bool = False

    def read(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Launch:
        """What follows the program, and the variables that it knows. Of two values for a flag the last one counts.

        `vllm serve /m -tp 4 --max-model-len 12k` is tensor_parallel_size 4 and max_model_len 12,000.
        """
        given = environment or {}
        stated = [f"--{flag}={given[variable]}" for variable, flag in self.variables.items() if variable in given]
        seen = _Seen(self)
        # A word before the first option is the model; the variables come first because the arguments win.
        leading = next((place for place, word in enumerate(arguments) if _OPTION.match(word)), len(arguments))
        for name, values in (*_options(stated), ("", list(arguments[:leading])), *_options(arguments[leading:])):
            seen.note(name, values)
        return seen.launch()

    def own_name(self, option: str) -> str:
        """The option under the engine's first name for it: an alias, or a unique abbreviation where it takes these."""
        if option in self.aliases:
            return self.aliases[option]
        name = option.lstrip("-").replace("-", "_")
        known = {*self.known, *self.switches, *self.aliases, *self.model, *self.served, "port"}
        if name in known or not self.abbreviates or len(name) < SHORTEST_PREFIX:
            return self.aliases.get(name, name)
        meant = [one for one in known if one.startswith(name)]
        return self.aliases.get(meant[0], meant[0]) if len(meant) == 1 else name


def as_arguments(stated: Mapping[str, object]) -> list[str]:
    """Flags of a configuration file as the words that say the same: false is one with `--no-`."""
    words: list[str] = []
    for name, value in stated.items():
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        elif isinstance(value, list):
            words += [f"--{name}", *map(str, value)]
        elif value is not None:
            words.append(f"--{name}={json.dumps(value) if isinstance(value, dict) else value}")
    return words


def _options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each option with the words up to the next one."""
    name, values = "", list[str]()
    for word in words[:MOST_ARGUMENTS]:
        if _OPTION.match(word):
            yield name, values
            name, equals, value = word.partition("=")
            values = [value] if equals else []
        else:
            values.append(word)
    yield name, values


class _Seen:
    """What the options of one command line have said so far."""

    def __init__(self, engine: CommandLine) -> None:
        self._of = engine
        self._values: dict[str, FlagValue] = {}
        self._parts: dict[str, dict[str, FlagValue]] = {}
        self._open: dict[str, str] = {}
        self._hidden: list[str] = []
        self._model: tuple[str, ...] = ()
        self._served: tuple[str, ...] = ()
        self._port = engine.port
        self._config_file: str | None = None

    def note(self, option: str, values: list[str]) -> None:
        """One option with its words; words without an option are the model."""
        name = self._of.own_name(option) if option else ""
        if name in ("", *self._of.model):
            self._model = _names(values[:1]) or self._model
            if values and (missing := _UNTOLD.findall(values[0])):
                self._open["the model"] = f"is {', '.join(missing)}, which is not told here"
        elif name in self._of.served:
            self._served = _names(values)
            return
        elif name == "port" and values and values[0].isdecimal():
            self._port = int(values[0][:6])
        elif name == self._of.config_file and values:
            self._config_file = values[0][:MAX_NAME]
        else:
            self._flag(name, values)
        self._hidden += [found for word in values[1:] for found in _UNTOLD.findall(word)]

    def _flag(self, name: str, values: list[str]) -> None:
        base, dot, part = name.partition(".")
        if name in self._of.switches:
            name, value = self._of.switches[name]
            self._set(name, value)
        elif name in self._of.known and values and (missing := _UNTOLD.findall(values[0])):
            self._values.pop(name, None)
            self._open[name] = f"is {', '.join(missing)}, which is not told here"
        elif name in self._of.known:
            self._set(name, _value(values))
        elif name.removeprefix("no_") in self._of.known and not values:
            self._set(name.removeprefix("no_"), False)  # noqa: FBT003 - the value of a flag
        elif dot and base in self._of.structured:
            self._parts.setdefault(base, {})[part] = _value(values)

    def _set(self, name: str, value: FlagValue) -> None:
        self._open.pop(name, None)
        self._values[name] = value

    def launch(self) -> Launch:
        """Everything that was said, under canonical names."""
        flags: dict[str, FlagValue] = {}
        unresolved = [f"{name} {why}" for name, why in self._open.items()]
        for own, value in {**self._values, **{name: json.dumps(parts) for name, parts in self._parts.items()}}.items():
            try:
                name, meant = self._of.canonical(own, self._told(own, value))
            except ValueError as error:
                unresolved.append(f"{own} cannot be read: {error}")
                continue
            # What the engine fits to its memory by itself says nothing of the limit that runs.
            if (name, meant) != ("max_model_len", "auto"):
                flags[name] = meant
        hidden = dict.fromkeys(self._hidden)
        unresolved += [f"more arguments are in {what}, which is not told here" for what in hidden]
        return Launch(
            engine=self._of.engine,
            port=self._port,
            flags=flags,
            served_names=self._served or self._model,
            config_file=self._config_file,
            unresolved=tuple(_plain(line) for line in unresolved),
            whole=not unresolved,
        )

    def _told(self, own: str, value: FlagValue) -> FlagValue:
        if own not in self._of.structured:
            return value
        try:
            document = json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError):
            raise ValueError("it is no JSON") from None
        essential = self._of.structured[own](document)
        if essential is None:
            raise ValueError("it is no JSON object")
        return essential


def _plain(line: str) -> str:
    """Marks hold no blank, so that they stay one word; people read one."""
    return line.replace("\N{NO-BREAK SPACE}", " ")


def _names(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word[:MAX_NAME] for word in words if word and not _UNTOLD.search(word))


def _value(words: Sequence[str]) -> FlagValue:
    """A word as the value that it is; an option without one is switched on."""
    if not words:
        return True
    if words[0].lower() in ("true", "false"):
        return words[0].lower() == "true"
    if number := _NUMBER.fullmatch(words[0]):
        return float(words[0]) if number[1] else int(words[0])
    return words[0][:4096]
