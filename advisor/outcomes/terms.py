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
    demand_even: over all hours compared, demand before and after differs by no more.
    usual_tested: the hours compared had at least such a share of the usual demand, and of what is predicted.
    back_seconds: how far before a change hours are compared with.
    compared_hours: how many hours must be alike before anything is decided; a day, less those of two restarts.
    period_seconds: within such a span hours are no separate witnesses; across its border they are.
    patience_seconds: a prediction that is not decided by then no longer holds up the verdict on the others; and what
    cannot be compared hour by hour is compared after as long, which is a whole week.
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
    demand_even: float = 0.02
    usual_tested: float = 0.8
    back_seconds: float = 28 * DAY
    compared_hours: int = 20
    period_seconds: float = 6 * HOUR
    patience_seconds: float = 7 * DAY
    noise: float = 0.10
