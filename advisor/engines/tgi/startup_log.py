"""The lines that TGI prints while it starts, 1.0 to 3.3, as facts; plain, or as the messages of `--json-output`.

Arguments that nobody set are printed as None. Where they fill several lines, only those with a plain value are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from advisor.domain.evidence import FlagValue
from advisor.engines.startup import StartupFacts

from .flags import FLAGS

MAX_NAME = 256

TELLING = re.compile(rb"Args \{|[Ss]etting max batch total tokens to|Default `max_")
"""Finds the few lines worth parsing in the bytes of a large log."""

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_OWN = "|".join(sorted((*FLAGS.names, *FLAGS.kept), key=len, reverse=True))
_ARGUMENTS = re.compile(r"Args \{")
_ARGUMENT = re.compile(rf"\b({_OWN}): (?:Some\()?(\d{{1,12}}(?:\.\d{{1,9}})?)\b")
_DEFAULT = re.compile(rf"Default `({_OWN})` to (\d{{1,12}})\b")
_MODEL = re.compile(r'model_id: "([^"]{1,256})"')
_POOL = re.compile(r"[Ss]etting max batch total tokens to (\d{1,12})\b")


@dataclass
class _Start:
    """What one start has printed so far."""

    model: str | None = None
    flags: dict[str, FlagValue] = field(default_factory=dict)
    pool: int | None = None

    def note(self, name: str, text: str) -> None:
        common, value = FLAGS.canonical(name, float(text) if "." in text else int(text))
        self.flags[common] = value

    def facts(self) -> StartupFacts:
        served = (self.model,) if self.model else ()
        return StartupFacts(
            engine="tgi",
            model=self.model,
            served_names=served,
            flags=self.flags,
            kv_pool_tokens=self.pool,
            engines=1 if self.pool else 0,
        )


def parse_startup(lines: Iterable[str]) -> StartupFacts | None:
    """What the last start in `lines` says; None when no line is one that TGI prints while starting.

    A restart is seen by the arguments, which are printed once a start.
    """
    start: _Start | None = None
    for raw in lines:
        line = _ANSI.sub("", raw)
        arguments = _ARGUMENTS.search(line)
        if arguments and "max_concurrent_requests" not in line:
            continue
        if arguments or start is None:
            fresh = _Start()
            start = fresh if _note(fresh, line) else start
        else:
            _note(start, line)
    return start.facts() if start else None


def _note(start: _Start, line: str) -> bool:
    told = False
    if _ARGUMENTS.search(line):
        model = _MODEL.search(line)
        start.model, told = model[1][:MAX_NAME] if model else None, True
        for name, text in _ARGUMENT.findall(line):
            if float(text) > 0:
                start.note(name, text)
    if default := _DEFAULT.search(line):
        start.note(*default.groups())
        told = True
    if pool := _POOL.search(line):
        start.pool, told = int(pool[1]), True
    return told
