"""systemd units: the command of `ExecStart=` with the variables of `Environment=`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from advisor.engines.command_line import untold

from .container import launch_of_words, opened
from .declared import Declared
from .shell import expanded

_SPECIFIER = re.compile(r"%(.)")
_PREFIXES = "@-:+!"


def declared(name: str, unit: str) -> Iterator[Declared]:
    """The engine that a unit starts; of several ExecStart lines the last that starts one. Raises ValueError."""
    environment: dict[str, str] = {}
    found = elsewhere = None
    for line in re.sub(r"\\\n", " ", unit).splitlines():
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals or key.startswith(("#", ";")):
            continue
        if key == "EnvironmentFile":
            elsewhere = f"EnvironmentFile {value[:80]}"
        elif key == "Environment":
            pairs = (word.partition("=") for word in shlex.split(_specified(value)))
            environment |= {variable: told for variable, _, told in pairs}
        elif key == "ExecStart":
            words = [expanded(word, environment) for word in shlex.split(_specified(value.lstrip(_PREFIXES)))]
            found = launch_of_words(words, environment) or found
    if (told := opened(found, elsewhere)) is not None:
        yield Declared(name, told, None if "@" in name else 1)


def _specified(text: str) -> str:
    """Specifiers such as `%i` are of the instance that runs."""
    return _SPECIFIER.sub(lambda match: "%" if match[1] == "%" else untold(f"%{match[1]}"), text)
