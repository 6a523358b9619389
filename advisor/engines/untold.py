"""Flags where nothing that was read says which engine serves: the canonical names, which are said to be vLLM's."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.domain.evidence import FlagValue

from .vllm import flags as vllm


class UntoldFlags:
    """Flags of whatever serves. What it would refuse, leave out or count is another matter on every engine."""

    def canonical(self, name: str, value: object) -> tuple[str, FlagValue]:
        """The flag as it is. Raises ValueError with one line when it cannot have that value."""
        return vllm.canonical(name, value)

    def lacks(self, knob: str) -> str | None:
        """None for every flag that advice may print, else why there is none."""
        return vllm.lacks(knob)

    def render_flag(self, knob: str, value: FlagValue) -> str:
        """`--max-model-len 12288 (vLLM's name)`. Raises ValueError for a knob that advice may not print."""
        return f"{vllm.render_flag(knob, value)} (vLLM's name)"

    def violations(
        self,
        flags: Mapping[str, FlagValue],  # noqa: ARG002
        version: str | None,  # noqa: ARG002
        *,
        pool_tokens: int | None = None,  # noqa: ARG002
    ) -> tuple[str, ...]:
        """Nothing that is known."""
        return ()

    def certain_defaults(self, version: str | None) -> Mapping[str, FlagValue]:  # noqa: ARG002
        """None that every engine has."""
        return {}

    def counts_declared_output(self, version: str | None) -> bool | None:  # noqa: ARG002
        """Not known."""
        return None
