"""Colour for a finished text: it adds escape sequences around words and moves nothing."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.text import Text

_STYLES = (
    (r"(?m)^!", "bold red"),
    (r"(?m)^\^", "bold cyan"),
    (r"(?m)^\.", "green"),
    (r"(?m)^[?-](?= )", "yellow"),
    (r"(?m)^(?:  )?[A-Z]{3,}(?: [A-Z]{3,})*(?= |$)", "bold"),
    (r"--[a-z][a-z-]+ \S+(?: -> \S+)?", "cyan"),
    (r"\bunknown\b", "yellow"),
    (r"\bfailed\b", "red"),
)


def painted(text: str) -> str:
    """The text with ANSI colours; without them it is the text again, character by character."""
    styled = Text(text)
    for pattern, style in _STYLES:
        styled.highlight_regex(pattern, style)
    stream = StringIO()
    console = Console(file=stream, force_terminal=True, color_system="standard", no_color=False, legacy_windows=False)
    console.print(styled, soft_wrap=True, end="")
    return stream.getvalue()
