"""The report, from what the daemon remembers: the same posts for the schedule, and for `advisor report`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Protocol

from advisor.domain.errors import SourceError
from advisor.domain.life import AdviceRecord
from advisor.domain.ports import DeliveryLog
from advisor.domain.report import Report
from advisor.outcomes import track_records, with_states
from advisor.outlets.restore import restore
from advisor.outlets.slack.options import SlackOptions
from advisor.outlets.slack.post import Post, advice_key, week_key
from advisor.outlets.slack.standing import DAY, Edition, period_of
from advisor.outlets.slack.weekly import critical, weekly

if TYPE_CHECKING:
    from advisor.outlets.slack.poster import Outcome

_MOST_WEEKS_BACK = 53


class Watching(Protocol):
    """What the store must remember to tell who is watched too briefly yet."""

    def first_seen(self, since: float) -> Mapping[str, float]:
        """When each deployment was first evaluated, of the evaluations since a moment."""


class Memory(Watching, Protocol):
    """What the store must remember for a report."""

    @property
    def delivery_log(self) -> DeliveryLog:
        """What was sent."""

    def latest_report(self) -> tuple[float, str] | None:
        """When the latest evaluation was, and its document."""

    def records(self) -> tuple[AdviceRecord, ...]:
        """All advice."""


def latest(memory: Memory) -> Report:
    """The latest report, with the states of its advice put in. Raises SourceError when there is none yet."""
    kept = memory.latest_report()
    if kept is None:
        raise SourceError("the store holds no evaluation yet: advisor run makes one within the hour")
    return with_states(restore(kept[1]), memory.records())


def weekly_posts(memory: Memory, options: SlackOptions, now: float, zone: tzinfo = UTC) -> tuple[Post, ...]:
    """What the weekly report says now, a post for each channel."""
    report, records = latest(memory), memory.records()
    edition = _edition(memory, options, now, zone)
    return weekly(report, records, track_records(records), edition, options)


def critical_posts(memory: Memory, options: SlackOptions, now: float, zone: tzinfo = UTC) -> tuple[Post, ...]:
    """Critical advice that no channel was told of; nothing unless the options want it at once."""
    if not options.critical_at_once:
        return ()
    report = latest(memory)
    return critical(report, memory.records(), _edition(memory, options, now, zone), options)


def send(
    posts: Iterable[Post],
    log: DeliveryLog,
    options: SlackOptions,
    now: float,
    sleep: Callable[[float], object] = time.sleep,
) -> tuple[Outcome, ...]:
    """Send every post exactly once; how each went. `sleep` as SlackPoster takes it."""
    from advisor.outlets.slack.poster import SlackPoster  # noqa: PLC0415 - slack_sdk is slow to import

    poster = SlackPoster(options, sleep=sleep)
    return tuple(poster.post(post, log, now) for post in posts)


def watched_since(memory: Watching, collecting_days: float, now: float) -> Mapping[str, float]:
    """Since when each deployment is watched, as far back as `collecting_days` ask."""
    return memory.first_seen(now - (collecting_days + 1) * DAY) if collecting_days else {}


def _edition(memory: Memory, options: SlackOptions, now: float, zone: tzinfo) -> Edition:
    def told_at(key: str) -> float | None:
        known = memory.delivery_log.state(key)
        return known.changed_at if known is not None and known.state == "sent" else None

    def reported(channel: str) -> float | None:
        # What people saw counts, not how the run ended: a picture that failed does not unsay the message above it.
        before = (period_of(now, zone, weeks_before=n) for n in range(1, _MOST_WEEKS_BACK + 1))
        return next((at for period in before if (at := told_at(week_key(channel, period))) is not None), None)

    def announced(channel: str, advice: str) -> bool:
        return told_at(advice_key(channel, advice)) is not None

    seen = watched_since(memory, options.collecting_days, now)
    return Edition(now, period_of(now, zone), zone, seen, announced, reported)
