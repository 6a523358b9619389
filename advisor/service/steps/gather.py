"""Every few minutes: follow the request logs, so that rotation never takes what was not read."""

from __future__ import annotations

from contextlib import closing

from advisor.owners import Owners
from advisor.service.account import Account
from advisor.service.remembered_logs import remember
from advisor.settings import Settings
from advisor.store import Store


def run(settings: Settings, now: float, owners: Owners | None) -> Account:
    """Before the first evaluation nobody knows whose the requests are, and they wait. Raises StoreError."""
    account = Account(owners=owners)
    if settings.logs is None or owners is None:
        return account
    with account.part("request logs") as told, closing(Store.open(settings.store.path)) as store:
        state, _ = remember(store, settings.logs, owners, now)
        told.append(f"{state.name}: {state.detail}")
        if state.status == "failed":
            account.problems.append(f"{state.name}: {state.detail}")
    return account
