"""Rules, facts and evidence of a few words each, for the rulebook's tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.domain.evidence import Evidence, Flag, FlagValue, Slo, Window
from advisor.domain.fact import Fact, FactSheet, measured
from advisor.rulebook.schema import Rule

HEADINGS = dict.fromkeys(("what", "why", "evidence", "change", "verify", "undo", "limits"), "Told elsewhere.")
RAISE = {"verdict": "change_flag", "knob": "max_num_seqs", "to": "next_max_num_seqs"}


def rule(*when: Any, **parts: Any) -> Rule:
    """A rule that holds when all conditions do."""
    base: dict[str, Any] = {"id": "area/name", "title": "A title", "severity": "info", "reason": "a reason"}
    return Rule.model_validate({**base, **HEADINGS, "when": list(when), **parts})


def fact(written: float | str | tuple[float | None, float | None], n: int | None = None) -> Fact:
    """A value, or a pair of bounds."""
    if isinstance(written, tuple):
        return measured(None, low=written[0], high=written[1], n=n, source="test")
    return Fact(value=written, n=n, source="test")


def sheet(**facts: float | str | tuple[float | None, float | None] | Fact) -> FactSheet:
    """A sheet of these facts; the others are Unknown."""
    return FactSheet({name: given if isinstance(given, Fact) else fact(given) for name, given in facts.items()})


def evidence(
    flags: Mapping[str, FlagValue] | None = None, slo: Slo | None = None, engine: str = "vllm", **parts: Any
) -> Evidence:
    """A deployment with these flags and objectives."""
    stated = {name: Flag(value, "startup_log") for name, value in (flags or {}).items()}
    return Evidence("chat", Window(0.0, 3600.0), engine=engine, flags=stated, slo=slo or Slo(), **parts)
