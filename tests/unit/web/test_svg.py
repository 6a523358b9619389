from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.pictures import CurvePicture, CurvePoint, LengthPicture
from advisor.web import svg
from tests.unit.web import fleets


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)


def texts(chart: ET.Element) -> list[str]:
    return [element.text or "" for element in chart.iter("text")]


def test_the_marks_of_the_lengths_are_named_with_their_figures() -> None:
    chart = parsed(svg.lengths(fleets.lengths(), "d1-lengths"))
    assert texts(chart)[-3:] == ["p99.9 6,301", "proposal 8,192", "limit now 131,072"]
    assert chart.attrib["aria-labelledby"] == "d1-lengths-title d1-lengths-desc"
    assert chart.findtext("desc") == (
        "412,310 requests, prompt and output together, from 20 tokens; p99.9 6,301 tokens; proposal 8,192 tokens; "
        "limit now 131,072 tokens; request log"
    )


def test_a_thin_tail_stays_visible() -> None:
    picture = LengthPicture((1.0, 10.0, 100.0, 1000.0), (0.9999, 0.0, 0.0001), 10_000, None, None, None, "log")
    bars = [float(bar.attrib["height"]) for bar in parsed(svg.lengths(picture, "k")).iter("rect")]
    # the full height is 160; an empty bin has no bar, and one request in ten thousand still has a pixel
    assert bars == [160.0, 1.0]


def test_equal_factors_are_equal_distances() -> None:
    picture = LengthPicture((10.0, 100.0, 1000.0), (0.5, 0.5), 10, None, None, None, "log")
    first, second = (float(bar.attrib["x"]) for bar in parsed(svg.lengths(picture, "k")).iter("rect"))
    # 46 is the left edge and 386 the right one; log(100 / 10) / log(1080 / 10) = 0.4918 of 340 lies between
    assert (first, second) == (46.0, 213.2)


def test_a_ceiling_far_beyond_is_named_at_the_edge_and_squeezes_nothing() -> None:
    chart = parsed(svg.curve(fleets.curve(), "k"))
    assert "memory ceiling 445 →" in texts(chart)
    assert "cap proposed 24" in texts(chart)
    assert len([line for line in chart.iter("line") if "ceiling" in line.attrib["class"]]) == 0
    # the axis ends at 24 x 1.08 = 25.92: 16 is at 46 + 16 / 25.92 x 340
    assert max(float(point.attrib["cx"]) for point in chart.iter("circle")) == 255.9


def test_the_fit_is_dashed_beyond_what_was_seen() -> None:
    fits = [line for line in parsed(svg.curve(fleets.curve(), "k")).iter("line") if "fit" in line.attrib["class"]]
    assert [line.attrib["class"] for line in fits] == ["fit", "fit beyond"]
    assert fits[0].attrib["x2"] == fits[1].attrib["x1"] == "255.9"


def test_a_line_without_points_reaches_the_ceilings() -> None:
    picture = replace(fleets.curve(), points=(), cap=None, next_cap=None)
    chart = parsed(svg.curve(picture, "k"))
    assert "memory ceiling 445" in texts(chart)
    assert [line.attrib["class"] for line in chart.iter("line") if "fit" in line.attrib["class"]] == ["fit beyond"]


@pytest.mark.parametrize("name", fleets.HOSTILE_NAMES)
def test_a_hostile_source_is_text(name: str) -> None:
    for text in (svg.lengths(fleets.lengths(name), "k"), svg.curve(fleets.curve(name), "k")):
        chart = parsed(text)
        assert {element.tag for element in chart.iter()} <= {"svg", "title", "desc", "text", "line", "rect", "circle"}


sizes = st.floats(min_value=1e-3, max_value=1e7)
marks = st.none() | st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.tuples(sizes, sizes), max_size=5), marks, marks, st.none() | sizes, st.none() | st.tuples(sizes, sizes)
)
def test_any_curve_stays_on_its_canvas(
    points: list[tuple[float, float]],
    cap: float | None,
    ceiling: float | None,
    objective: float | None,
    line: tuple[float, float] | None,
) -> None:
    picture = CurvePicture(
        tuple(CurvePoint(n, seconds, 1.0) for n, seconds in points), line, objective, ceiling, ceiling, cap, cap, "log"
    )
    text = svg.curve(picture, "k")
    _, _, width, height = map(float, parsed(text).attrib["viewBox"].split())
    for axis, value in re.findall(r' (x|y|x1|x2|y1|y2|cx|cy)="([^"]+)"', text):
        assert -8 <= float(value) <= (width if "x" in axis else height)


def test_round_values_are_few() -> None:
    assert svg._round_linear(25.92) == [0, 5, 10, 15, 20, 25]
    assert svg._round_logarithmic(20, 141_557) == [100, 1_000, 10_000, 100_000]
    assert svg._round_logarithmic(300, 3_000) == [500, 1_000, 2_000]
