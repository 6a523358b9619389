"""The two ways into Slack: a bot, which can thread, share pictures and look back; and a webhook, which only posts.

Sending raises RefusedError and UnansweredError, looking back raises HiddenError.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackRequestError
from slack_sdk.webhook import WebhookClient

from .failure import NETWORK, HiddenError, RefusedError, UnansweredError, of_api, of_network, of_webhook, rate_limited
from .options import SlackOptions
from .post import EVENT_TYPE

_PAGE, _MOST_PAGES = 200, 25
_LONGEST_SECRET_BYTES = 4_096

# The library logs whole requests at DEBUG, and the address of a webhook is a secret.
_SILENT = logging.getLogger("advisor.slack_sdk")
_SILENT.setLevel(logging.CRITICAL + 1)


def transport(options: SlackOptions) -> BotTransport | WebhookTransport:
    """The way in that the options name. Raises RefusedError when its secret cannot be read."""
    if options.token_file is not None:
        return BotTransport(options, _secret(options.token_file, "slack.token_file"))
    assert options.webhook_url_file is not None
    return WebhookTransport(options, _secret(options.webhook_url_file, "slack.webhook_url_file"))


class BotTransport:
    """Slack's Web API with a bot token. Scopes: chat:write, files:write, and channels:history to look back."""

    def __init__(self, options: SlackOptions, token: str) -> None:
        # The library's own retry repeats a post after a dropped connection, which may be a duplicate.
        self._client = WebClient(
            token=token,
            base_url=options.api_url,
            timeout=round(max(1.0, options.timeout_seconds)),
            logger=_SILENT,
            retry_handlers=[],
        )

    def send(self, channel: str, payload: Mapping[str, object], thread: str | None) -> str:
        """Through chat.postMessage; the message's ts."""
        answer = _called(lambda: self._client.chat_postMessage(channel=channel, thread_ts=thread, **dict(payload)))  # type: ignore[arg-type]
        return str(answer.get("ts") or "")

    def share(self, channel: str, image: bytes, file_name: str, alt: str, thread: str) -> str:
        """Through files.getUploadURLExternal, the upload, and files.completeUploadExternal."""

        def upload() -> Any:
            try:
                return self._client.files_upload_v2(
                    file=image, filename=file_name, title=alt, alt_txt=alt, channel=channel, thread_ts=thread
                )
            except SlackRequestError:
                raise RefusedError("slack did not take the picture's bytes", permanent=False) from None

        files = _called(upload).get("files") or [{}]
        return str(files[0].get("id") or "")

    def find(self, channel: str, key: str, thread: str | None, since: float) -> str | None:
        """By metadata, which only the bot itself can have put there: a text can be quoted, a key cannot."""
        for message in self._messages(channel, thread, since):
            metadata = message.get("metadata") or {}
            if metadata.get("event_type") == EVENT_TYPE and (metadata.get("event_payload") or {}).get("key") == key:
                return str(message.get("ts"))
        return None

    def find_file(self, channel: str, file_name: str, thread: str) -> str | None:
        """By name, because the message that shares a file carries no metadata."""
        for message in self._messages(channel, thread, 0.0):
            for file in message.get("files") or ():
                if file.get("name") == file_name:
                    return str(file.get("id"))
        return None

    def _messages(self, channel: str, thread: str | None, since: float) -> Iterator[Mapping[str, Any]]:
        cursor = ""
        for _ in range(_MOST_PAGES):
            page = self._page(channel, thread, since, cursor)
            yield from page.get("messages") or ()
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return
        raise HiddenError(f"there are over {_PAGE * _MOST_PAGES:,} messages since, which are too many", permanent=False)

    def _page(self, channel: str, thread: str | None, since: float, cursor: str) -> Any:
        asked: dict[str, Any] = {"include_all_metadata": True, "limit": _PAGE, "oldest": f"{since:.6f}"}
        asked |= {"cursor": cursor} if cursor else {}
        try:
            if thread is None:
                return _called(lambda: self._client.conversations_history(channel=channel, **asked))
            return _called(lambda: self._client.conversations_replies(channel=channel, ts=thread, **asked))
        except RefusedError as error:
            raise HiddenError(str(error), permanent=error.permanent) from None
        except UnansweredError as error:
            raise HiddenError(str(error), permanent=False) from None


class WebhookTransport:
    """An incoming webhook: one message a call, no answer that names it, nothing to look back with."""

    def __init__(self, options: SlackOptions, url: str) -> None:
        if not url.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
            raise RefusedError("slack.webhook_url_file does not hold an https address", permanent=True)
        timeout = round(max(1.0, options.timeout_seconds))
        self._client = WebhookClient(url, timeout=timeout, logger=_SILENT, retry_handlers=[])

    def send(self, _channel: str, payload: Mapping[str, object], _thread: str | None) -> str:
        """Post to the channel that the webhook knows; its answer `ok` names no message."""
        try:
            answer = self._client.send_dict(dict(payload))
        except NETWORK as error:
            raise of_network(error) from None
        if answer.status_code == 429:
            raise rate_limited(answer.headers)
        if answer.status_code != 200:
            raise of_webhook(answer.status_code, answer.body)
        return ""

    def find(self, _channel: str, _key: str, _thread: str | None, _since: float) -> str | None:
        """It cannot."""
        raise HiddenError("a webhook cannot look back; a bot token can", permanent=True)


def _called(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except SlackApiError as error:
        raise of_api(error) from None
    except NETWORK as error:
        raise of_network(error) from None


def _secret(path: Path, setting: str) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_SECRET_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError):
        raise RefusedError(f"{setting} {path} cannot be read", permanent=True) from None
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise RefusedError(f"{setting} {path} does not hold one line with the secret", permanent=True)
    return text
