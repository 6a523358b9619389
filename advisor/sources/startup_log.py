"""Start-up logs: a file, plain or as container runtimes wrap it, read line by line within bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from advisor.domain.errors import SourceError
from advisor.engines.llamacpp import startup_log as llamacpp
from advisor.engines.sglang import startup_log as sglang
from advisor.engines.startup import StartupFacts
from advisor.engines.tgi import startup_log as tgi
from advisor.engines.vllm import startup_log as vllm

MAX_BYTES = 2**30
MAX_LINE = 65_536

_WRAPPERS = ("log", "MESSAGE", "message", "msg")


def read_startup_log(path: Path) -> StartupFacts:
    """What the engine told while it started; of several starts in one file, the last.

    Lines may be plain, prefixed (CRI, syslog), or JSON objects with the text under `log`, `MESSAGE`, `message`, `msg`.
    Raises SourceError when the file cannot be read, exceeds 1 GiB, or holds no start-up line of a known engine.
    """
    try:
        if not path.is_file():
            raise SourceError(f"{path}: no such file", permanent=True)
        facts = (
            vllm.parse_startup(_telling_lines(path, vllm.TELLING))
            or sglang.parse_startup(_telling_lines(path, sglang.TELLING))
            or tgi.parse_startup(_telling_lines(path, tgi.TELLING))
            or llamacpp.parse_startup(_telling_lines(path, llamacpp.TELLING))
        )
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}") from None
    if facts is None:
        raise SourceError(
            f"{path}: no start-up line of vLLM, SGLang, TGI or llama.cpp in it; give the log from its first line",
            permanent=True,
        )
    return facts


def _telling_lines(path: Path, telling: re.Pattern[bytes]) -> Iterator[str]:
    read, begins = 0, True
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE):
            begun_here, begins = begins, line.endswith(b"\n")
            read += len(line)
            if read > MAX_BYTES:
                raise SourceError(f"{path}: larger than 1 GiB; cut out the part from the last start", permanent=True)
            if begun_here and telling.search(line):
                yield _unwrapped(line.decode("utf-8", "replace"))


def _unwrapped(line: str) -> str:
    if not line.startswith("{"):
        return line
    try:
        wrapped = json.loads(line)
    except (ValueError, RecursionError):
        return line
    texts = [wrapped.get(key) for key in _WRAPPERS]
    return next((text for text in texts if isinstance(text, str)), line)
