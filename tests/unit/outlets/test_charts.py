"""Where marks stand and what they say; the drawing itself runs in its child process."""

from __future__ import annotations

import struct
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from advisor.domain.pictures import CurvePicture, CurvePoint, LengthPicture, Pictures
from advisor.outlets import charts
from advisor.outlets.chart_worker import (
    DARK,
    LIGHT,
    Colors,
    curve_marks,
    draw,
    length_marks,
    literal,
    within_reach,
)

pytestmark = pytest.mark.slow

LENGTHS = LengthPicture(
    edges=(100.0, 1_000.0, 10_000.0, 20_000.0),
    shares=(0.25, 0.7, 0.05),
    requests=412_310,
    p999_tokens=14_505.0,
    proposal_tokens=18_432.0,
    limit_tokens=131_072.0,
    source="request log",
)
CURVE = CurvePicture(
    points=(CurvePoint(8, 0.016, 100), CurvePoint(16, 0.018, 400)),
    line=(0.0138, 0.00024),
    objective_seconds=0.04,
    memory_ceiling=445.0,
    latency_ceiling=None,
    cap=16.0,
    next_cap=24.0,
    source="request log",
)


def test_lengths_are_marked_where_they_are() -> None:
    marks = length_marks(LENGTHS, LIGHT)
    assert [(m.place, m.label) for m in marks] == [
        (14_505.0, "p99.9 14,505"),
        (18_432.0, "proposal 18,432"),
        (131_072.0, "limit now 131,072"),
    ]


def test_what_is_unknown_is_not_marked() -> None:
    bare = LengthPicture((1.0, 2.0), (1.0,), 3, None, None, None, "log")
    assert length_marks(bare, LIGHT) == []


def test_a_ceiling_far_beyond_what_was_measured_is_named_instead_of_drawn() -> None:
    marks = curve_marks(CURVE, LIGHT)
    assert [m.label for m in marks] == ["cap now 16", "proposal 24", "memory ceiling 445"]
    shown, reach = within_reach(CURVE, marks)
    assert [m.place for m in shown] == [16.0, 24.0]
    assert reach == pytest.approx(27.6)  # 24 x 1.15
    axes = draw(None, CURVE, "chat", LIGHT).axes[0]
    assert "further right: memory ceiling 445" in axes.get_title(loc="left")


def test_bars_and_lines_stand_at_their_figures() -> None:
    figure = draw(LENGTHS, CURVE, "chat", LIGHT)
    lengths, curve = figure.axes
    assert [bar.get_height() for bar in lengths.patches if isinstance(bar, Rectangle)] == [25.0, 70.0, 5.0]
    assert [line.get_xdata()[0] for line in lengths.lines] == [131_072.0, 18_432.0, 14_505.0]  # type: ignore[index]
    fitted = curve.lines[0]
    assert np.asarray(fitted.get_ydata()).tolist() == pytest.approx([13.8, 13.8 + 0.24 * 27.6])
    objective = next(line for line in curve.lines if line.get_linestyle() == ":")
    assert np.asarray(objective.get_ydata()).tolist() == [40.0, 40.0]
    assert curve.get_ylabel() == "ms a token"


def test_names_of_neighbours_stand_at_different_heights() -> None:
    axes = draw(LENGTHS, None, "chat", LIGHT).axes[0]
    heights = [text.xy[1] for text in axes.texts]  # type: ignore[attr-defined]
    assert len(set(heights)) == len(heights) == 3


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_every_word_can_be_read_on_its_paper(colors: Colors) -> None:
    # WCAG 2.2 asks for a contrast of 4.5 for text.
    words = (colors.ink, colors.faint, colors.evidence, colors.proposal, colors.limit, colors.objective)
    assert min(_contrast(word, colors.paper) for word in words) >= 4.5


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_png_is_as_wide_as_a_phone_shows() -> None:
    picture = charts.png(Pictures(LENGTHS, CURVE), "chat-70b")
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    assert (width, height) == (1080, 1278)


def test_an_svg_is_whole_and_refers_to_nothing_outside() -> None:
    picture = charts.svg(Pictures(LENGTHS, None), "a <b> & $x^2$", theme="dark")
    root = ET.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    links = [value for node in root.iter() for name, value in node.attrib.items() if name.endswith("href")]
    assert all(link.startswith("#") for link in links)


def test_a_dollar_in_a_name_starts_no_formula() -> None:
    assert literal("$x^2$") == r"\$x^2\$"


def test_the_parent_process_stays_without_matplotlib() -> None:
    command = "import sys, advisor.outlets.charts, advisor.outlets.slack.poster; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_cannot_be_drawn_is_an_error_in_one_line() -> None:
    empty = LengthPicture((), (), 0, None, None, None, "log")
    with pytest.raises(charts.ChartError) as caught:
        charts.png(Pictures(empty), "chat")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("the chart was not drawn: ")


def test_a_bad_drawing_costs_only_itself() -> None:
    empty = LengthPicture((), (), 0, None, None, None, "log")
    drawn = charts.pngs([(Pictures(LENGTHS), "a"), (Pictures(empty), "b"), (Pictures(None, CURVE), "c")])
    assert [isinstance(one, bytes) for one in drawn] == [True, False, True]
    assert drawn[0] == charts.png(Pictures(LENGTHS), "a")


def test_twenty_charts_take_one_child(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[int] = []
    run = subprocess.run

    def counted(*given: Any, **options: Any) -> Any:
        children.append(1)
        return run(*given, **options)

    monkeypatch.setattr(subprocess, "run", counted)
    drawn = charts.pngs([(Pictures(LENGTHS), f"chat-{n}") for n in range(charts.MOST_A_CHILD + 1)])
    assert all(isinstance(one, bytes) for one in drawn)
    assert len(children) == 2
    assert charts.pngs([]) == []


def test_a_child_that_does_not_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "LONGEST_SECONDS", 0.05)
    with pytest.raises(charts.ChartError, match="longer than"):
        charts.png(Pictures(LENGTHS), "chat")
