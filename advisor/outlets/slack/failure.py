"""How sending can fail, told apart by the one question that matters: can the message be there?

AdvisorError
├── RefusedError     it is not there; Slack or the way to it said so
├── UnansweredError  it may be there: the connection broke, or the server failed, after the request went out
└── HiddenError      whether it is there cannot be looked up, now or (`permanent`) with these rights
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from http.client import HTTPException
from urllib.error import URLError

from slack_sdk.errors import SlackApiError

from advisor.domain.errors import AdvisorError
from advisor.outlets.plain import plain

_TRANSIENT = frozenset({"ratelimited", "rate_limited", "team_added_to_org", "accesslimited", "message_limit_exceeded"})
_OPEN = frozenset({"fatal_error", "internal_error", "request_timeout", "service_unavailable"})
"""Of these Slack's reference says that part of the call may have been carried out."""
_REMEDIES = {
    "invalid_auth": "the token is not valid: put a new one into token_file",
    "not_authed": "the token is not valid: put a new one into token_file",
    "token_revoked": "the token was revoked: put a new one into token_file",
    "token_expired": "the token has expired: put a new one into token_file",
    "account_inactive": "the app was removed from the workspace: install it again",
    "channel_not_found": "no such channel, or it is private: invite the app, or mend channel",
    "not_in_channel": "the app is not in the channel: invite it",
    "is_archived": "the channel is archived: mend channel",
    "missing_scope": "the app lacks a right: add the scope and install it again",
}


class RefusedError(AdvisorError):
    """Not sent. `permanent`: a person must mend something. `retry_after_seconds`: Slack asks to wait so long."""

    def __init__(self, why: str, *, permanent: bool, retry_after_seconds: float | None = None) -> None:
        super().__init__(why)
        self.permanent = permanent
        self.retry_after_seconds = retry_after_seconds


class UnansweredError(AdvisorError):
    """Sent or not: nobody knows yet."""


class HiddenError(AdvisorError):
    """Looking up whether a message is there failed; `permanent` when it is not allowed."""

    def __init__(self, why: str, *, permanent: bool) -> None:
        super().__init__(why)
        self.permanent = permanent


NETWORK = (OSError, HTTPException)
"""What a connection can end in: URLError, time-outs and resets are OSErrors."""


def of_network(error: OSError | HTTPException) -> RefusedError | UnansweredError:
    """Refused when no connection came about, so that no request can have gone out; else unanswered."""
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, ConnectionRefusedError | socket.gaierror | ssl.SSLCertVerificationError):
        return RefusedError(f"slack cannot be reached ({type(cause).__name__})", permanent=False)
    return UnansweredError(f"no answer from slack ({type(cause).__name__})")


def of_api(error: SlackApiError) -> RefusedError | UnansweredError:
    """From Slack's answer: its error code, never the request, which carries the token."""
    response = error.response
    status = int(response.status_code)
    if status == 429:
        return rate_limited(response.headers)
    data = response.data if isinstance(response.data, dict) else {}
    code = plain(str(data.get("error", "")), limit=60)
    if status >= 500 or code in _OPEN:
        return UnansweredError(f"slack answered {status if status >= 500 else code}")
    return RefusedError(f"slack says {code}{_remedy(code, data)}", permanent=code not in _TRANSIENT)


def of_webhook(status: int, body: str) -> RefusedError | UnansweredError:
    """From the answer to a webhook: 404 and 410 are a dead hook, 403 a forbidden one."""
    if status >= 500:
        return UnansweredError(f"slack's webhook answered {status}")
    remedy = ": put the URL of a new webhook into webhook_url_file" if status in {403, 404, 410} else ""
    return RefusedError(f"slack's webhook answered {status} {plain(body, limit=60)}{remedy}", permanent=True)


def rate_limited(headers: Mapping[str, str]) -> RefusedError:
    """429, with the wait that it asks for; a header that is no number counts as half a minute."""
    asked = {name.lower(): value for name, value in headers.items()}.get("retry-after", "")
    seconds = float(asked) if asked.isascii() and asked.isdigit() else 30.0
    return RefusedError("slack asks to post more slowly (429)", permanent=False, retry_after_seconds=seconds)


def _remedy(code: str, data: Mapping[str, object]) -> str:
    needed = plain(str(data.get("needed", "")), limit=80)
    pointers = data.get("response_metadata")
    messages = pointers.get("messages") if isinstance(pointers, dict) else None
    told = plain(str(messages[0]), limit=160) if isinstance(messages, list) and messages else ""
    parts = [_REMEDIES.get(code, ""), f"scope {needed}" if needed else "", told if code not in _REMEDIES else ""]
    return "".join(f": {part}" for part in parts if part)
