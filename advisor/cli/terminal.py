"""What standard output is: how wide, and whether it wants colour."""

from __future__ import annotations


def terminal(*, no_color: bool) -> tuple[int, bool]:
    """(columns, colour). A pipe has 80 columns and no colour; `NO_COLOR` and a dumb terminal have no colour either."""
    import os
    import shutil
    import sys

    if not sys.stdout.isatty():
        return 80, False
    color = not no_color and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return min(shutil.get_terminal_size((80, 24)).columns, 120), color
