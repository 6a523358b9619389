"""The report, from what the daemon remembers: the same posts for the schedule, and for `advisor report`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Protocol

from advisor.domain.errors import SourceError
from advisor.domain.life import AdviceRecord
from advisor.domain.ports import DeliveryLog
from advisor.domain.report import Report
from advisor.outcomes import track_records, with_states
from advisor.outlets.restore import restore
from advisor.outlets.slack.options import SlackOptions
from advisor.outlets.slack.post import Post, advice_key
from advisor.outlets.slack.standing import DAY, Edition, period_of
from advisor.outlets.slack.weekly import critical, weekly

if TYPE_CHECKING:
    from advisor.outlets.slack.poster import Outcome

_WATCHED = ("replicas", "observed_seconds", "running_p95", "total_tokens_p50", "max_num_seqs")
"""Facts of which at least one is known as soon as a deployment is seen."""


class Memory(Protocol):
    """What the store must remember for a report."""

    @property
    def delivery_log(self) -> DeliveryLog:
        """What was sent."""

    def latest_report(self) -> tuple[float, str] | None:
        """When the latest evaluation was, and its document."""

    def records(self) -> tuple[AdviceRecord, ...]:
        """All advice."""

    def last_success(self, kind: str) -> float | None:
        """When a run of this kind last succeeded."""

    def fact_history(
        self, deployment: str, names: Sequence[str], since: float
    ) -> Mapping[str, tuple[tuple[float, float], ...]]:
        """Values over time."""


def latest(memory: Memory) -> Report:
    """The latest report, with the states of its advice put in. Raises SourceError when there is none yet."""
    kept = memory.latest_report()
    if kept is None:
        raise SourceError("the store holds no evaluation yet: advisor run makes one within the hour")
    return with_states(restore(kept[1]), memory.records())


def weekly_posts(memory: Memory, options: SlackOptions, now: float, zone: tzinfo = UTC) -> tuple[Post, ...]:
    """What the weekly report says now, a post for each channel."""
    report, records = latest(memory), memory.records()
    edition = _edition(memory, report, options, now, zone)
    return weekly(report, records, track_records(records), edition, options)


def critical_posts(memory: Memory, options: SlackOptions, now: float, zone: tzinfo = UTC) -> tuple[Post, ...]:
    """Critical advice that no channel was told of; nothing unless the options want it at once."""
    if not options.critical_at_once:
        return ()
    report = latest(memory)
    return critical(report, memory.records(), _edition(memory, report, options, now, zone), options)


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


def _edition(memory: Memory, report: Report, options: SlackOptions, now: float, zone: tzinfo) -> Edition:
    since = now - (options.collecting_days + 1) * DAY
    names = [d.evidence.name for d in report.deployments] if options.collecting_days else []
    seen = {name: first for name in names if (first := _first_seen(memory, name, since)) is not None}

    def announced(channel: str, advice: str) -> bool:
        known = memory.delivery_log.state(advice_key(channel, advice))
        return known is not None and known.state == "sent"

    return Edition(now, memory.last_success("report"), period_of(now, zone), zone, seen, announced)


def _first_seen(memory: Memory, name: str, since: float) -> float | None:
    history = memory.fact_history(name, _WATCHED, since)
    return min((values[0][0] for values in history.values() if values), default=None)
