from __future__ import annotations

import re

from advisor.web.trends import Line, Trend, since, sparkline, trends
from tests.unit.web import fleets

HOUR = 3600.0


def drawn(*values: float, step: float = HOUR) -> str:
    series = tuple((place * step, value) for place, value in enumerate(values))
    return sparkline(Trend("load", (Line("load", "running_p95", series),)), 0.0, "k")


def points(svg: str) -> list[list[tuple[float, float]]]:
    stretches = re.findall(r'points="([^"]*)"', svg)
    return [[(float(x), float(y)) for x, y in (p.split(",") for p in line.split(" "))] for line in stretches]


def test_a_line_begins_left_ends_right_and_stands_on_zero() -> None:
    # 240 x 44 with a margin of 4: from 4 to 236 across, and from 40 (nothing) to 4 (the most).
    assert points(drawn(0, 5, 10)) == [[(4, 40), (120, 22), (236, 4)]]


def test_of_many_moments_in_one_column_the_highest_is_drawn() -> None:
    (line,) = points(drawn(*[1.0] * 1000, 9.0, *[1.0] * 1000))
    assert min(y for _, y in line) == 4
    assert len(line) <= 233


def test_where_nothing_was_known_there_is_a_gap() -> None:
    assert len(points(drawn(1, 1, step=36 * HOUR))) == 1
    apart = points(drawn(1, 1, step=37 * HOUR))
    assert [len(line) for line in apart] == [2, 2]


def test_nothing_but_zeros_can_be_drawn() -> None:
    assert points(drawn(0, 0)) == [[(4, 40), (236, 40)]]


def test_a_setting_stands_beside_what_is_recommended() -> None:
    found = {trend.label: trend for trend in trends(fleets.history())}
    assert list(found) == [
        *("max_num_seqs", "max_model_len"),
        *("running p95", "waiting share", "KV usage p95", "demand requests per second p99"),
    ]
    now, advised = found["max_num_seqs"].lines
    assert (now.told, advised.told) == ("16, between 11 and 16", "24, between 16 and 24")
    assert found["max_model_len"].lines[0].told == "131,072"
    assert since(list(found.values())) == fleets.history()["running_p95"][0][0]


def test_a_single_moment_is_no_trend() -> None:
    assert trends({"running_p95": ((0.0, 1.0),)}) == []
    assert trends({}) == []
