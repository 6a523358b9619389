"""A post as people read it, in plain text: for `advisor report --format text`, and to judge it before it is sent."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .post import Block, Message, Post

_MENTION = re.compile(r"<@(\w+)>|<!subteam\^(\w+)>")
_MARKUP = re.compile(r"\*([^*\n]+)\*|`([^`\n]+)`")


def preview(posts: Iterable[Post]) -> str:
    """Channels one after the other; what stands in a thread is set in. Ends without a newline."""
    return "\n\n".join("\n".join(_post(post)) for post in posts)


def shown(text: str) -> str:
    """What Slack shows of mrkdwn, without fonts: `*Why:* a &lt; b` reads `Why: a < b`."""
    called = _MENTION.sub(lambda m: f"@{m[1] or m[2]}", text)
    return html.unescape(_MARKUP.sub(lambda m: m[1] or m[2], called))


def _post(post: Post) -> Iterator[str]:
    yield f"#{post.channel}"
    yield from _message(post.parent)
    for answer in post.thread:
        yield ""
        yield from (f"  | {line}".rstrip() for line in _message(answer))


def _message(message: Message) -> Iterator[str]:
    for block in message.blocks:
        yield from _text(block).split("\n")
    if message.picture is not None:
        yield f"[picture: {message.picture.alt}]"


def _text(block: Block) -> str:
    parts: Any = block.get("elements") or [block.get("text")]
    return "\n".join(_part(part) for part in parts)


def _part(part: Mapping[str, str]) -> str:
    return shown(part["text"]) if part["type"] == "mrkdwn" else part["text"]
