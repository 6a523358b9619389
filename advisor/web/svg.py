"""The two charts of a deployment as inline SVG. Colours are the style sheet's, and so follow the theme."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup, escape

from advisor.domain import numbers
from advisor.domain.pictures import CurvePicture, LengthPicture
from advisor.outlets.plain import plain

_WIDTH, _PLOT_HEIGHT = 400, 160
_LEFT, _RIGHT, _BELOW, _ROW = 46, 14, 36, 15
_MOST_TICKS = 6
_FAR = 3.0
"""A mark this many times beyond what was measured is named at the edge: to scale it would squeeze the rest."""

_LARGEST = 1e12  # no count of tokens or sequences is larger; NaN and infinity fail the comparison too


@dataclass(frozen=True, slots=True)
class _Mark:
    """A vertical line, labelled in a row of its own above the plot, so that labels never meet."""

    kind: str
    label: str
    place: float | None


@dataclass(frozen=True, slots=True)
class _Axis:
    """From values to pixels. Where a value lies beyond the axis, it is drawn at its end."""

    low: float
    high: float
    start: float
    end: float
    scale: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        low, high = self.scale(self.low), self.scale(self.high)
        share = (self.scale(min(max(value, self.low), self.high)) - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 1)


def lengths(picture: LengthPicture, key: str) -> Markup:
    """Total tokens of requests in bins, with the p99.9, the proposal and the limit. `key` makes ids unique."""
    marks = _drawn(
        _Mark("measured", "p99.9", picture.p999_tokens),
        _Mark("proposal", "proposal", picture.proposal_tokens),
        _Mark("now", "limit now", picture.limit_tokens),
    )
    top = _ROW * len(marks) + 6
    low = max(picture.edges[0], 1.0)
    high = max(picture.edges[-1], *(m.place or 0 for m in marks), low * 2) * 1.08
    x = _Axis(low, high, _LEFT, _WIDTH - _RIGHT, math.log)
    y = _Axis(0, max(picture.shares), top + _PLOT_HEIGHT, top)
    said = [f"{m.label} {numbers.tokens(m.place or 0)} tokens" for m in marks]
    return _chart(
        key,
        "Lengths of requests",
        [
            f"{picture.requests:,} requests, prompt and output together, from {_brief(low)} tokens",
            *said,
            picture.source,
        ],
        top,
        (
            *_bars(picture, x, y),
            *_across(x, _round_logarithmic(low, high), top, "tokens of a request, prompt and output", _brief),
            *_up(y, [max(picture.shares)], numbers.ratio),
            *_lines(marks, x, top, numbers.tokens),
        ),
    )


def curve(picture: CurvePicture, key: str) -> Markup:
    """Seconds a token over concurrency, with objective, cap and ceilings. The fit is dashed beyond what was seen."""
    points = [p for p in picture.points if math.isfinite(p.concurrency) and math.isfinite(p.seconds)]
    measured = max((p.concurrency for p in points), default=0.0)
    marks = _drawn(
        _Mark("now", "cap now", picture.cap),
        _Mark("proposal", "cap proposed", picture.next_cap),
        _Mark("ceiling", "latency ceiling", picture.latency_ceiling),
        _Mark("ceiling", "memory ceiling", picture.memory_ceiling),
    )
    top = _ROW * len(marks) + 6
    places = [m.place or 0 for m in marks]
    near = [place for place in places if place <= _FAR * measured]
    reach = max([measured, *near] if measured else [1.0, *places]) * 1.08
    heights = [p.seconds for p in points] + ([picture.objective_seconds] if picture.objective_seconds else [])
    heights += [picture.line[0] + picture.line[1] * reach] if picture.line and not points else []
    x = _Axis(0, reach, _LEFT, _WIDTH - _RIGHT)
    y = _Axis(0, max([*heights, 1e-6]) * 1.1, top + _PLOT_HEIGHT, top)
    objective = picture.objective_seconds
    said = [f"{m.label} {numbers.count(m.place or 0)}" for m in marks]
    said += [f"objective {numbers.seconds(objective)} a token"] if objective else []
    return _chart(
        key,
        "Time per token over concurrency",
        [f"{len(points)} levels of concurrency, up to {numbers.count(measured)}", *said, picture.source],
        top,
        (
            *_across(x, _round_linear(reach), top, "requests at once on one engine", numbers.count),
            *_up(y, _round_linear(y.high), numbers.seconds),
            *_objective(objective, y),
            *_fit(picture.line, x, y, measured),
            *(f'<circle class="point" cx="{x(p.concurrency)}" cy="{y(p.seconds)}" r="3"/>' for p in points),
            *_lines(marks, x, top, numbers.count),
        ),
    )


def _chart(key: str, title: str, said: Iterable[str], top: float, parts: Iterable[str]) -> Markup:
    described = escape("; ".join(plain(text) for text in said if text))
    height = top + _PLOT_HEIGHT + _BELOW
    return Markup(  # noqa: S704 - numbers and words of this module, and what was escaped above
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="{key}-title {key}-desc">'
        f'<title id="{key}-title">{title}</title><desc id="{key}-desc">{described}</desc>{"".join(parts)}</svg>'
    )


def _drawn(*marks: _Mark) -> list[_Mark]:
    return [mark for mark in marks if mark.place is not None and 0 < mark.place < _LARGEST]


def _bars(picture: LengthPicture, x: _Axis, y: _Axis) -> Iterator[str]:
    floor = y(0)
    for left, right, share in zip(picture.edges, picture.edges[1:], picture.shares, strict=False):
        if share > 0:
            # A tail of a thousandth is what this chart is about: it never vanishes.
            top = min(y(share), floor - 1)
            width = max(x(right) - x(left) - 0.5, 0.5)
            yield f'<rect class="bar" x="{x(left)}" y="{top}" width="{width:.1f}" height="{floor - top:.1f}"/>'


def _fit(line: tuple[float, float] | None, x: _Axis, y: _Axis, measured: float) -> Iterator[str]:
    if line is None or not all(map(math.isfinite, line)):
        return
    base, slope = line
    # Above the plot there is nothing to see: the line ends where it leaves it.
    end = min(x.high, (y.high - base) / slope) if slope > 0 and base < y.high else x.high
    known = min(measured, end)
    for kind, start, stop in (("fit", 0.0, known), ("fit beyond", known, end)):
        if stop > start:
            ends = f'x1="{x(start)}" y1="{y(base + slope * start)}" x2="{x(stop)}" y2="{y(base + slope * stop)}"'
            yield f'<line class="{kind}" {ends}/>'


def _objective(seconds: float | None, y: _Axis) -> Iterator[str]:
    if seconds is not None:
        height = y(seconds)
        yield f'<line class="objective" x1="{_LEFT}" y1="{height}" x2="{_WIDTH - _RIGHT}" y2="{height}"/>'
        yield f'<text class="objective" x="{_LEFT + 4}" y="{height - 4}">objective {numbers.seconds(seconds)}</text>'


def _lines(marks: list[_Mark], x: _Axis, top: float, write: Callable[[float], str]) -> Iterator[str]:
    for row, mark in enumerate(marks):
        place, height = mark.place or 0.0, (row + 1) * _ROW - 4
        beyond = place > x.high
        at = x(place)
        if not beyond:
            yield f'<line class="mark {mark.kind}" x1="{at}" y1="{height + 2}" x2="{at}" y2="{top + _PLOT_HEIGHT}"/>'
        anchor, shift = ("end", -4) if at > _WIDTH / 2 else ("start", 4)
        label = f"{mark.label} {write(place)}{' →' if beyond else ''}"
        yield f'<text class="mark {mark.kind}" x="{at + shift}" y="{height}" text-anchor="{anchor}">{label}</text>'


def _across(x: _Axis, ticks: Iterable[float], top: float, title: str, write: Callable[[float], str]) -> Iterator[str]:
    floor = top + _PLOT_HEIGHT
    yield f'<line class="axis" x1="{_LEFT}" y1="{floor}" x2="{_WIDTH - _RIGHT}" y2="{floor}"/>'
    for tick in ticks:
        yield f'<text x="{x(tick)}" y="{floor + 14}" text-anchor="middle">{write(tick)}</text>'
    yield f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{floor + 30}" text-anchor="middle">{title}</text>'


def _up(y: _Axis, ticks: Iterable[float], write: Callable[[float], str]) -> Iterator[str]:
    for tick in ticks:
        at = y(tick)
        yield f'<line class="grid" x1="{_LEFT}" y1="{at}" x2="{_WIDTH - _RIGHT}" y2="{at}"/>'
        if tick > 0:
            yield f'<text x="{_LEFT - 5}" y="{at + 4}" text-anchor="end">{write(tick)}</text>'


def _round_linear(high: float) -> list[float]:
    """Round values from 0 to `high`, at most seven: 24 is 0, 5, ... 20."""
    rough = high / _MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step for factor in (1, 2, 5, 10) if (step := factor * power) >= rough * 0.999)
    return [step * place for place in range(int(high / step) + 1)]


def _round_logarithmic(low: float, high: float) -> list[float]:
    """Round values between `low` and `high`, as many as fit: 1, 2 and 5 of each decade, else fewer."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors, stride in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 4)):
        ticks = [f * 10.0**d for d in decades[::stride] for f in factors if low <= f * 10.0**d <= high]
        if len(ticks) <= _MOST_TICKS + 1:
            break
    return ticks


def _brief(tokens: float) -> str:
    """A count of tokens on an axis: 500 is `500`, 12288 is `12.3k`, 2e6 is `2M`."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if tokens >= size:
            return f"{tokens / size:.3g}{unit}"
    return f"{tokens:.0f}"
