"""What goes to one channel: a message, answers under it, pictures; and how much of each Slack takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from advisor.domain.pictures import Pictures

Block = Mapping[str, object]

MOST_BLOCKS = 50
MOST_SECTION_CHARACTERS = 3_000
MOST_MESSAGE_CHARACTERS = 9_000
"""Slack documents no sum over all blocks, but answers `msg_blocks_too_long` somewhere between 9,600 and 11,300
characters (slackapi/bolt-js issue 2867)."""
EVENT_TYPE = "serving_advisor_message"


@dataclass(frozen=True, slots=True)
class Picture:
    """The charts of a deployment, to be drawn when they are sent. `alt` is read to those who cannot see them."""

    name: str
    pictures: Pictures
    alt: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `key` identifies it for ever; `announces` are the ids of advice that it tells for the first time."""

    key: str
    text: str
    blocks: tuple[Block, ...]
    picture: Picture | None = None
    announces: tuple[str, ...] = ()

    def payload(self) -> dict[str, object]:
        """What is sent, but for channel and thread. The metadata lets a later run find the message again."""
        metadata = {"event_type": EVENT_TYPE, "event_payload": {"key": self.key}}
        shown = {"text": self.text, "blocks": list(self.blocks), "metadata": metadata}
        return {**shown, "unfurl_links": False, "unfurl_media": False}


@dataclass(frozen=True, slots=True)
class Post:
    """What goes to one channel in one period: a message, and the thread under it."""

    channel: str
    parent: Message
    thread: tuple[Message, ...] = field(default=())


def advice_key(channel: str, advice: str) -> str:
    """The delivery key that says that a channel was told of a piece of advice."""
    return f"{channel}/advice/{advice}"


def week_key(channel: str, period: str) -> str:
    """The delivery key of the weekly report of a channel: `C0123ABCD/2026-W48`."""
    return f"{channel}/{period}"


def section(text: str) -> Block:
    """A paragraph. `verbatim` keeps Slack from making links and mentions of its own."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def header(text: str) -> Block:
    """A title, without markup."""
    return {"type": "header", "text": {"type": "plain_text", "text": text[:150], "emoji": False}}


def small(text: str) -> Block:
    """A paragraph in small print."""
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text, "verbatim": True}]}


def fitting(paragraphs: Iterable[str], budget: int) -> list[str]:
    """The paragraphs from the first on that fit into `budget` characters together, none longer than a section."""
    kept = []
    for text in paragraphs:
        budget -= len(text)
        if budget < 0 or len(text) > MOST_SECTION_CHARACTERS:
            break
        kept.append(text)
    return kept
