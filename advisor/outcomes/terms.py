"""How patient and how strict the life of advice is: the handful of numbers that tell a change from noise."""

from __future__ import annotations

from dataclasses import dataclass

HOUR, DAY = 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Terms:
    """Shares are relative changes, 0.1 is a tenth; times are seconds.

    same_within: a value that moved by less is the same advice and keeps its record, its id and its first value.
    muted_within: snoozed and rejected advice stays silent until its value moves by more, or its severity rises.
    grace_seconds: advice that holds no longer is kept for so long, so that a hovering fact does not flap.
    revive_seconds: advice that ended because it held no longer continues under its id when it is back within this time.
    forget_seconds: advice that nobody could judge for so long ends.
    settle_seconds: how long a change must have been observed before its prediction is judged.
    demand_within, lengths_within: traffic before and after is comparable up to such a change.
    noise: of a value; a prediction must be missed by more to count as missed.
    """

    same_within: float = 0.10
    muted_within: float = 0.25
    grace_seconds: float = 3 * HOUR
    revive_seconds: float = DAY
    forget_seconds: float = 14 * DAY
    settle_seconds: float = DAY
    demand_within: float = 0.30
    lengths_within: float = 0.25
    noise: float = 0.10
