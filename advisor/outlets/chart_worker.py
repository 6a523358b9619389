"""The child that draws: orders as JSON on stdin, pictures on stdout. The only place that imports matplotlib."""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from advisor.domain import numbers
from advisor.domain.pictures import CurvePicture, CurvePoint, LengthPicture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_MEMORY_BYTES = 2 << 30
MOST_CPU_SECONDS = 50
WIDTH_INCHES, PANEL_INCHES, DOTS_PER_INCH = 6.0, 3.3, 180


@dataclass(frozen=True, slots=True)
class Colors:
    """Of one theme. The marks are from a palette that colour-blind readers can tell apart, and are named in words."""

    paper: str
    ink: str
    faint: str
    body: str
    evidence: str
    proposal: str
    limit: str
    objective: str


LIGHT = Colors("#ffffff", "#1d1c1d", "#6b6b6b", "#9cc3e6", "#0b5c94", "#a8430a", "#1d1c1d", "#86336b")
DARK = Colors("#1a1d21", "#e8e8e8", "#a0a3a8", "#3d6d94", "#7cc0f5", "#f0a060", "#e8e8e8", "#e79fd0")


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across a chart, named beside it. `place` is on the axis that it crosses."""

    place: float
    label: str
    color: str
    dashed: bool = False


def length_marks(picture: LengthPicture, colors: Colors) -> list[Mark]:
    """p99.9, proposal and present limit, as far as they are known, by place."""
    named = (
        (picture.p999_tokens, "p99.9", colors.evidence, True),
        (picture.proposal_tokens, "proposal", colors.proposal, False),
        (picture.limit_tokens, "limit now", colors.limit, False),
    )
    marks = [Mark(v, f"{word} {numbers.tokens(v)}", color, dash) for v, word, color, dash in named if v is not None]
    return sorted(marks, key=lambda mark: mark.place)


def curve_marks(picture: CurvePicture, colors: Colors) -> list[Mark]:
    """Ceilings, cap and proposal, as far as they are known, by place."""
    named = (
        (picture.cap, "cap now", colors.limit, False),
        (picture.next_cap, "proposal", colors.proposal, False),
        (picture.latency_ceiling, "latency ceiling", colors.evidence, True),
        (picture.memory_ceiling, "memory ceiling", colors.faint, True),
    )
    marks = [Mark(v, f"{word} {numbers.count(v)}", color, dash) for v, word, color, dash in named if v is not None]
    return sorted(marks, key=lambda mark: mark.place)


def draw(lengths: LengthPicture | None, curve: CurvePicture | None, title: str, colors: Colors) -> Figure:
    """The panels that there are, under each other."""
    import matplotlib as mpl  # noqa: PLC0415 - the tests of the marks must not pay for it
    from matplotlib.figure import Figure  # noqa: PLC0415

    mpl.rcParams.update({"svg.hashsalt": "advisor", "svg.fonttype": "path", "text.usetex": False})
    mpl.rcParams.update({"font.size": 11, "axes.edgecolor": colors.faint, "text.color": colors.ink})
    panels = [panel for panel in (lengths, curve) if panel is not None]
    figure = Figure(figsize=(WIDTH_INCHES, 0.5 + PANEL_INCHES * len(panels)), layout="constrained")
    figure.set_facecolor(colors.paper)
    figure.suptitle(literal(title), fontsize=13, fontweight="bold", x=0.02, ha="left", color=colors.ink)
    for place, panel in enumerate(panels, 1):
        axes = figure.add_subplot(len(panels), 1, place)
        _style(axes, colors)
        if isinstance(panel, LengthPicture):
            draw_lengths(axes, panel, colors)
        else:
            draw_curve(axes, panel, colors)
    return figure


def literal(text: str) -> str:
    """A name as it is: matplotlib takes what stands between two `$` for a formula."""
    return text.replace("$", r"\$")


def draw_lengths(axes: Axes, picture: LengthPicture, colors: Colors) -> None:
    """Shares of requests over their total tokens, on a logarithmic axis, because tails are long."""
    marks = length_marks(picture, colors)
    widths = [b - a for a, b in zip(picture.edges, picture.edges[1:], strict=False)]
    shares = [100 * share for share in picture.shares]
    axes.bar(picture.edges[:-1], shares, width=widths, align="edge", color=colors.body, linewidth=0)
    axes.set_xscale("log")
    places = [*picture.edges[:1], *picture.edges[-1:], *(m.place for m in marks)]
    axes.set_xlim(max(min(places) / 1.3, 0.5), max(places) * 1.6)
    axes.set_ylim(0, (max(shares) or 1) * 1.55)
    _token_ticks(axes)
    axes.set_title(f"Lengths of {picture.requests:,} requests", **_small(colors))
    axes.set_xlabel("prompt + output tokens of one request", color=colors.faint)
    axes.set_ylabel("% of requests", color=colors.faint)
    _cross(axes, marks, colors)


def draw_curve(axes: Axes, picture: CurvePicture, colors: Colors) -> None:
    """Milliseconds a token over concurrency, with the objective across and the ceilings upright."""
    marks = curve_marks(picture, colors)
    shown, reach = within_reach(picture, marks)
    _points(axes, picture, colors)
    if picture.line is not None:
        base, slope = picture.line
        axes.plot((0, reach), (1000 * base, 1000 * (base + slope * reach)), color=colors.evidence, linewidth=1.6)
    axes.set_xlim(0, reach)
    axes.set_ylim(0, 1.6 * _highest(picture, reach))
    _objective(axes, picture.objective_seconds, colors)
    beyond = ", ".join(m.label for m in marks if m not in shown)
    further = f"\nnot shown, further right: {beyond}" if beyond else ""
    axes.set_title(_curve_title(picture) + further, **_small(colors))
    axes.set_xlabel("requests decoding at once, on one engine", color=colors.faint)
    axes.set_ylabel("ms a token", color=colors.faint)
    axes.locator_params(axis="x", integer=True)
    _cross(axes, shown, colors)


def within_reach(picture: CurvePicture, marks: list[Mark]) -> tuple[list[Mark], float]:
    """The marks to draw and where the axis ends: a mark beyond three times what was measured would squeeze that."""
    measured = max((p.concurrency for p in picture.points), default=picture.cap or 32.0)
    shown = [m for m in marks if m.place <= 3 * max(measured, 1.0)]
    return shown, 1.15 * max([measured, 1.0, *(m.place for m in shown)])


def _highest(picture: CurvePicture, reach: float) -> float:
    """Milliseconds that the axis must hold."""
    tops = [p.seconds for p in picture.points] + [picture.objective_seconds or 0.0]
    tops += [picture.line[0] + picture.line[1] * reach] if picture.line else []
    return 1000 * max(tops) or 1.0


def _curve_title(picture: CurvePicture) -> str:
    parts = ["dots: measured"] if picture.points else []
    parts += ["line: fitted mean"] if picture.line else []
    return f"Time per output token ({', '.join(parts)})"


def _objective(axes: Axes, seconds: float | None, colors: Colors) -> None:
    if seconds is None:
        return
    axes.axhline(1000 * seconds, color=colors.objective, linewidth=1.6, linestyle=":")
    axes.annotate(
        f"objective {numbers.seconds(seconds)}",
        (0.01, 1000 * seconds),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 3),
        textcoords="offset points",
        ha="left",
        va="bottom",
        color=colors.objective,
        fontsize=10,
    )


def _points(axes: Axes, picture: CurvePicture, colors: Colors) -> None:
    if not picture.points:
        return
    most = max(p.requests for p in picture.points) or 1.0
    sizes = [14 + 70 * p.requests / most for p in picture.points]
    x, y = [p.concurrency for p in picture.points], [1000 * p.seconds for p in picture.points]
    axes.scatter(x, y, s=sizes, color=colors.body, edgecolors=colors.evidence, linewidths=0.6, zorder=3)


def _cross(axes: Axes, marks: list[Mark], colors: Colors) -> None:
    """Upright lines with their names; a name stands where its own line is the highest of those that it passes."""
    placed = [(m, axes.transAxes.inverted().transform(axes.transData.transform((m.place, 0)))[0]) for m in marks]
    rightward = [m for m, x in placed if x <= 0.55]
    leftward = [m for m, x in placed if x > 0.55]
    for level, mark in enumerate([*rightward, *reversed(leftward)]):
        height, left = 0.98 - 0.1 * level, mark in leftward
        axes.axvline(mark.place, ymax=height, color=mark.color, linewidth=1.6, linestyle="--" if mark.dashed else "-")
        axes.annotate(
            mark.label,
            (mark.place, height),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-4, 0) if left else (4, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top",
            color=mark.color,
            fontsize=10,
            bbox={"facecolor": colors.paper, "edgecolor": "none", "pad": 1},
        )


def _style(axes: Axes, colors: Colors) -> None:
    axes.set_facecolor(colors.paper)
    axes.tick_params(colors=colors.faint, which="both", labelsize=10)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _token_ticks(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 3.0), numticks=8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: numbers.tokens(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _small(colors: Colors) -> dict[str, Any]:
    return {"loc": "left", "fontsize": 11, "color": colors.ink}


def main() -> None:
    """Draw the orders on stdin within bounded memory and time; out comes each picture after its length, at once."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))
    for order in json.loads(sys.stdin.buffer.read()):
        picture = _picture(order)
        sys.stdout.buffer.write(len(picture).to_bytes(4, "big") + picture)
        sys.stdout.buffer.flush()


def _picture(order: dict[str, Any]) -> bytes:
    colors = DARK if order["theme"] == "dark" else LIGHT
    figure = draw(_lengths(order["pictures"]["lengths"]), _curve(order["pictures"]["curve"]), order["title"], colors)
    picture = BytesIO()
    metadata = {"Date": None} if order["format"] == "svg" else None
    figure.savefig(picture, format=order["format"], dpi=DOTS_PER_INCH, metadata=metadata)
    return picture.getvalue()


def _lengths(given: dict[str, Any] | None) -> LengthPicture | None:
    return None if given is None else LengthPicture(**given)


def _curve(given: dict[str, Any] | None) -> CurvePicture | None:
    if given is None:
        return None
    points = tuple(CurvePoint(**point) for point in given["points"])
    line = tuple(given["line"]) if given["line"] is not None else None
    return CurvePicture(**{**given, "points": points, "line": line})


if __name__ == "__main__":
    main()
