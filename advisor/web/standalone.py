"""`-o html`: the fleet and every deployment in one file that needs no server and no other file."""

from __future__ import annotations

from advisor.domain.report import Report

from .pages import standalone


def render_html(report: Report) -> str:
    """The report as one HTML document, without a newline at its end."""
    return standalone(report)
