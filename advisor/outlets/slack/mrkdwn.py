"""Text for Slack: nothing that comes from outside can format, link or call anybody.

Slack knows no escape for its own markers, so those that could take effect are shown as look-alikes. `&`, `<` and `>`
are written as entities, which also takes the effect from `<!channel>`, `<@U123>` and links.
"""

from __future__ import annotations

import re

from advisor.outlets.plain import plain

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LOOK_ALIKES = {"*": "∗", "_": "＿", "~": "∼", "`": "ˋ"}
_SPECIAL = re.compile(r"[&<>*~`]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_NAME, _SENTENCE = 80, 300


def prose(text: str, *, most: int = _SENTENCE) -> str:
    """Text that Slack shows as it is, at most `most` characters of it: `<!channel>` becomes `&lt;!channel&gt;`."""
    return _SPECIAL.sub(lambda m: _ENTITIES.get(m[0]) or _LOOK_ALIKES[m[0]], plain(text, limit=most))


def code(text: str, *, most: int = _NAME) -> str:
    """Text as a code span, in which nothing but its own end is markup, so that names and flags copy as they are."""
    shown = plain(text, limit=most).replace("`", _LOOK_ALIKES["`"])
    return f"`{re.sub('[&<>]', lambda m: _ENTITIES[m[0]], shown) or ' '}`"


def bold(text: str) -> str:
    """Prose in bold."""
    return f"*{prose(text, most=_NAME)}*"


def mention(owner: str) -> str:
    """Calls a user or a user group by the ID that the configuration gives: `<@U123>`, `<!subteam^S123>`."""
    return f"<!subteam^{owner}>" if owner.startswith("S") else f"<@{owner}>"
