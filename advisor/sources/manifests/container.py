"""One container as a manifest describes it, and the engine that it starts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from advisor.engines.command_line import Launch, untold
from advisor.engines.launch import COMMAND_LINES, VARIABLES, launch, launch_of_image, unwired

from .shell import commands

MOST_WORDS = 4_096
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
_RUNTIMES = frozenset({"docker", "podman", "nerdctl"})
_TAG = re.compile(r"v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?(?:rc\d{1,3}|\.post\d{1,3})?)(?:-.*)?")


@dataclass(frozen=True, slots=True)
class Container:
    """What of a container decides its flags.

    environment: values, or marks for those that are set elsewhere. elsewhere: where more variables come from.
    """

    image: str = ""
    command: Sequence[str] = ()
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    elsewhere: str | None = None

    def launch(self) -> Launch | None:
        """The engine that it starts, or None when it starts none."""
        words = [*self.command, *self.arguments]
        found = launch_of_words(words, self.environment)
        if found is None and not self.command:
            found = launch_of_image(self.image, words, _known(self.environment))
            # What somebody else's image adds by itself is not seen here.
            found = replace(found, whole=found.whole and self._is_official()) if found else None
        found = opened(found, self.elsewhere)
        return replace(found, unresolved=(*found.unresolved, *unwired(found, self.environment))) if found else None

    def version(self) -> str | None:
        """The engine's release by the tag of an official image: `vllm/vllm-openai:v0.11.0` is 0.11.0."""
        match = _TAG.fullmatch(self.image.partition("@")[0].rpartition(":")[2])
        return match[1] if match and self._is_official() else None

    def _is_official(self) -> bool:
        """Whether the image is one of the engine's own project, or a mirror of it."""
        name = self.image.partition("@")[0].rpartition(":")[0]
        official = [repository for one in COMMAND_LINES.values() for repository in one.releases]
        return any(name == one or name.endswith(f"/{one}") for one in official)


def opened(found: Launch | None, elsewhere: str | None) -> Launch | None:
    """The engine with the word that flags may be set in variables which are written elsewhere, where it has such."""
    if found is None or elsewhere is None or not COMMAND_LINES[found.engine].variables:
        return found
    told = f"more flags may be set in {elsewhere}, which is not told here"
    return replace(found, unresolved=(*found.unresolved, told), whole=False)


def launch_of_words(words: Sequence[str], environment: Mapping[str, str]) -> Launch | None:
    """The engine that a command starts: directly, in the script of a shell, or in a container that it runs."""
    script = _script(words)
    if script is not None:
        return _launch_of_script(script, environment)
    if words and PurePosixPath(words[0]).name in _RUNTIMES:
        return _launch_of_run(words)
    return launch(words, _known(environment))


def _known(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name in VARIABLES}


def _script(words: Sequence[str]) -> str | None:
    """The script in `sh -c SCRIPT`, wherever wrappers have put it."""
    for at, word in enumerate(words[:16]):
        if PurePosixPath(word).name in _SHELLS:
            options = [i for i, option in enumerate(words[at + 1 : at + 6], at + 1) if re.fullmatch(r"-\w*c", option)]
            if options and options[0] + 1 < len(words):
                return words[options[0] + 1]
    return None


def _launch_of_script(script: str, environment: Mapping[str, str]) -> Launch | None:
    try:
        started = [found for words in commands(script, environment) if (found := launch_of_words(words, environment))]
    except ValueError as error:
        engine = next((one for one in COMMAND_LINES.values() if any(p[-1] in script for p in one.programs)), None)
        told = f"the script that starts it cannot be read: {error}"
        return None if engine is None else Launch(engine.engine, engine.port, unresolved=(told,), whole=False)
    if len(started) < 2:
        return next(iter(started), None)
    told = f"its script starts an engine in {len(started)} places, and only a shell could tell which one counts"
    return replace(started[0], flags={}, unresolved=(told,), whole=False)


def _launch_of_run(words: Sequence[str]) -> Launch | None:
    """`docker run [options] IMAGE [arguments]`: the image is the first word that names an engine's."""
    environment: dict[str, str] = {}
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        if before in ("-e", "--env"):
            name, equals, value = word.partition("=")
            environment[name] = value if equals else untold(f"${name}")
        elif not word.startswith("-") and (found := launch_of_image(word, words[at + 1 :], _known(environment))):
            return launch(words[at + 1 :], _known(environment)) or found
    return None
