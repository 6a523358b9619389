"""Which engine a command starts, and with what."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from .command_line import CommandLine, Launch
from .llamacpp.command_line import COMMAND_LINE as LLAMACPP
from .sglang.command_line import COMMAND_LINE as SGLANG
from .tgi.command_line import COMMAND_LINE as TGI
from .trtllm.command_line import COMMAND_LINE as TRTLLM
from .vllm.command_line import COMMAND_LINE as VLLM

COMMAND_LINES: Mapping[str, CommandLine] = {one.engine: one for one in (VLLM, SGLANG, TGI, TRTLLM, LLAMACPP)}
"""Every engine whose command line is understood, by name."""
VARIABLES = frozenset(name for one in COMMAND_LINES.values() for name in one.variables)
"""Every environment variable that sets a flag of some engine; no other one is ever kept."""
FURTHEST = 64
"""Wrappers (numactl, exec, a launcher with options of its own) stand before the program, but not endlessly many."""
_INTERPRETER = re.compile(r"python[\d.]*|pypy[\d.]*")


def launch(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, extra: Sequence[str] = ()
) -> Launch | None:
    """What `command` starts, or None when no word of it is an engine's program.

    extra: arguments of lower rank, from a configuration file.
    """
    for engine in COMMAND_LINES.values():
        for program in engine.programs:
            at = _place(command[:FURTHEST], program)
            if at is not None:
                rest = list(command[at + len(program) :])
                return engine.read(_with_extra(rest, extra), environment)
    return None


def launch_of_process(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, extra: Sequence[str] = ()
) -> Launch | None:
    """What a running process is: the program itself or an interpreter that runs it, not a command that names one."""
    if not command:
        return None
    first = PurePosixPath(command[0]).name
    starts = {program[0] for engine in COMMAND_LINES.values() for program in engine.programs}
    if first not in starts and not _INTERPRETER.fullmatch(first):
        return None
    return launch(command, environment, extra=extra)


def launch_of_image(
    image: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> Launch | None:
    """What an image starts that is given no command: its own program with these arguments."""
    for engine in COMMAND_LINES.values():
        if any(part in image for part in engine.images):
            return engine.read(arguments, environment)
    return None


def unwired(found: Launch, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that are named like flags which no argument carries and the engine does not read, one line each.

    vLLM has no variable for any flag that sizes it: `VLLM_MAX_NUM_SEQS=256` changes nothing unless a wrapper uses it.
    """
    engine = COMMAND_LINES[found.engine]
    lines = []
    for variable, value in environment.items():
        flag = variable.lower().removeprefix(f"{engine.engine}_")
        carried = flag in found.unresolved_flags or _common_name(engine, flag, value) in found.flags
        if flag in engine.known and variable not in engine.variables and not carried:
            lines.append(f"{variable} is {value[:40]}, but no argument carries it: only a wrapper could pass it on")
    return tuple(lines)


def variables_like_flags(engine: str) -> frozenset[str]:
    """The names under which people set flags of an engine, whether it reads them or not."""
    known = {flag.upper() for flag in COMMAND_LINES[engine].known}
    return frozenset({*known, *(f"{engine.upper()}_{flag}" for flag in known)})


def _common_name(engine: CommandLine, flag: str, value: str) -> str:
    try:
        return engine.canonical(flag, value)[0]
    except ValueError:
        return flag


def _with_extra(arguments: list[str], extra: Sequence[str]) -> list[str]:
    """Arguments of lower rank stand between the model and the options that win over them."""
    leading = next((place for place, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    return [*arguments[:leading], *extra, *arguments[leading:]]


def _place(command: Sequence[str], program: Sequence[str]) -> int | None:
    """Where the words of the program stand in a row; of the first one only the last part of its path counts."""
    for at in range(len(command) - len(program) + 1):
        first, *others = command[at : at + len(program)]
        if PurePosixPath(first).name == program[0] and others == list(program[1:]):
            return at
    return None
