"""The flags of an engine that is not vLLM: its own names and the canonical ones, and what it has no flag for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from advisor.domain.evidence import FlagValue

from .vllm.flags import normalise

Refuses = Callable[[Mapping[str, FlagValue], int | None], tuple[str, ...]]


def _nothing(_flags: Mapping[str, FlagValue], _pool_tokens: int | None) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class OwnFlags:
    """Flags under an engine's own names.

    names: own name with underscores -> canonical name, the one that advice prints first. spelled: canonical name -> how
    its flag begins, where that is not `--own-name`. kept: own names without a counterpart that are kept as they are.
    lacking: canonical name -> why there is no flag for it, for advice to say. refuses: what the engine would not start
    with, given flags under canonical names and the pool. alone: what flags are that nobody set, whatever the hardware.
    """

    names: Mapping[str, str]
    kept: frozenset[str] = field(default=frozenset())
    spelled: Mapping[str, str] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)
    refuses: Refuses = _nothing
    alone: Mapping[str, FlagValue] = field(default_factory=dict)
    declared_output_counts: bool | None = None

    def canonical(self, name: str, value: object) -> tuple[str, FlagValue]:
        """The flag under its canonical name, the value as that flag takes it; a canonical name comes back as it is.

        Raises ValueError with one line when the flag cannot have that value.
        """
        common = self.names.get(name, name)
        return common, normalise(common, value)

    def render_flag(self, knob: str, value: FlagValue) -> str:
        """The flag as it is written on the engine's command line. Raises ValueError for a knob that has none."""
        own = next((own for own, common in self.names.items() if common == knob), None)
        if own is None or knob in self.lacking:
            raise ValueError(f"{knob} is no flag of this engine that advice may print")
        return f"{self.spelled.get(knob, '--' + own.replace('_', '-'))} {value}"

    def lacks(self, knob: str) -> str | None:
        """Why the engine has no flag for `knob`, or None when it has one."""
        if knob in self.lacking:
            return self.lacking[knob]
        return None if knob in self.names.values() else f"this engine has no flag for {knob}"

    def violations(
        self,
        flags: Mapping[str, FlagValue],
        version: str | None,  # noqa: ARG002
        *,
        pool_tokens: int | None = None,
    ) -> tuple[str, ...]:
        """What the engine would refuse at start, one line each; flags under canonical names."""
        return self.refuses(flags, pool_tokens)

    def certain_defaults(self, version: str | None) -> Mapping[str, FlagValue]:  # noqa: ARG002
        """What flags are when nobody set them, where hardware has no say."""
        return self.alone

    def counts_declared_output(self, version: str | None) -> bool | None:  # noqa: ARG002
        """Whether a request is refused for its prompt plus the output it declares."""
        return self.declared_output_counts


def count(flags: Mapping[str, FlagValue], name: str) -> int | None:
    """A flag that is a whole number, or None."""
    value = flags.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
