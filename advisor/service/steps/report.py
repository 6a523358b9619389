"""Weekly: post the report, once a week however often it is tried."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from zoneinfo import ZoneInfo

from advisor import reporting
from advisor.outlets.slack.options import SlackOptions
from advisor.outlets.slack.post import Post
from advisor.owners import Owners
from advisor.service.account import Account
from advisor.settings import Settings
from advisor.store import Store


def run(settings: Settings, now: float, owners: Owners | None) -> Account:
    """What did not arrive is a problem of the account. Raises StoreError, and SourceError before an evaluation."""
    account = Account(owners=owners)
    if settings.slack is not None:
        with closing(Store.open(settings.store.path)) as store:
            zone = ZoneInfo(settings.schedule.timezone)
            send(account, store, settings.slack, now, reporting.weekly_posts(store, settings.slack, now, zone))
    return account


def send(account: Account, store: Store, options: SlackOptions, now: float, posts: Iterable[Post]) -> None:
    """Send posts, and note in the account how it went."""
    with account.part("slack") as told:
        for outcome in reporting.send(posts, store.delivery_log, options, now):
            told.append(str(outcome))
            account.problems += [] if outcome.complete else [f"slack: {outcome}"]
