"""The table that `make accuracy` prints: a promise of the estimates a row, with its goal and what was reached."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

HEAD = ("what", "cases", "unknown", "goal", "reached", "worst", "verdict")
WIDEST_WORST = 18


@dataclass(frozen=True, slots=True)
class Row:
    """One promise. `unknown` of the `cases` were refused with a reason, and count for nothing else.

    share: of the known cases those that are as promised. worst: the case farthest off. met is None where there was
    nothing to measure, and `reached` then says what is missing.
    """

    what: str
    goal: str
    reached: str
    cases: int = 0
    unknown: int = 0
    worst: str = ""
    met: bool | None = None
    share: float | None = None

    @property
    def verdict(self) -> str:
        """The last column."""
        return "" if self.met is None else "met" if self.met else "MISSED"


def share_row(
    what: str, outcomes: Sequence[tuple[str, bool | None]], least: float, *, goal: str = "", worst: str = ""
) -> Row:
    """A row whose goal is that at least a share `least` of the known outcomes hold; None is an Unknown.

    `worst` defaults to the name of the first case that does not hold. Nineteen of twenty at least 0.95 is met.
    """
    known = [(name, held) for name, held in outcomes if held is not None]
    goal = f"{goal} on {least:.0%}" if goal else f">= {least:.0%}"
    if not known:
        return Row(what, goal, "-", len(outcomes), len(outcomes), met=False)
    share = sum(held for _, held in known) / len(known)
    worst = worst or next((name for name, held in known if not held), "")
    met = share >= least - 1e-9
    return Row(what, goal, f"{share:.0%}", len(outcomes), len(outcomes) - len(known), worst, met, share)


def bound_row(
    what: str, errors: Sequence[tuple[str, float | None]], most: float, least: float, *, form: str = "+.0%"
) -> Row:
    """A row whose goal is that a share `least` of the known errors lie within +-`most`; None is an Unknown."""
    known = [(name, error) for name, error in errors if error is not None and math.isfinite(error)]
    name, far = max(known, key=lambda pair: abs(pair[1]), default=("", 0.0))
    within = [(name, None if error is None else abs(error) <= most) for name, error in errors]
    return share_row(what, within, least, goal=f"+-{most:.0%}", worst=f"{far:{form}} {name}")


def render(rows: Iterable[Row]) -> str:
    """The table as text of at most 100 columns; of a row without cases only what is missing."""
    listed = list(rows)
    cells = [HEAD, *(_cells(row) for row in listed if row.cases)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEAD))]
    widths[0] = max(len(row.what) for row in listed)
    lines = [(row.what, row.reached) if not row.cases else _cells(row) for row in listed]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in [HEAD, *lines])


def _cells(row: Row) -> tuple[str, ...]:
    counts = str(row.cases), str(row.unknown)
    return (row.what, *counts, row.goal, row.reached, row.worst[:WIDEST_WORST], row.verdict)
