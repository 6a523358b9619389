"""Start-up logs: what an engine told while it started, whichever engine it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from advisor.domain.errors import SourceError
from advisor.engines.llamacpp import startup_log as llamacpp
from advisor.engines.sglang import startup_log as sglang
from advisor.engines.startup import StartupFacts
from advisor.engines.tgi import startup_log as tgi
from advisor.engines.vllm import startup_log as vllm

from .engine_log import engine_lines, is_empty
from .request_log import JOURNAL


def read_startup_log(place: Path, since: float = 0.0, journals: Path | None = None) -> StartupFacts:
    """What the engine told while it started; of several starts in one log, the last.

    place: a file whose lines may be plain, prefixed (CRI, syslog) or wrapped in JSON, or `journal:UNIT`, read since
    UNIX seconds in this machine's journal or in `journals`. Raises SourceError when it cannot be read, exceeds 1 GiB,
    or holds no start-up line of a known engine.
    """

    def lines(telling: re.Pattern[bytes]) -> Iterator[str]:
        return (line.decode("utf-8", "replace") for line in engine_lines(place, telling, since, journals))

    facts = (
        vllm.parse_startup(lines(vllm.TELLING))
        or sglang.parse_startup(lines(sglang.TELLING))
        or tgi.parse_startup(lines(tgi.TELLING))
        or llamacpp.parse_startup(lines(llamacpp.TELLING))
    )
    if facts is None:
        raise SourceError(f"{place}: {_why_nothing(place, since, journals)}", permanent=True)
    return facts


def _why_nothing(place: Path, since: float, journals: Path | None) -> str:
    if not is_empty(place, since, journals):
        return "no start-up line of vLLM, SGLang, TGI or llama.cpp in it; give the log from its first line"
    if str(place).startswith(JOURNAL):
        return (
            "the journal shows no line of that unit: it is called otherwise (systemctl list-units), or this user may "
            "not read it (group systemd-journal)"
        )
    return "the file is empty; give the log from its first line"
