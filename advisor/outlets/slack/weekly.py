"""The report of a week, and critical advice at once: what goes to which channel. Nothing is sent here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from advisor.domain.life import AdviceRecord, TrackRecord
from advisor.domain.report import Report
from advisor.outlets.plain import plain

from . import changes, deployment
from .options import SlackOptions
from .post import Message, Post, advice_key, week_key
from .standing import Edition, Standing, standings
from .summary import summary


def weekly(
    report: Report,
    records: Sequence[AdviceRecord],
    track: Iterable[TrackRecord],
    edition: Edition,
    options: SlackOptions,
) -> tuple[Post, ...]:
    """One post a channel; a channel that no deployment goes to hears nothing.

    `report` is the latest, with the states of its advice put in. Advice that a channel was told of stays out of the
    thread; what does not fit into `most_threads` messages is told next time.
    """
    by_channel: dict[str, list[Standing]] = {}
    for one in standings(report, records, edition, options):
        by_channel.setdefault(options.channel_of(one.name), []).append(one)
    scores = list(track)
    posts = []
    for channel, stands in (by_channel or {options.channel_of(""): []}).items():
        key = week_key(channel, edition.period)
        own = [r for r in records if options.channel_of(r.deployment) == channel]
        parent = summary(
            stands,
            changes.told(own, edition.reported(channel)),
            scores,
            report.sources,
            edition,
            key=key,
            threads=options.threads,
        )
        fresh = [s for s in stands if s.fresh][: options.most_threads if options.threads else 0]
        posts.append(Post(channel, parent, tuple(_answer(s, key, edition, options) for s in fresh)))
    return tuple(posts)


def critical(
    report: Report, records: Sequence[AdviceRecord], edition: Edition, options: SlackOptions
) -> tuple[Post, ...]:
    """One post for every deployment with critical advice that its channel was not told of; none in a freeze."""
    posts = []
    for one in standings(report, records, edition, options):
        urgent = [a for a in one.fresh if a.severity == "critical"]
        if urgent and options.critical_at_once:
            channel = options.channel_of(one.name)
            key = f"{advice_key(channel, urgent[0].id)}/critical"
            owner = options.owner_of(one.name)
            told = deployment.message(one, key=key, owner=owner, now=edition.now, urgent=True)
            posts.append(Post(channel, told))
    return tuple(posts)


def _answer(standing: Standing, key: str, edition: Edition, options: SlackOptions) -> Message:
    owner = options.owner_of(standing.name)
    return deployment.message(standing, key=f"{key}/{_written(standing.name)}", owner=owner, now=edition.now)


def _written(name: str) -> str:
    """A name as part of a key: as it is, or shortened to plain characters and told apart by a fingerprint."""
    shown = plain(name, limit=60)
    if shown == name:
        return name
    return f"{shown}#{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
