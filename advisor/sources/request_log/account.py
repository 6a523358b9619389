"""The account of one reading: what was read, what was not used and why, and the line that tells people."""

from __future__ import annotations

from collections import Counter

from advisor.domain.report import SourceState, SourceStatus

_BAD_SHARE = 0.01
_PROBLEMS_SHOWN = 3


class Account:
    """Counts lines. `bad` could not be read, `unused` could and is not wanted, both by reason; `problems` of files.

    unit: what a line is called, where it is none.
    """

    def __init__(self, unit: str = "lines") -> None:
        self._unit = unit
        self.files = 0
        self._heard: list[str] = []
        self.rows = 0
        self.bad: Counter[str] = Counter()
        self.unused: Counter[str] = Counter()
        self.problems: list[str] = []

    def heard(self, place: str, *, unreadable: int = 0) -> None:
        """A place other than a file was read, but for some entries."""
        if place not in self._heard:
            self._heard.append(place)
        if unreadable:
            self.bad[f"no entries of {place}"] += unreadable

    def state(self, name: str, *, requests: int) -> SourceState:
        """How reading went; `requests` are those that count towards a deployment.

        Failed: not one line could be read. Partial: a file could not, or not wholly, or over 1 % of lines.
        """
        bad = self.bad.total()
        status: SourceStatus = "ok"
        if self.problems or bad > _BAD_SHARE * (self.rows + bad):
            status = "partial" if self.rows else "failed"
        told = [self._told(requests)] if self.files or self._heard else []
        hidden = len(self.problems) - _PROBLEMS_SHOWN
        more = [f"{hidden:,} more such files"] if hidden > 0 else []
        return SourceState(name, status, "; ".join([*told, *self.problems[:_PROBLEMS_SHOWN], *more]))

    def _told(self, requests: int) -> str:
        parts = []
        if self.bad.total():
            lines = self.rows + self.bad.total()
            parts.append(f"{self.bad.total():,} of {lines:,} {self._unit} skipped: {_listed(self.bad)}")
        if self.unused.total():
            parts.append(f"not used: {_listed(self.unused)}")
        note = f" ({'; '.join(parts)})" if parts else ""
        return f"{requests:,} requests in {self._places()}{note}"

    def _places(self) -> str:
        files = [f"{self.files:,} file{'s' if self.files != 1 else ''}"] if self.files else []
        return " and ".join([*files, *self._heard])


def _listed(reasons: Counter[str]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common() if count)
