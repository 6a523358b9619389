"""What people decide about a piece of advice: not now, not at all, or yes after all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from advisor.domain.errors import UsageError
from advisor.domain.life import LIVE, AdviceRecord, LifeState

LONGEST_REASON = 500
_DECIDABLE: tuple[LifeState, ...] = ("open", "queued", "snoozed", "rejected")
_MUTED: tuple[LifeState, ...] = ("snoozed", "rejected")


def by_id(records: Iterable[AdviceRecord], text: str) -> AdviceRecord:
    """The record with this id, or with the only id that begins so; live records before ended ones.

    Raises UsageError when there is none, or more than one.
    """
    listed = list(records)
    exact = [record for record in listed if record.id == text]
    begun = [record for record in listed if text and record.id.startswith(text)]
    found = exact or [record for record in begun if record.state in LIVE] or begun
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"no advice has an id that begins with {text[:40]!r}: advisor history lists them")
    raise UsageError(f"{text[:40]!r} begins several ids: {', '.join(record.id for record in found[:5])}")


def snooze(record: AdviceRecord, *, until: float, reason: str, now: float) -> AdviceRecord:
    """Silent until a moment (UNIX seconds). Raises UsageError where it has passed, or the advice is past deciding."""
    _check(record, "snoozed", _DECIDABLE)
    if until <= now:
        raise UsageError(f"{_day(until)} is not in the future: advice is snoozed until a later date")
    return replace(record, state="snoozed", since=now, until=until, reason=_stated(reason))


def reject(record: AdviceRecord, *, reason: str, now: float) -> AdviceRecord:
    """Silent while the advice is the same. Raises UsageError where the advice is past deciding."""
    _check(record, "rejected", _DECIDABLE)
    return replace(record, state="rejected", since=now, until=None, reason=_stated(reason))


def reopen(record: AdviceRecord, *, now: float) -> AdviceRecord:
    """Snoozed or rejected advice is open again. Raises UsageError for any other."""
    _check(record, "reopened", _MUTED)
    return replace(record, state="open", since=now, until=None, reason=None)


def _check(record: AdviceRecord, deed: str, allowed: tuple[LifeState, ...]) -> None:
    if record.state not in allowed:
        said = f"advice {record.id} is {record.state} since {_day(record.since)}"
        raise UsageError(f"{said}: only {', '.join(allowed[:-1])} or {allowed[-1]} advice can be {deed}")


def _stated(reason: str) -> str:
    text = " ".join(reason.split())
    if not text:
        raise UsageError("a reason is needed: whoever reads the history will want to know")
    if len(text) > LONGEST_REASON:
        raise UsageError(f"the reason has {len(text):,} characters, at most {LONGEST_REASON} are kept")
    return text


def _day(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%d %b %Y")
