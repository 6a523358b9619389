"""What arrives, told by what engines finished: also when some of them restarted, came or left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.domain.evidence import EngineSeries, EpochCause, as_floats
from advisor.domain.histogram import BucketHours
from advisor.estimates.demand import Arrivals, arrivals_of
from tests.unit.estimates.evidence import NOTHING, engine, windows

HOUR, DAY = 3_600.0, 86_400.0


def busy(second: float) -> float:
    """Requests per second of one engine: 2 by day, from 8 to 20 o'clock, 0.2 by night."""
    return 2.0 if 8 <= second % DAY / HOUR < 20 else 0.2


def served(
    since: float, until: float = 2 * DAY, *, before: float | None = None, cause: EpochCause = "restarted"
) -> EngineSeries:
    """Minutes of the present epoch from `since` on, and hours of lengths from `before` on."""
    minutes = np.arange(since, until, 60.0)
    counters = windows({"finished": [60 * busy(t) for t in minutes]}, start=since)
    hours = as_floats(np.arange(since if before is None else before, until, HOUR))
    counts = np.array([[HOUR * busy(t), 0.0] for t in hours])
    lengths = {} if before is None else {"prompt_tokens": BucketHours(hours, as_floats([1e5]), counts)}
    return replace(engine(counters=counters), epoch_cause=cause, length_hours=lengths)


def arrived(*engines: EngineSeries) -> Arrivals:
    return arrivals_of(replace(NOTHING, engines=engines), None)


def test_one_restart_at_night_does_not_hide_the_day() -> None:
    # Four engines of 2/s by day; one restarted two hours before the end, and tells its past by the hour.
    told = arrived(*[served(0.0, before=0.0)] * 3, served(2 * DAY - 2 * HOUR, before=0.0))
    assert told.start.size == 2 * DAY / 300
    assert np.quantile(told.per_second, 0.99) == pytest.approx(8.0)


def test_what_nobody_tells_of_an_engine_before_its_restart_is_not_taken_for_nothing() -> None:
    told = arrived(*[served(0.0)] * 3, served(2 * DAY - 2 * HOUR))
    assert told.start[0] == 2 * DAY - 2 * HOUR


def test_an_engine_that_came_later_served_nothing_before() -> None:
    told = arrived(*[served(0.0)] * 3, served(DAY + 12 * HOUR, cause="first_seen"))
    assert told.per_second.max() == pytest.approx(8.0)
    assert told.per_second[told.start < DAY].max() == pytest.approx(6.0)


def test_an_engine_that_left_serves_nothing_since() -> None:
    told = arrived(*[served(0.0)] * 3, served(0.0, 12 * HOUR))
    assert told.start.size == 2 * DAY / 300
    assert told.per_second[told.start < 12 * HOUR].max() == pytest.approx(8.0)
    assert told.per_second[told.start > DAY].max() == pytest.approx(6.0)


def test_a_scrape_that_is_late_is_no_engine_that_left() -> None:
    told = arrived(served(0.0), served(0.0, 2 * DAY - 600))
    assert told.start[-1] == 2 * DAY - 900


def test_what_others_asked_before_a_restart_is_no_demand_of_those_that_ask_now() -> None:
    # hours of 1,000 tokens before the restart, of 10,000 since
    now = served(DAY, before=0.0)
    hours = now.length_hours["prompt_tokens"]
    short = np.where((hours.start < DAY)[:, None], hours.counts, 0.0)[:, :1]
    counts = np.concatenate([short, hours.counts[:, :1] - short, np.zeros_like(short)], axis=1)
    grown = replace(now, length_hours={"prompt_tokens": BucketHours(hours.start, as_floats([1e3, 1e4]), counts)})
    assert arrived(grown).start[0] == DAY
    assert arrived(now).start[0] == 0.0
