"""Charts as PNG and SVG, drawn in a child process, so that whoever asks stays small and outlives a bad drawing."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Literal

from advisor.domain.errors import AdvisorError
from advisor.domain.pictures import Pictures

from .plain import plain

Theme = Literal["light", "dark"]
Format = Literal["png", "svg"]

LONGEST_SECONDS = 60.0
LARGEST_BYTES = 4 << 20


class ChartError(AdvisorError):
    """A chart could not be drawn; one line with the reason."""


def png(pictures: Pictures, title: str, *, theme: Theme = "light") -> bytes:
    """The charts of one deployment under each other, 1,080 pixels wide. Raises ChartError."""
    return _drawn(pictures, title, "png", theme)


def svg(pictures: Pictures, title: str, *, theme: Theme = "light") -> str:
    """The same as SVG, without a reference to anything outside. Raises ChartError."""
    return _drawn(pictures, title, "svg", theme).decode()


def _drawn(pictures: Pictures, title: str, form: Format, theme: Theme) -> bytes:
    order = {"pictures": dataclasses.asdict(pictures), "title": plain(title, limit=60), "format": form, "theme": theme}
    command = [sys.executable, "-m", "advisor.outlets.chart_worker"]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and module
            command, input=json.dumps(order).encode(), capture_output=True, timeout=LONGEST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ChartError(f"drawing took longer than {LONGEST_SECONDS:.0f} s") from None
    except OSError as error:
        raise ChartError(f"drawing could not be started: {error.strerror}") from None
    if done.returncode or not done.stdout or len(done.stdout) > LARGEST_BYTES:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ChartError(f"the chart was not drawn: {plain(reason, limit=160) or 'no picture came out'}")
    return done.stdout
