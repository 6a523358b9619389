"""The two charts of a deployment in characters: how long requests are, and how the time per token grows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from advisor.domain.numbers import seconds, tokens
from advisor.domain.pictures import CurvePicture, LengthPicture, Pictures

from .layout import right, wrapped

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_MARGIN = 10
_ROWS_OF_LENGTHS, _ROWS_OF_CURVE = 6, 10
_POINT, _LINE, _OBJECTIVE, _MARK = "●", "·", "─", "▲"


def drawings(pictures: Pictures, width: int) -> list[str]:
    """Both charts in lines of at most `width` columns (60 and more); empty where there is nothing to draw."""
    blocks: list[list[str]] = []
    if pictures.lengths is not None:
        blocks.append(list(_lengths(pictures.lengths, width)))
    if pictures.curve is not None:
        blocks.append(list(curve(pictures.curve, width)))
    return [line for block in blocks for line in ("", *block)][1:]


def _lengths(picture: LengthPicture, width: int) -> Iterator[str]:
    """Bars over a logarithmic axis; a bin that holds anything shows at least its lowest eighth."""
    yield from wrapped(f"TOTAL TOKENS of {picture.requests:,} requests, {picture.source}", width)
    columns = min(width - _MARGIN - 1, 96)
    bars = _spread(picture.shares, columns)
    top = max(bars, default=0.0) or 1.0
    for row in reversed(range(_ROWS_OF_LENGTHS)):
        label = f"{100 * top:.3g} %" if row == _ROWS_OF_LENGTHS - 1 else ""
        yield f"{right(label, _MARGIN - 2)} │{''.join(_cell(bar / top, row) for bar in bars)}".rstrip()
    yield " " * (_MARGIN - 1) + "└" + "─" * columns
    low, high = picture.edges[0], picture.edges[-1]
    ends = tokens(low), tokens(high)
    yield " " * _MARGIN + ends[0] + ends[1].rjust(columns - len(ends[0]))
    marks = (
        ("p99.9", picture.p999_tokens),
        ("proposal", picture.proposal_tokens),
        ("limit", picture.limit_tokens),
    )
    for name, value in marks:
        if value is not None:
            yield _marked(f"{name} {tokens(value)}", _log_place(value, low, high), columns)


def curve(picture: CurvePicture, width: int, title: str = "TIME PER TOKEN") -> Iterator[str]:
    """Points measured, the line fitted, the objective; ceilings and caps marked under the axis."""
    yield from wrapped(f"{title} over concurrency, {picture.source}", width)
    columns = min(width - _MARGIN - 1, 96)
    marks = [
        (name, value)
        for name, value in (
            ("cap", picture.cap),
            ("next cap", picture.next_cap),
            ("latency ceiling", picture.latency_ceiling),
            ("memory ceiling", picture.memory_ceiling),
        )
        if value is not None
    ]
    right_edge = _right_edge(picture)
    top = 1.1 * max(_heights(picture, right_edge), default=1.0)
    yield from _canvas(picture, columns, right_edge, top)
    yield " " * (_MARGIN - 1) + "└" + "─" * columns
    yield " " * _MARGIN + "0" + f"{right_edge:,.0f}".rjust(columns - 1)
    for name, value in marks:
        yield _marked(f"{name} {value:,.0f}", value / right_edge, columns)
    if picture.objective_seconds is not None:
        yield f"{' ' * _MARGIN}{_OBJECTIVE * 2} objective {seconds(picture.objective_seconds)}"


def _canvas(picture: CurvePicture, columns: int, right_edge: float, top: float) -> Iterator[str]:
    grid = [[" "] * columns for _ in range(_ROWS_OF_CURVE)]

    def put(concurrency: float, height: float, sign: str) -> None:
        column = min(columns - 1, int(concurrency / right_edge * columns))
        row = int(height / top * _ROWS_OF_CURVE)
        if 0 <= row < _ROWS_OF_CURVE and column >= 0:
            grid[row][column] = sign

    for column in range(columns):
        concurrency = (column + 0.5) / columns * right_edge
        if picture.objective_seconds is not None:
            put(concurrency, picture.objective_seconds, _OBJECTIVE)
        if picture.line is not None:
            put(concurrency, picture.line[0] + picture.line[1] * concurrency, _LINE)
    for point in picture.points:
        put(point.concurrency, point.seconds, _POINT)
    for number, row in reversed(list(enumerate(grid))):
        label = seconds(top) if number == _ROWS_OF_CURVE - 1 else ""
        yield f"{right(label, _MARGIN - 2)} │{''.join(row)}".rstrip()


def _right_edge(picture: CurvePicture) -> float:
    """As far as was measured and as the caps reach; a ceiling far beyond is told by its mark only."""
    near = [p.concurrency for p in picture.points]
    near += [v for v in (picture.cap, picture.next_cap, picture.latency_ceiling) if v is not None]
    measured = max((p.concurrency for p in picture.points), default=0.0)
    return max(1.0, *(v for v in near if not measured or v <= 4 * measured)) if near else 1.0


def _heights(picture: CurvePicture, right_edge: float) -> list[float]:
    heights = [point.seconds for point in picture.points]
    if picture.objective_seconds is not None:
        heights.append(picture.objective_seconds)
    if picture.line is not None and not picture.points:
        heights.append(picture.line[0] + picture.line[1] * right_edge)
    return [height for height in heights if math.isfinite(height) and height > 0]


def _spread(shares: Iterable[float], columns: int) -> list[float]:
    """Bars over the whole axis: a bin is drawn in every column of its span, or shares one where there are too many."""
    listed = list(shares)
    if len(listed) <= columns:
        return [listed[column * len(listed) // columns] for column in range(columns)] if listed else []
    bars = [0.0] * columns
    for place, share in enumerate(listed):
        bars[place * columns // len(listed)] += share
    return bars


def _cell(height: float, row: int) -> str:
    eighths = math.ceil(height * _ROWS_OF_LENGTHS * 8)
    return _EIGHTHS[min(8, max(0, eighths - 8 * row))]


def _log_place(value: float, low: float, high: float) -> float:
    if value <= 0 or high <= low or low <= 0:
        return math.inf
    return math.log(value / low) / math.log(high / low)


def _marked(label: str, place: float, columns: int) -> str:
    """`▲ label` under its place on the axis, the label on the side that has room; an arrow for what lies beyond it."""
    if not 0 <= place <= 1:
        return " " * _MARGIN + (f"{label} →".rjust(columns) if place > 1 else f"← {label}")
    column = min(columns - 1, int(place * columns))
    if column + 2 + len(label) <= columns:
        return " " * (_MARGIN + column) + f"{_MARK} {label}"
    return " " * _MARGIN + f"{label} {_MARK}".rjust(column + 1)
