"""What people decide about advice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.domain.errors import UsageError
from advisor.domain.life import AdviceRecord, LifeState
from advisor.outcomes import advance, by_id, reject, reopen, snooze
from tests.unit.outcomes.lives import DAY, NOW, evaluation, raise_cap


def record(identity: str = "abcdef0123", state: LifeState = "open") -> AdviceRecord:
    (fresh,) = advance((), [evaluation(raise_cap())], NOW)
    return replace(fresh, advice=replace(fresh.advice, id=identity), state=state)


def test_a_snooze_has_an_end_and_a_reason() -> None:
    snoozed = snooze(record(), until=NOW + DAY, reason=" release \n freeze ", now=NOW + 1)
    assert (snoozed.state, snoozed.until, snoozed.reason, snoozed.since) == (
        "snoozed",
        NOW + DAY,
        "release freeze",
        NOW + 1,
    )
    assert reopen(snoozed, now=NOW + 2) == replace(record(), since=NOW + 2)


def test_what_was_snoozed_can_be_rejected_and_reopened() -> None:
    rejected = reject(snooze(record(), until=NOW + DAY, reason="later", now=NOW), reason="never", now=NOW)
    assert (rejected.state, rejected.until, rejected.reason) == ("rejected", None, "never")
    assert reopen(rejected, now=NOW).state == "open"


@pytest.mark.parametrize("state", ["applied", "verified", "regressed", "superseded"])
def test_what_is_past_deciding_is_refused(state: LifeState) -> None:
    past = record(state=state)
    with pytest.raises(UsageError, match=f"is {state} since 29 Nov 2026: only open, queued, snoozed or rejected"):
        snooze(past, until=NOW + DAY, reason="later", now=NOW)
    with pytest.raises(UsageError, match="can be rejected"):
        reject(past, reason="no", now=NOW)
    with pytest.raises(UsageError, match="only snoozed or rejected advice can be reopened"):
        reopen(past, now=NOW)


def test_a_snooze_into_the_past_and_an_empty_reason_are_refused() -> None:
    with pytest.raises(UsageError, match="29 Nov 2026 is not in the future"):
        snooze(record(), until=NOW, reason="later", now=NOW)
    with pytest.raises(UsageError, match="a reason is needed"):
        reject(record(), reason=" \n", now=NOW)
    with pytest.raises(UsageError, match="501 characters"):
        reject(record(), reason="x" * 501, now=NOW)


def test_an_id_may_be_shortened_while_it_is_unique() -> None:
    old, new = record("abcdef0123", "superseded"), record("abcdef0123-2")
    other = record("abc9990000")
    records = [old, new, other]
    assert by_id(records, "abcd") is new  # live before ended
    assert by_id(records, "abcdef0123") is old  # exact before longer
    assert by_id(records, "abc9") is other
    with pytest.raises(UsageError, match="'abc' begins several ids: abcdef0123-2, abc9990000"):
        by_id(records, "abc")
    with pytest.raises(UsageError, match="no advice has an id that begins with 'x'"):
        by_id(records, "x")
    with pytest.raises(UsageError, match="no advice"):
        by_id(records, "")
