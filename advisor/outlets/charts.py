"""Charts as PNG and SVG, drawn in a child process, so that whoever asks stays small and outlives a bad drawing."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Literal

from advisor.domain.errors import AdvisorError
from advisor.domain.pictures import Pictures

from .plain import plain

Theme = Literal["light", "dark"]
Format = Literal["png", "svg"]
Titled = tuple[Pictures, str]
"""The charts of one deployment, and what stands above them."""

LONGEST_SECONDS = 60.0
MOST_A_CHILD = 20
"""Starting a child takes longer than a chart; one that is to draw hundreds would outlive its time."""
LARGEST_BYTES = 4 << 20
_HEAD_BYTES = 4


class ChartError(AdvisorError):
    """A chart could not be drawn; one line with the reason."""


def pngs(titled: Sequence[Titled], *, theme: Theme = "light") -> list[bytes | ChartError]:
    """Each deployment's charts under each other, 1,080 pixels wide; where they could not be drawn, why."""
    return _drawn([_order(pictures, title, "png", theme) for pictures, title in titled])


def png(pictures: Pictures, title: str, *, theme: Theme = "light") -> bytes:
    """The charts of one deployment. Raises ChartError."""
    return _only(_drawn([_order(pictures, title, "png", theme)]))


def svg(pictures: Pictures, title: str, *, theme: Theme = "light") -> str:
    """The same as SVG, without a reference to anything outside. Raises ChartError."""
    return _only(_drawn([_order(pictures, title, "svg", theme)])).decode()


def _order(pictures: Pictures, title: str, form: Format, theme: Theme) -> dict[str, object]:
    return {"pictures": dataclasses.asdict(pictures), "title": plain(title, limit=60), "format": form, "theme": theme}


def _only(drawn: list[bytes | ChartError]) -> bytes:
    (one,) = drawn
    if isinstance(one, ChartError):
        raise one
    return one


def _drawn(orders: Sequence[dict[str, object]]) -> list[bytes | ChartError]:
    """Whatever ends a child costs the picture that it was at, and another child goes on with the next."""
    drawn: list[bytes | ChartError] = []
    while len(drawn) < len(orders):
        batch = orders[len(drawn) : len(drawn) + MOST_A_CHILD]
        came, why = _by_a_child(batch)
        drawn += came
        if len(came) < len(batch):
            drawn.append(ChartError(why))
    return drawn


def _by_a_child(orders: Sequence[dict[str, object]]) -> tuple[list[bytes | ChartError], str]:
    """The pictures that came, from the first on, and why no more did."""
    command = [sys.executable, "-m", "advisor.outlets.chart_worker"]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and module
            command, input=json.dumps(orders).encode(), capture_output=True, timeout=LONGEST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        return list(_pictures(late.stdout or b"")), f"drawing took longer than {LONGEST_SECONDS:.0f} s"
    except OSError as error:
        return [], f"drawing could not be started: {error.strerror}"
    reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return list(_pictures(done.stdout)), f"the chart was not drawn: {plain(reason, limit=160) or 'no picture came out'}"


def _pictures(output: bytes) -> Iterator[bytes | ChartError]:
    """What a child wrote: each picture after its length; one that it was cut off in did not come."""
    place = _HEAD_BYTES
    while place <= len(output):
        size = int.from_bytes(output[place - _HEAD_BYTES : place], "big")
        picture = output[place : place + size]
        if len(picture) < size:
            return
        fits = 0 < size <= LARGEST_BYTES
        yield picture if fits else ChartError(f"the chart was not drawn: it would have {size:,} bytes")
        place += size + _HEAD_BYTES
