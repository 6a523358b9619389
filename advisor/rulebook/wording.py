"""Sentences of rules with facts filled in: `{kv_usage_p95}` becomes `4 %`. Only names of facts are looked up."""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.domain import numbers
from advisor.domain.fact import Fact

from .condition import known_fact

_PLACE = re.compile(r"\{([^{}]*)\}")


def names(text: str) -> tuple[str, ...]:
    """The facts that a sentence asks for; ConfigError for a name that is none."""
    return tuple(known_fact(name) for name in _PLACE.findall(text))


def fill(text: str, facts: Mapping[str, Fact]) -> str:
    """The sentence with every `{fact}` replaced by its value in its unit."""
    return _PLACE.sub(lambda match: numbers.told(match[1], facts[match[1]]), text)
