"""Charts in characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.pictures import CurvePicture, CurvePoint, LengthPicture, Pictures
from advisor.outlets.drawings import drawings
from advisor.outlets.plain import cells


def lengths(**marks: float | None) -> Pictures:
    """Half of the requests in the first of three bins from 10 to 10,000 tokens, a thousandth in the last one."""
    values: dict[str, float | None] = {"p999_tokens": None, "proposal_tokens": None, "limit_tokens": None, **marks}
    return Pictures(LengthPicture((10.0, 100.0, 1_000.0, 10_000.0), (0.5, 0.499, 0.001), 1_000, source="log", **values))


def curve(*points: CurvePoint, objective: float | None = 0.04, cap: float | None = 16.0) -> Pictures:
    return Pictures(None, CurvePicture(points, None, objective, None, None, cap, None, "sweep"))


def test_nothing_is_drawn_of_nothing() -> None:
    assert drawings(Pictures(), 80) == []


def test_bars_are_as_high_as_their_share_and_a_rare_length_is_still_seen() -> None:
    lines = drawings(lengths(), 71)  # 60 columns for 3 bins: 20 each
    assert lines[0] == "TOTAL TOKENS of 1,000 requests, log"
    assert lines[1] == "    50 % │" + "█" * 40
    assert lines[6] == "         │" + "█" * 40 + "▁" * 20
    assert lines[8] == " " * 10 + "10" + "10,000".rjust(58)


def test_marks_stand_under_their_place_on_the_logarithmic_axis() -> None:
    # 1,000 is two of three decades: column 40 of 60. 100,000 lies beyond.
    lines = drawings(lengths(p999_tokens=1_000.0, proposal_tokens=9_000.0, limit_tokens=100_000.0), 71)
    assert lines[9].index("▲") == 10 + 40
    assert lines[9].endswith("▲ p99.9 1,000")
    assert lines[10].rstrip().endswith("proposal 9,000 ▲")
    assert lines[11].endswith("limit 100,000 →")


def test_points_rise_with_concurrency_and_the_objective_is_a_line() -> None:
    # Top is 1.1 x 50 ms = 55 ms over 10 rows: 10 ms is row 1, 50 ms row 9, the objective of 40 ms row 7 from below.
    lines = drawings(curve(CurvePoint(4.0, 0.010, 1.0), CurvePoint(15.0, 0.050, 1.0)), 71)
    rows = [line[10:] for line in lines[1:11]][::-1]
    assert [number for number, row in enumerate(rows) if "●" in row] == [1, 9]
    assert (rows[1].index("●"), rows[9].index("●")) == (15, 56)
    assert rows[7] == "─" * 60
    assert lines[-1] == "          ── objective 40 ms"


def test_a_cap_far_beyond_what_was_measured_is_told_and_does_not_squeeze_the_curve() -> None:
    lines = drawings(curve(CurvePoint(4.0, 0.010, 1.0), cap=256.0), 71)
    assert any(line.endswith("cap 256 →") for line in lines)
    assert any(line.endswith("─" * 60) for line in lines)


finite = st.floats(min_value=1e-6, max_value=1e9, allow_nan=False)
mark = st.none() | finite


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=60),
    st.lists(st.tuples(finite, finite), max_size=8),
    mark,
    mark,
    st.none() | st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    st.integers(60, 140),
)
def test_whatever_the_figures_every_line_fits(
    shares: list[float],
    points: list[tuple[float, float]],
    one: float | None,
    other: float | None,
    line: tuple[float, float] | None,
    width: int,
) -> None:
    edges = tuple(10.0 * 1.2**k for k in range(len(shares) + 1))
    bars = LengthPicture(edges, tuple(shares), 10, one, other, one, "log")
    dots = tuple(CurvePoint(x, y, 1.0) for x, y in points)
    drawn = drawings(Pictures(bars, CurvePicture(dots, line, one, other, one, other, one, "log")), width)
    assert all(cells(text) <= width for text in drawn)
