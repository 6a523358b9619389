"""Daily: roll up what is old, and forget what is older than the retention."""

from __future__ import annotations

from contextlib import closing

from advisor.owners import Owners
from advisor.service.account import Account
from advisor.settings import Settings
from advisor.store import Store


def run(settings: Settings, now: float, owners: Owners | None) -> Account:
    """Raises StoreError."""
    account = Account(owners=owners)
    with account.part("prune"), closing(Store.open(settings.store.path)) as store:
        store.prune(now, settings.store.retention_days)
    return account
