"""What differs from engine to engine: metric names by version, flags, start-up logs, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from advisor.domain.evidence import FlagValue

from .vllm import flags as vllm_flags


class EngineFlags(Protocol):
    """What the flags module of an engine offers; vLLM's own functions say what each means."""

    def render_flag(self, knob: str, value: FlagValue) -> str:
        """The flag as it is written on the engine's command line."""
        ...

    def violations(
        self, flags: Mapping[str, FlagValue], version: str | None, *, pool_tokens: int | None = None
    ) -> tuple[str, ...]:
        """What the engine would refuse at start, one line each."""
        ...

    def counts_declared_output(self, version: str | None) -> bool | None:
        """Whether a request is refused for its prompt plus the output it declares."""
        ...


_FLAGS: Mapping[str, EngineFlags] = {"vllm": vllm_flags}


def flags_of(engine: str) -> EngineFlags | None:
    """The flags of an engine by its name, or None for an engine whose flags are not known yet."""
    return _FLAGS.get(engine)
