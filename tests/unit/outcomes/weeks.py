"""Hours of a deployment with a daily and a weekly season, for tests of what is compared with what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from advisor.domain.advice import Prediction
from advisor.domain.fact import FactSheet, measured
from advisor.domain.hours import DEMAND, ENGINES, OUTPUT, PROMPT, HourFacts
from advisor.domain.life import AdviceRecord
from advisor.outcomes import Terms
from advisor.outcomes.scoring import judged
from tests.unit.outcomes.lives import DAY, HOUR, raise_cap

CHANGED = 1_795_651_200.0  # Thu 26 Nov 2026 00:00 UTC
NO_WORSE = Prediction("itl_mean", 0.02, None, 0.02, "seconds")


def season(start: float) -> float:
    """Requests per second: 3 by day and 1 by night, half of it at weekends; CHANGED is a Thursday, day 0."""
    day, hour = (start - CHANGED) // DAY % 7, start % DAY / HOUR
    return (3.0 if 8 <= hour < 20 else 1.0) * (0.5 if day in (2, 3) else 1.0)


def hour(start: float, itl: float, *, demand: float | None = None, cap: int | None = None, **more: float) -> HourFacts:
    """One hour; after CHANGED the cap is 24 and the engine has been restarted."""
    late = start >= CHANGED
    ran = cap if cap is not None else 24 if late else 16
    figures = {DEMAND: season(start) if demand is None else demand, ENGINES: 1.0, PROMPT: 900.0, OUTPUT: 200.0}
    epoch = CHANGED if late else CHANGED - 60 * DAY
    return HourFacts(start, epoch, {"max_num_seqs": ran}, figures | {"itl_mean": itl} | more)


def lived(
    after: float,
    itl: Callable[[float], float],
    *,
    before_days: float = 7.0,
    demand: Callable[[float], float] = season,
) -> list[HourFacts]:
    """All hours from some days before the change until so many hours after it."""
    starts = np.arange(-before_days * 24, after) * HOUR + CHANGED
    return [hour(float(start), itl(float(start)), demand=demand(float(start))) for start in starts]


def gap(start: float) -> float:
    """The gap between tokens as it goes with the load: 16 ms by night on a weekday, 28 ms by day; 20 ms on average."""
    return 0.010 + 0.006 * season(start)


def verdict(
    hours: list[HourFacts], *predictions: Prediction, knob: str = "max_num_seqs", applied: float = CHANGED
) -> AdviceRecord:
    """What is said of the change after the last of the hours."""
    now = hours[-1].start + HOUR
    record = AdviceRecord(
        deployment="chat",
        advice=raise_cap(prediction=predictions or (NO_WORSE,), knob=knob),
        state="applied",
        since=applied,
        first_seen=applied - DAY,
        last_seen=applied,
        applied_at=applied,
        baseline={"itl_mean": 0.02},
    )
    facts = FactSheet({"observed_seconds": measured(now - applied, source="gauges")})
    return judged(record, facts, hours, now, Terms())


def also(hour: HourFacts, **figures: float) -> HourFacts:
    """The hour with further, or other, figures."""
    return replace(hour, figures={**hour.figures, **figures})


def worse(hours: list[HourFacts], by: float) -> list[HourFacts]:
    """The same, with the gap of the hours after the change so many times as long."""
    return [h if h.start < CHANGED else also(h, itl_mean=by * h.figures["itl_mean"]) for h in hours]
