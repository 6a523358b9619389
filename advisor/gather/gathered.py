"""What was read so far, and how it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from advisor.domain.errors import SourceError, UsageError
from advisor.domain.evidence import UNTOLD, Evidence, Window
from advisor.domain.report import SourceState

Read = TypeVar("Read")


@dataclass(slots=True)
class Gathered:
    """What was read. `queries` and `samples` are what engine metrics cost."""

    deployments: dict[str, Evidence] = field(default_factory=dict)
    sources: list[SourceState] = field(default_factory=list)
    queries: int = 0
    samples: int = 0
    notes: list[str] = field(default_factory=list)

    def attempt(self, name: str, read: Callable[[], Read]) -> Read | None:
        """The result of reading a source, or None with the failure noted."""
        try:
            return read()
        except SourceError as error:
            self.sources.append(SourceState(name, "failed", str(error)))
            return None

    def known(self, name: str, window: Window) -> Evidence:
        """What is known of a deployment so far."""
        return self.deployments.get(name) or Evidence(name=name, window=window, engine=UNTOLD)

    def only(self, what: str, setting: str) -> str:
        """The only deployment there is. Raises UsageError where there are none or several."""
        if len(self.deployments) != 1:
            raise UsageError(
                f"{what}: {len(self.deployments)} deployments, so say which one in the configuration ({setting})"
            )
        return next(iter(self.deployments))
