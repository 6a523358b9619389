"""How key figures of a deployment moved: what the page draws small, and which facts that takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from advisor.domain import numbers
from advisor.domain.fact import measured
from advisor.outlets import phrases

Series = tuple[tuple[float, float], ...]
"""(UNIX seconds, value), oldest first."""

DAYS = 30
_SETTINGS = (
    ("max_num_seqs", "recommended_max_num_seqs"),
    ("max_model_len", "recommended_max_model_len"),
    ("replicas", "recommended_replicas"),
)
_LOAD = ("running_p95", "waiting_share", "kv_usage_p95", "demand_requests_per_second_p99")
FACTS = (*(name for pair in _SETTINGS for name in pair), *_LOAD)

_WIDTH, _HEIGHT, _MARGIN = 240, 44, 4
_GAP_SECONDS = 36 * 3600.0
"""Old facts are kept once a day: longer than that, and a bit, nothing was known."""


@dataclass(frozen=True, slots=True)
class Line:
    """One figure over time. `kind` is its style: now, proposal or load."""

    kind: str
    name: str
    series: Series

    @property
    def told(self) -> str:
        """`24, between 16 and 24`; a figure that never moved is told once."""
        values = [value for _, value in self.series]
        low, high, latest = (
            numbers.figure(self.name, measured(v, source="")) for v in (min(values), max(values), values[-1])
        )
        return latest if low == high else f"{latest}, between {low} and {high}"


@dataclass(frozen=True, slots=True)
class Trend:
    """One small chart: a setting with what is recommended for it, or one figure of the load."""

    label: str
    lines: tuple[Line, ...]


def trends(history: Mapping[str, Series]) -> list[Trend]:
    """What there is to draw: at least two moments of a figure."""
    pairs = [Trend(now, _lines(history, ("now", now), ("proposal", advised))) for now, advised in _SETTINGS]
    load = [Trend(phrases.label(name), _lines(history, ("load", name))) for name in _LOAD]
    return [trend for trend in (*pairs, *load) if trend.lines]


def since(drawn: Sequence[Trend]) -> float:
    """The first moment that any of them shows, in UNIX seconds."""
    return min(line.series[0][0] for trend in drawn for line in trend.lines)


def sparkline(trend: Trend, start: float, key: str) -> Markup:
    """The lines from `start` to the latest moment over an axis from zero. `key` makes ids unique."""
    end = max(line.series[-1][0] for line in trend.lines)
    top = max(value for line in trend.lines for _, value in line.series)
    said = escape("; ".join(f"{_WORDS[line.kind]} {line.told}" for line in trend.lines))
    lines = "".join(_drawn(line, start, end, top) for line in trend.lines)
    floor = _HEIGHT - _MARGIN
    return Markup(  # noqa: S704 - numbers of this module, and what is escaped
        f'<svg class="spark" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{key}-title {key}-desc">'
        f'<title id="{key}-title">{escape(trend.label)}</title><desc id="{key}-desc">{said}</desc>'
        f'<line class="axis" x1="0" y1="{floor}" x2="{_WIDTH}" y2="{floor}"/>{lines}</svg>'
    )


_WORDS = {"now": "now", "proposal": "recommended", "load": "now"}


def _lines(history: Mapping[str, Series], *wanted: tuple[str, str]) -> tuple[Line, ...]:
    lines = [Line(kind, name, history.get(name, ())) for kind, name in wanted]
    return tuple(line for line in lines if len(line.series) > 1)


def _drawn(line: Line, start: float, end: float, top: float) -> str:
    """One polyline for each stretch without a gap. Of a column the highest is drawn, so that no peak vanishes."""
    stretches: list[dict[int, float]] = [{}]
    for (before, _), (at, value) in pairwise((line.series[0], *line.series)):
        if at - before > _GAP_SECONDS:
            stretches.append({})
        column = round(_MARGIN + (at - start) / ((end - start) or 1) * (_WIDTH - 2 * _MARGIN))
        stretches[-1][column] = max(value, stretches[-1].get(column, value))
    return "".join(_polyline(line.kind, stretch, top) for stretch in stretches)


def _polyline(kind: str, columns: Mapping[int, float], top: float) -> str:
    high = _HEIGHT - 2 * _MARGIN
    points = [f"{x},{round(_HEIGHT - _MARGIN - high * max(v, 0) / (top or 1), 1)}" for x, v in columns.items()]
    # A stretch of a single moment would be invisible: it is drawn one pixel long.
    points += [points[0].replace(",", ".9,", 1)] if len(points) == 1 else []
    return f'<polyline class="{kind}" points="{" ".join(points)}"/>'
