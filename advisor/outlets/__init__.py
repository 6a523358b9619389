"""Reports to people and machines. Each format lives in a module of its own, imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from advisor.domain.report import Report


class Renderer(Protocol):
    """Turns a report into text that ends without a newline.

    `width` (columns), `color` and `verbose` shape the table for a terminal; formats for machines disregard them.
    """

    def __call__(self, report: Report, *, width: int = 80, color: bool = False, verbose: bool = False) -> str:
        """The report as text."""


def _in_module(module: str, function: str, *, styled: bool = False) -> Renderer:
    def render(report: Report, *, width: int = 80, color: bool = False, verbose: bool = False) -> str:
        renderer = getattr(import_module(f"{__name__}.{module}"), function)
        style = {"width": width, "color": color, "verbose": verbose} if styled else {}
        text: str = renderer(report, **style)
        return text

    return render


FORMATS: Mapping[str, Renderer] = {
    "table": _in_module("terminal", "render_table", styled=True),
    "json": _in_module("structured", "render_json"),
    "yaml": _in_module("structured", "render_yaml"),
    "markdown": _in_module("markdown", "render_markdown"),
    "csv": _in_module("spreadsheet", "render_csv"),
}
"""What `-o` may be, and who renders it."""
