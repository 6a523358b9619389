"""How a step of the daemon went: what its process hands back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from advisor.owners import Owners


@dataclass(slots=True)
class Account:
    """How a step went. `parts`: (part, seconds, detail) in order; `problems`: one line each for people.

    owners: whose logged requests are, for the next step. unsaved: the document of an evaluation that the store did not
    take, (UNIX seconds, JSON), so that people see it all the same.
    """

    parts: list[tuple[str, float, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    owners: Owners | None = None
    unsaved: tuple[float, str] | None = None

    @property
    def detail(self) -> str:
        """One line."""
        return "; ".join(self.problems or [detail for _, _, detail in self.parts if detail])

    @contextmanager
    def part(self, name: str) -> Iterator[list[str]]:
        """Times a part; what is put into the list becomes its detail."""
        began, told = time.monotonic(), list[str]()
        try:
            yield told
        finally:
            self.parts.append((name, time.monotonic() - began, "; ".join(told)))
