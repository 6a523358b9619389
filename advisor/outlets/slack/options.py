"""The settings of the Slack outlet: where to post, to whom, and when to hold back."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

WEBHOOK = "webhook"
"""Stands for the channel where an incoming webhook is used, which knows its channel itself."""

COLLECTING_DAYS = 7.0
"""The rhythm of most traffic is a week."""

ChannelId = Annotated[str, Field(pattern=r"^[CGD][A-Z0-9]{5,30}$")]
OwnerId = Annotated[str, Field(pattern=r"^[UWS][A-Z0-9]{5,30}$")]


class Route(BaseModel):
    """Where advice on some deployments goes, and whom it calls."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    match: str = Field(description="name of a deployment, or a pattern such as chat-*; the first route that fits wins")
    channel: ChannelId | None = Field(None, description="ID of its channel, such as C0123ABCD; else the general one")
    owner: OwnerId | None = Field(
        None, description="whom its messages mention: a user's ID (U...) or a user group's (S...)"
    )


class Freeze(BaseModel):
    """Days on which nothing may be changed: advice is recorded and held."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    first_day: date = Field(description="first day of the freeze, such as 2026-12-20")
    last_day: date = Field(description="last day of the freeze")
    match: str = Field("*", description="name or pattern of the deployments that it holds")
    reason: str = Field("change freeze", max_length=100, description="what the report says of it")

    @model_validator(mode="after")
    def _in_order(self) -> Freeze:
        if self.last_day < self.first_day:
            raise ValueError("last_day lies before first_day")
        return self


class SlackOptions(BaseModel):
    """Slack, by a bot token (threads, pictures, no duplicates) or by an incoming webhook (one message a week)."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    channel: ChannelId | None = Field(
        None, description="ID of the channel (its details show it, such as C0123ABCD), not its name; needs token_file"
    )
    token_file: Path | None = Field(
        None,
        description="file with the bot token (xoxb-...), read anew for every report; the app needs the scopes "
        "chat:write, files:write, and channels:history (groups:history in a private channel) to never post twice",
    )
    webhook_url_file: Path | None = Field(None, description="file with the URL of an incoming webhook, not a bot")
    routes: tuple[Route, ...] = Field((), description="channels and owners of some deployments")
    freezes: tuple[Freeze, ...] = Field((), description="days on which advice is recorded and held")
    critical_at_once: bool = Field(default=False, description="post critical advice at once, and only once")
    collecting_days: float = Field(
        COLLECTING_DAYS,
        ge=0,
        le=90,
        description="for so long a new deployment reads `collecting until` instead of early numbers",
    )
    most_threads: int = Field(20, ge=0, le=100, description="most messages in the thread of one report")
    api_url: str = Field("https://slack.com/api/", description="Slack's Web API; another one for GovSlack or a proxy")
    timeout_seconds: float = Field(30.0, gt=0, le=120, description="how long Slack may take for one answer")
    settle_seconds: float = Field(
        60.0, ge=0, le=600, description="after a failure that leaves it open, how long a message may still turn up"
    )

    @field_validator("api_url")
    @classmethod
    def _is_safe(cls, url: str) -> str:
        parts = urlsplit(url)
        local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
        if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and local)):
            raise ValueError("must be an https address, because the token is sent to it")
        return url

    @model_validator(mode="after")
    def _one_way_in(self) -> SlackOptions:
        if (self.token_file is None) == (self.webhook_url_file is None):
            raise ValueError("give token_file and channel, or webhook_url_file")
        if self.token_file is not None and self.channel is None:
            raise ValueError("token_file needs channel, the ID of the channel to post to")
        if self.webhook_url_file is not None and (self.channel or any(r.channel for r in self.routes)):
            raise ValueError("a webhook knows its channel: take away channel, or use token_file")
        return self

    @property
    def threads(self) -> bool:
        """Whether answers and pictures can be put under a message; a webhook cannot."""
        return self.token_file is not None

    def channel_of(self, deployment: str) -> str:
        """The channel that a deployment's advice goes to."""
        route = self._route(deployment)
        return (route.channel if route else None) or self.channel or WEBHOOK

    def owner_of(self, deployment: str) -> str | None:
        """Whom a deployment's messages mention."""
        route = self._route(deployment)
        return route.owner if route else None

    def freeze_of(self, deployment: str, now: float, zone: tzinfo = UTC) -> Freeze | None:
        """The freeze that holds a deployment at `now` (UNIX seconds), days being those of `zone`."""
        today = datetime.fromtimestamp(now, zone).date()
        held = (f for f in self.freezes if f.first_day <= today <= f.last_day and fnmatchcase(deployment, f.match))
        return next(held, None)

    def _route(self, deployment: str) -> Route | None:
        return next((route for route in self.routes if fnmatchcase(deployment, route.match)), None)
