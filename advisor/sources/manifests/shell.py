"""Words of a shell script and of what refers to variables, without running any of it.

What only a shell could tell (a variable set elsewhere, the output of a command) is marked as not told.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping

from advisor.engines.command_line import untold

MAX_SCRIPT = 65_536
MAX_WORD = 32_768
_ENDS = ";&|\n()<>"
_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
# Bounded repeats keep the search linear in the script, whatever the script.
_OUTPUT = re.compile(r"\$\([^()]{0,500}\)|`[^`]{0,500}`")
_REFERENCE = re.compile(r"\$\{(\w{1,100})(?::?[-=+?][^{}]{0,500})?\}|\$(\w{1,100}|[@*])")
_KUBERNETES = re.compile(r"\$\$|\$\((\w{1,100})\)")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,99})=(.*)", re.DOTALL)
_NO_BREAK = "\N{NO-BREAK SPACE}"
_COMMAND_OUTPUT = untold(_NO_BREAK.join(("the", "output", "of", "a", "command")))


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """Text with `$NAME` and `${NAME}` replaced; one that the environment lacks is marked. ValueError: it grows too far.

    >>> expanded("--max-num-seqs=${SEQS}", {"SEQS": "64"}), expanded("$X", {})
    ('--max-num-seqs=64', '⟦$X⟧')
    """
    return _filled(_REFERENCE, text[:MAX_WORD], lambda match: _told(match[1] or match[2], environment))


def expanded_by_kubernetes(text: str, environment: Mapping[str, str]) -> str:
    """Text with `$(NAME)` replaced and `$$` read as `$`, which is all that Kubernetes does to arguments."""
    return _filled(_KUBERNETES, text[:MAX_SCRIPT], lambda match: _told(match[1], environment) if match[1] else "$")


def _filled(pattern: re.Pattern[str], text: str, told: Callable[[re.Match[str]], str]) -> str:
    """The text with what was found replaced. Variables that hold one another twice would double with each of them."""
    room = MAX_SCRIPT

    def word(match: re.Match[str]) -> str:
        nonlocal room
        filled = told(match)
        room -= len(filled)
        if room < 0:
            raise ValueError(f"its variables fill more than {MAX_SCRIPT // 1024} KiB")
        return filled

    return pattern.sub(word, text)


def _told(name: str, environment: Mapping[str, str]) -> str:
    return environment[name] if name in environment else untold(f"${name}")


def commands(script: str, environment: Mapping[str, str]) -> list[list[str]]:
    """The commands of a script as words, in order. Raises ValueError with one line for what no shell could read."""
    if len(script) > MAX_SCRIPT:
        raise ValueError(f"the script is larger than {MAX_SCRIPT // 1024} KiB")
    text = _COMMENT.sub("", script.replace("\\\n", " "))
    text = _filled(_OUTPUT, text, lambda _: _COMMAND_OUTPUT)
    if "$(" in text or "`" in text:
        raise ValueError("the script nests commands in commands")
    known = {**environment, **_assigned(_split(text), environment)}
    return _split(_filled(_REFERENCE, text, lambda match: _told(match[1] or match[2], known)))


def _assigned(listed: list[list[str]], environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that the script sets to one value; of several nobody knows which one counts."""
    values: dict[str, set[str]] = {}
    for words in listed:
        for word in words[1:] if words[0] == "export" else words:
            match = _ASSIGNMENT.fullmatch(word)
            if match is None:
                break
            values.setdefault(match[1], set()).add(match[2])
    known: dict[str, str] = dict(environment)
    for name, said in values.items():
        known[name] = expanded(said.pop(), known) if len(said) == 1 else untold(f"${name}")
    return known


def _split(text: str) -> list[list[str]]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_ENDS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    listed: list[list[str]] = [[]]
    for word in lexer:
        if word and not word.strip(_ENDS):
            listed.append([])
        else:
            listed[-1].append(word)
    return [words for words in listed if words]
