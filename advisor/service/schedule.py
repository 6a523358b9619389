"""When the daemon works: the only place that knows APScheduler.

APScheduler counts in wall-clock time and forgets on restart, so what is due is worked out from the last success that
the store remembers, on start and whenever the clock was set.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from advisor.service_options import ScheduleOptions

GATHER, EVALUATE, REPORT, PRUNE = "gather", "evaluate", "report", "prune"
KINDS = (GATHER, EVALUATE, REPORT, PRUNE)
HEARTBEAT_SECONDS = 5.0
_PRUNE_SECONDS = 86_400.0

LastSuccess = Callable[[str], float | None]

# Its warnings repeat, in its own format, what the daemon logs of every step.
logging.getLogger("apscheduler").setLevel(logging.CRITICAL)


class Schedule:
    """Runs `run(kind)` when it is due, one at a time, in a thread of its own."""

    def __init__(self, run: Callable[[str], None]) -> None:
        self._run = run
        self._beat = time.monotonic()
        self._scheduler: Any = BackgroundScheduler(
            timezone=UTC,
            # One worker, so that no two steps ever overlap; the heartbeat must not wait for them.
            executors={"default": ThreadPoolExecutor(1), "heartbeat": ThreadPoolExecutor(1)},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )

    def start(self, options: ScheduleOptions, last_success: LastSuccess, now: float) -> None:
        """Begin; what is overdue since its last success runs at once, and once."""
        self._scheduler.start()
        self.replan(options, last_success, now)

    def replan(self, options: ScheduleOptions, last_success: LastSuccess, now: float) -> None:
        """Plan everything anew: the options changed, or the clock was set."""
        for kind, trigger in _triggers(options).items():
            due = _moment(next_run(kind, options, last_success(kind), now))
            self._scheduler.add_job(self._run, trigger, args=[kind], id=kind, next_run_time=due, replace_existing=True)
        self._scheduler.add_job(
            self._heartbeat,
            IntervalTrigger(seconds=HEARTBEAT_SECONDS, timezone=UTC),
            id="heartbeat",
            executor="heartbeat",
            next_run_time=_moment(now),
            replace_existing=True,
        )

    def next_runs(self) -> Mapping[str, float]:
        """UNIX seconds of the next run of each kind of work."""
        jobs = ((kind, self._scheduler.get_job(kind)) for kind in KINDS)
        return {kind: job.next_run_time.timestamp() for kind, job in jobs if job is not None}

    def seconds_since_heartbeat(self) -> float:
        """How long the scheduler has not come round; a few seconds while it is well."""
        return time.monotonic() - self._beat

    def stop(self) -> None:
        """Begin nothing more. Does not wait for what runs."""
        self._scheduler.shutdown(wait=False)

    def _heartbeat(self) -> None:
        self._beat = time.monotonic()


def next_run(kind: str, options: ScheduleOptions, last_success: float | None, now: float) -> float:
    """When work is due next, in UNIX seconds; `now` when that has passed.

    A last success that lies in the future was noted by a clock that has been set back since: it counts as none. Work
    that never succeeded is due now, except the report, whose first is due at its next regular time.
    """
    if last_success is not None and last_success > now:
        last_success = None
    if kind == REPORT:
        return max(now, next_report(options, now if last_success is None else last_success))
    return now if last_success is None else max(now, last_success + _interval_seconds(kind, options))


def next_report(options: ScheduleOptions, after: float) -> float:
    """The first regular time of the weekly report later than `after`, in UNIX seconds.

    From Sun 2026-11-29 18:00 UTC, `mon 09:00 Europe/Berlin` is 2026-11-30 08:00 UTC.
    """
    fires: datetime = _report_trigger(options).get_next_fire_time(None, _moment(after) + timedelta(seconds=1))
    return fires.timestamp()


def _triggers(options: ScheduleOptions) -> dict[str, Any]:
    triggers: dict[str, Any] = {
        kind: IntervalTrigger(seconds=_interval_seconds(kind, options), timezone=UTC)
        for kind in (GATHER, EVALUATE, PRUNE)
    }
    return triggers | {REPORT: _report_trigger(options)}


def _interval_seconds(kind: str, options: ScheduleOptions) -> float:
    return {GATHER: options.gather, EVALUATE: options.evaluate, PRUNE: _PRUNE_SECONDS}[kind]


def _report_trigger(options: ScheduleOptions) -> Any:
    hour, minute = options.report_hour_minute
    zone = ZoneInfo(options.timezone)
    return CronTrigger(day_of_week=options.report_weekday, hour=hour, minute=minute, timezone=zone)


def _moment(unix_seconds: float) -> datetime:
    return datetime.fromtimestamp(unix_seconds, UTC)
