"""`advisor report`: the weekly report now, to look at or to post."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.cli import NOT_JUDGED

if TYPE_CHECKING:
    from advisor.outlets.slack.options import SlackOptions
    from advisor.outlets.slack.post import Message, Post
    from advisor.settings import Settings
    from advisor.store import Store

FORMATS = ("slack", "html", "markdown", "text")
FILE = click.Path(path_type=Path)


@click.command(name="report")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="What to print.")
@click.option("--post", is_flag=True, help="Post to Slack now, unless this week's report is there already.")
@click.option("--store", "store_path", type=FILE, metavar="PATH", help="The daemon's memory.")
@click.option("-c", "--config", "config_file", type=FILE, metavar="FILE", help="Configuration file of the daemon.")
def command(form: str, post: bool, store_path: Path | None, config_file: Path | None) -> int:
    """Print this week's report from the daemon's memory; slack is the exact payload. Only --post sends anything."""
    from advisor.settings import read_settings
    from advisor.store import Store

    settings = read_settings(config_file)
    if post:
        _check_the_way(settings.slack)
    store = Store.open(store_path or settings.store.path, readonly=not post)
    try:
        if post and settings.slack is not None:
            return _post(settings, settings.slack, store)
        click.echo(_rendered(form, settings, store))
    finally:
        store.close()
    return 0


def _rendered(form: str, settings: Settings, store: Store) -> str:
    from advisor import reporting

    if form == "markdown":
        from advisor.outlets import FORMATS as RENDERERS

        return RENDERERS["markdown"](reporting.latest(store))
    if form == "html":
        from advisor.web.standalone import render_html

        return render_html(reporting.latest(store))
    posts = _posts(settings, store, settings.slack or _example())
    if form == "text":
        from advisor.outlets.slack.preview import preview

        return preview(posts)
    import json

    return json.dumps([call for p in posts for call in _calls(p)], indent=2)


def _posts(settings: Settings, store: Store, options: SlackOptions) -> tuple[Post, ...]:
    import time
    from zoneinfo import ZoneInfo

    from advisor import reporting

    return reporting.weekly_posts(store, options, time.time(), ZoneInfo(settings.schedule.timezone))


def _example() -> SlackOptions:
    """Stands in where Slack is not configured, so that the report can be looked at before."""
    from advisor.outlets.slack.options import SlackOptions

    return SlackOptions(channel="C0EXAMPLE", token_file=Path("token"))


def _calls(post: Post) -> list[dict[str, Any]]:
    """The calls that posting makes, in their order, with the arguments that are sent."""
    from advisor.outlets.slack.options import WEBHOOK

    if post.channel == WEBHOOK:
        return [{"method": "incoming webhook", "arguments": post.parent.payload()}]
    under = {"thread_ts": "(the ts of the first message)"}
    calls = [_call(post.channel, post.parent, {}), *(_call(post.channel, answer, under) for answer in post.thread)]
    pictures = [
        {"method": "files_upload_v2", "arguments": {"channel": post.channel, **under, "title": message.picture.alt}}
        for message in (post.parent, *post.thread)
        if message.picture is not None
    ]
    return [*calls, *pictures]


def _call(channel: str, message: Message, under: dict[str, str]) -> dict[str, Any]:
    return {"method": "chat.postMessage", "arguments": {"channel": channel, **under, **message.payload()}}


def _check_the_way(options: SlackOptions | None) -> None:
    """Before anything is noted in the store: the daemon can often read a secret that its colleague here cannot."""
    from advisor.domain.errors import SourceError, UsageError
    from advisor.outlets.slack.failure import RefusedError
    from advisor.outlets.slack.transport import transport

    if options is None:
        raise UsageError("nowhere to post to: configure slack in the daemon's configuration, and name it with -c")
    try:
        transport(options)
    except RefusedError as error:
        raise SourceError(f"{error}; nothing was posted: do it as the service's user, or wait for the daemon") from None


def _post(settings: Settings, options: SlackOptions, store: Store) -> int:
    import time

    from advisor import reporting
    from advisor.outlets.plain import plain

    posts = _posts(settings, store, options)
    outcomes = reporting.send(posts, store.delivery_log, options, time.time())
    for outcome in outcomes:
        click.echo(plain(str(outcome)))
    return 0 if all(outcome.complete for outcome in outcomes) else NOT_JUDGED
