from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from advisor.outlets.slack.options import WEBHOOK, SlackOptions

BOT = {"channel": "C0123ABCD", "token_file": "token"}
HOOK = {"webhook_url_file": "hook"}
FREEZE = {"first_day": "2026-12-24", "last_day": "2026-12-26", "match": "chat-*", "reason": "holidays"}


def _options(**given: Any) -> SlackOptions:
    return SlackOptions.model_validate(given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "give token_file and channel, or webhook_url_file"),
        (BOT | HOOK, "give token_file and channel, or webhook_url_file"),
        ({"token_file": "token"}, "needs channel"),
        (HOOK | {"routes": [{"match": "*", "channel": "C0OTHERCH"}]}, "a webhook knows its channel"),
        (BOT | {"channel": "#serving"}, "pattern"),
        (BOT | {"routes": [{"match": "*", "owner": "@ann"}]}, "pattern"),
        (BOT | {"api_url": "http://slack.example/api/"}, "https"),
        (BOT | {"freezes": [FREEZE | {"last_day": "2026-12-23"}]}, "before first_day"),
        (BOT | {"chanel": "C0123ABCD"}, "not permitted"),
    ],
)
def test_a_mistake_is_named(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        _options(**given)


def test_the_first_route_that_fits_wins_and_may_leave_the_channel_open() -> None:
    routes = [{"match": "chat-*", "owner": "U0CHATTY1"}, {"match": "*-70b", "channel": "C0LARGEST"}]
    options = _options(**BOT, routes=routes)
    assert (options.channel_of("chat-70b"), options.owner_of("chat-70b")) == ("C0123ABCD", "U0CHATTY1")
    assert (options.channel_of("code-70b"), options.owner_of("code-70b")) == ("C0LARGEST", None)
    assert _options(**HOOK).channel_of("chat-70b") == WEBHOOK


def test_a_freeze_lasts_from_its_first_day_to_the_end_of_its_last_where_people_are() -> None:
    options = _options(**BOT, freezes=[FREEZE])
    berlin = ZoneInfo("Europe/Berlin")
    # Thu 24 Dec 2026 00:00 in Berlin is 23:00 UTC of the 23rd; Sat 26 Dec ends at 23:00 UTC.
    first, end = 1_798_066_800.0, 1_798_326_000.0
    assert options.freeze_of("chat-70b", first, berlin) is not None
    assert options.freeze_of("chat-70b", first - 1, berlin) is None
    assert options.freeze_of("chat-70b", end - 1, berlin) is not None
    assert options.freeze_of("chat-70b", end, berlin) is None
    assert options.freeze_of("code-8b", first, berlin) is None
